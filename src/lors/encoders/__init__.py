"""Trunks, heads and the dual encoder."""

from lors.encoders.dual import DualEncoder, FlatModel, build_dual_encoder
from lors.encoders.text import TextTrunk, embed_once, fit_once

__all__ = [
    "DualEncoder",
    "FlatModel",
    "TextTrunk",
    "build_dual_encoder",
    "embed_once",
    "fit_once",
]
