"""Controls: a finished set without what its soft labels, or its learned texts, give away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from lors.config import SimilarityConfig
from lors.evaluation.tuning import pairs_for, tune, with_rates
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.setting.neighbours import caption_texts, nearest_captions
from lors.similarity import Identity
from lors.system.errors import InputError, choose

__all__ = ["CONTROLS", "controlled", "with_identity", "with_real_captions"]


def with_identity(setting: Setting, distilled: DistilledSet) -> DistilledSet:
    """The set with S = I; its images, texts and rates are as they were."""
    if isinstance(distilled.pairs.similarity, Identity):
        return distilled
    old = distilled.pairs
    pairs = SyntheticPairs(old.images.detach(), old.texts.detach(), None, old.rates.tolist())
    similarity = SimilarityConfig(kind="identity")
    return replace(
        distilled,
        pairs=pairs.to(old.images.device),
        config=distilled.config.model_copy(update={"similarity": similarity}),
    )


def with_real_captions(setting: Setting, distilled: DistilledSet) -> DistilledSet:
    """The set with each text replaced by the nearest real caption, by the cosine of embeddings."""
    old = distilled.pairs
    found = nearest_captions(setting, old.texts).index[:, 0]
    texts = caption_texts(setting, found).to(old.texts)
    if torch.equal(texts, old.texts):
        return distilled
    pairs = SyntheticPairs(old.images.detach(), texts, old.similarity, old.rates.tolist())
    return replace(distilled, pairs=pairs.to(old.images.device))


CONTROLS: dict[str, Callable[[Setting, DistilledSet], DistilledSet]] = {
    "identity": with_identity,
    "captions": with_real_captions,
}
"""What each makes of a set, by name."""


def controlled(setting: Setting, distilled: DistilledSet, control: str) -> tuple[DistilledSet, str]:
    """A set under a control, with the loss and the rates that suit it then.

    What the set learned for its own S and texts may no longer suit it. So its loss and rates
    compete on val with those that a set gets which has learned none.

    Args:
        setting: the real pairs, networks and protocol; its loss is the set's.
        distilled: the set.
        control: a name in ``CONTROLS``.

    Returns:
        The set, and how it is trained; a set that the control does not change has its own way,
        and no words for it.

    Raises:
        InputError: there is no such control, or another S was asked for.
    """
    if control == "identity" and setting.config.evaluate.similarity == "expert":
        raise InputError("S is either the identity or an expert's: set evaluate.similarity=own")
    changed = choose(CONTROLS, control, "control")(setting, distilled)
    if changed is distilled:
        return distilled, ""
    own = (setting.config.loss, changed.rates)
    best = tune(setting, pairs_for(setting, changed), own)
    config = changed.config.model_copy(update={"loss": best.loss})
    how = f"{best.loss}, the set's rates" if best.rates == own[1] else str(best)
    return replace(changed, pairs=with_rates(changed.pairs, best.rates), config=config), how
