"""Experts: training runs on real data, kept as their parameters after every epoch."""

from lors.experts.store import TrajectoryStore
from lors.experts.train import train_expert

__all__ = ["TrajectoryStore", "train_expert"]
