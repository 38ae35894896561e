"""A set with the rates that suit it on the validation split, if these are better than its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lors.config import load_config
from lors.evaluation.evaluate import evaluation_setting
from lors.evaluation.tuning import pairs_for, tune, with_rates
from lors.sets.distilled import DistilledSet
from lors.setting.threads import threads_of
from lors.system.progress import Progress, Silent

__all__ = ["with_tuned_rates"]


def with_tuned_rates(
    distilled: DistilledSet, overrides: Sequence[str] = (), progress: Progress | None = None
) -> DistilledSet:
    """The set with its loss and rates chosen on val, where its own compete with those tried.

    >>> import lors
    >>> made = lors.distill(lors.Pairs({"source": "scenes", "pairs": {"train": 60}}), pairs=9,
    ...     method="random", encoder=lors.Encoder(image_size=8, scope="image"), progress=False,
    ...     evaluate={"epochs": 2, "seeds": 1}, tried_rates=[0.1])
    >>> round(with_tuned_rates(made, ["evaluate.tried_rates=[0.3]"]).rates[0], 3) in (0.1, 0.3)
    True

    Args:
        distilled: a set, such as a merged one.
        overrides: changes to its configuration, e.g. ``data.root=/elsewhere``.
        progress: reports long-running work.
    """
    config = load_config(distilled.config.model_dump(mode="json"), overrides)
    setting = evaluation_setting(distilled, config, progress or Silent())
    own = (distilled.config.loss, distilled.rates)
    with threads_of(setting):
        best = tune(setting, pairs_for(setting, distilled), own)
    changed = distilled.config.model_copy(update={"loss": best.loss})
    return replace(distilled, pairs=with_rates(distilled.pairs, best.rates), config=changed)
