"""The toys are a user's module: pytest does not import it, even to look for examples."""

collect_ignore = ["toys.py"]
