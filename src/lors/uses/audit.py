"""What a set reveals of the data it was made from, as far as a few attacks can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lors.evaluation.references import full_data_model
from lors.evaluation.rows import evaluation_network
from lors.runs.opened import Run
from lors.setting.neighbours import nearest_captions, nearest_images
from lors.setting.threads import threads_of
from lors.system.progress import Progress, Silent
from lors.uses.membership import Attack, attack_on_model, attack_on_set

__all__ = ["Audit", "Nearest", "audit"]

COPY = 0.999
"""The cosine from which a synthetic image or text counts as a copy of a real one."""


@dataclass(frozen=True)
class Nearest:
    """The real image and caption that a synthetic pair is nearest to.

    Args:
        pair: its number in the set.
        image: the image's number in the training split.
        image_cosine: how near.
        caption: the caption's number.
        text_cosine: how near.
        words: of the caption; empty where they are not known.
    """

    pair: int
    image: int
    image_cosine: float
    caption: int
    text_cosine: float
    words: str


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Args:
        attacks: on the set, on a model trained on it, and perhaps on one trained on all data.
        nearest: of every pair, nearest images first.
    """

    attacks: list[Attack]
    nearest: list[Nearest]

    def copies(self) -> tuple[int, int]:
        """How many synthetic images, and texts, are real ones of the training split."""
        images = sum(each.image_cosine >= COPY for each in self.nearest)
        return images, sum(each.text_cosine >= COPY for each in self.nearest)

    def sentence(self) -> str:
        """What may be said of it, and no more."""
        images, texts = self.copies()
        worst = max(self.attacks[:4], key=lambda each: each.hits)
        held = f"Of {len(self.nearest)} pairs, {images} images and {texts} texts are real ones"
        found = (
            f"the best of these attacks ({worst.name}) finds {100 * worst.hits:.1f} % of the "
            "training pairs where it is wrong for 1 % of others"
        )
        return (
            f"{held}; {found}. These attacks are simple: that they fail does not show that the set "
            "is private, and nothing here is a guarantee such as differential privacy gives."
        )


def audit(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    full_data: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Attack a set and a model trained on it, and look up what its pairs are nearest to.

    >>> config = lors.load_config("tiny", ["selection.kind=random", "evaluate.epochs=2"])
    >>> _ = lors.run(config, "chosen", references=False)
    >>> found = audit("chosen")
    >>> found.copies()[0] == len(found.nearest)  # a selection is real pairs
    True

    Args:
        path: a set, or a run directory.
        overrides: changes to its configuration, e.g. ``data.root=/elsewhere``.
        full_data: also attack a model trained on all real pairs, for comparison.
        progress: reports long-running work.

    Raises:
        InputError: it is no set, or its data is not here.
    """
    opened = Run(path, overrides, progress or Silent())
    made, setting = opened.distilled, opened.setting
    with threads_of(setting):
        attacks = attack_on_set(setting, made.pairs.images, made.pairs.texts)
        model = evaluation_network(setting, made, lambda epoch: None)
        attacks.append(attack_on_model(setting, model, "model trained on the set"))
        if full_data:
            model = full_data_model(setting)
            attacks.append(attack_on_model(setting, model, "model trained on the full data"))
        images = nearest_images(setting, made.pairs.images)
        captions = nearest_captions(setting, made.pairs.texts)
    words = setting.pairs.splits["train"].captions
    found = [
        Nearest(
            pair,
            int(images.index[pair, 0]),
            float(images.cosine[pair, 0]),
            int(captions.index[pair, 0]),
            float(captions.cosine[pair, 0]),
            words[int(captions.index[pair, 0])] if words else "",
        )
        for pair in np.argsort(-images.cosine[:, 0], kind="stable").tolist()
    ]
    return Audit(attacks, found)
