"""Trunks, heads and the dual encoder."""

from lors.encoders.dual import DualEncoder, Frozen, build_dual_encoder
from lors.encoders.encoded import EncodedSplit
from lors.encoders.flat import FlatModel
from lors.encoders.standard import Standard
from lors.encoders.text import TextTrunk, build_text_trunk, embed_once

__all__ = [
    "DualEncoder",
    "EncodedSplit",
    "FlatModel",
    "Frozen",
    "Standard",
    "TextTrunk",
    "build_dual_encoder",
    "build_text_trunk",
    "embed_once",
]
