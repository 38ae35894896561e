"""Evaluation: recall, the protocol, tuning, references, typed results."""
