"""Experts: training runs on real data, kept as their parameters after every epoch."""

from lors.experts.embeddings import expert_embeddings, joint_features, scorer_embeddings
from lors.experts.missing import train_missing
from lors.experts.of_setting import expert_origin, experts_of, store_of
from lors.experts.store import TrajectoryStore
from lors.experts.train import Snapshot, train_expert

__all__ = [
    "Snapshot",
    "TrajectoryStore",
    "expert_embeddings",
    "expert_origin",
    "experts_of",
    "joint_features",
    "scorer_embeddings",
    "store_of",
    "train_expert",
    "train_missing",
]
