"""The real pairs that a selection chooses from."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from lors.data.shards import Features
from lors.experts import experts_of, joint_features, scorer_embeddings
from lors.selection.candidates import Candidates
from lors.setting import Setting
from lors.system import ranks
from lors.system.seeding import derive_seed

__all__ = ["Choice", "Pool"]

Choice = tuple[np.ndarray, np.ndarray]
"""The chosen pairs, in order of choice, and the score of each. Shapes: (n,), (n,)"""


class Pool:
    """M real pairs, each an image with a drawn one of its captions.

    What is costly is made when a selection asks for it.

    Args:
        setting: whose training split it is.
        keys: draw the captions, and whatever a selection leaves to chance.
    """

    def __init__(self, setting: Setting, *keys: int | str) -> None:
        self.setting, real = setting, setting.real["train"]
        self.rng = np.random.default_rng(derive_seed(setting.config.seed, "selection", *keys))
        self.captions = real.draw_captions(np.arange(len(real)), self.rng)

    def __len__(self) -> int:
        return len(self.captions)

    @cached_property
    def candidates(self) -> Candidates:
        """The joint image-text features of the pairs."""
        return Candidates(*joint_features(self.setting), self.captions)

    @cached_property
    def everything(self) -> Candidates:
        """The same, undivided: every rank looks at all pairs."""
        features = joint_features(self.setting)  # before: all ranks train what it needs
        with ranks.alone():
            return Candidates(*features, self.captions)

    def embeddings(self) -> tuple[Features, Features, np.ndarray]:
        """Images and captions in the scorer's joint space, and the caption of each pair.

        Shapes: (M, e), (C, e), (M,)
        """
        return (*scorer_embeddings(self.setting), self.captions)

    def learned(self) -> list[np.ndarray]:
        """For each expert, which pairs it had learned at which epoch. Shape of each: (T, M)"""
        store = experts_of(self.setting)
        return [store.learned(expert) for expert in range(self.setting.config.experts.count)]
