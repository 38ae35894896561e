"""Experts: training runs on real data, kept as their parameters after every epoch."""

from lors.experts.missing import train_missing
from lors.experts.store import TrajectoryStore
from lors.experts.train import Snapshot, train_expert

__all__ = ["Snapshot", "TrajectoryStore", "train_expert", "train_missing"]
