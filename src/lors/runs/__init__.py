"""Runs: a run directory with its configuration, checkpoints and logs; the whole pipeline."""
