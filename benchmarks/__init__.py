"""Measurements of speed, memory and robustness. Each module is a command that prints a table.

They are not part of the installed package: run them from the root of the repository.
"""
