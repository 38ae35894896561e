"""A set as a proxy for tuning: which of many configurations is best on the full data?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau, spearmanr

from lors.evaluation.evaluate import evaluation_setting
from lors.evaluation.statistic import Statistic
from lors.evaluation.tuning import pairs_for, tune, with_rates
from lors.files.artifacts import write_text
from lors.losses import LOSSES
from lors.selection import select
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.setting.threads import threads_of
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.uses.sources import configured_like, opened
from lors.uses.space import Candidate, configured, drawn, read_space
from lors.uses.trained import Reached, like, reached_on_full_data, reached_on_set

__all__ = ["FULL_DATA", "Agreement", "Proxy", "StandIn", "proxy"]

FULL_DATA, THE_SET, RANDOM = "full data", "distilled set", "random pairs"


@dataclass(frozen=True)
class StandIn:
    """What ranks configurations.

    Args:
        name: of it.
        recalls: on val, in percent. Shape: (seeds, configurations)
        seconds: of processor time to train a configuration.
    """

    name: str
    recalls: np.ndarray
    seconds: float


@dataclass(frozen=True)
class Agreement:
    """How well a stand-in ranks configurations: against the full data, over seeds.

    Args:
        name: of the stand-in.
        spearman: rank correlation of recalls on val.
        kendall: Kendall's τ of the same.
        regret: how much less recall on test the full data reaches with the configuration that the
            stand-in prefers than with the one that is best on val.
        seconds: of processor time for a configuration.
    """

    name: str
    spearman: Statistic
    kendall: Statistic
    regret: Statistic
    seconds: float


@dataclass(frozen=True)
class Proxy:
    """Configurations, and how well they train on a set and on what it was compared with.

    Args:
        candidates: the configurations.
        stand_ins: the set first.
        full: what each configuration reaches on the full data; empty if that was not asked for.
    """

    candidates: list[Candidate]
    stand_ins: list[StandIn]
    full: list[Reached]

    def best(self, count: int = 3) -> list[tuple[Candidate, float]]:
        """The configurations that train best on the set, with their mean recall on val."""
        recalls = self.stand_ins[0].recalls.mean(0)
        order = np.argsort(-recalls, kind="stable")[:count]
        return [(self.candidates[place], float(recalls[place])) for place in order]

    def agreements(self) -> list[Agreement]:
        """How well each stand-in ranks; none where the full data was not trained on."""
        if not self.full:
            return []
        val, test = (np.array([getattr(r, name) for r in self.full]) for name in ("val", "test"))
        return [_agreement(each, val, test) for each in self.stand_ins]


def _agreement(found: StandIn, val: np.ndarray, test: np.ndarray) -> Agreement:
    regrets = [float(test[val.argmax()] - test[row.argmax()]) for row in found.recalls]
    return Agreement(
        found.name,
        Statistic.of([float(spearmanr(row, val).statistic) for row in found.recalls]),
        Statistic.of([float(kendalltau(row, val).statistic) for row in found.recalls]),
        Statistic.of(regrets),
        found.seconds,
    )


def proxy(
    sets: Sequence[DistilledSet | str | Path],
    space: str | Path | Mapping[str, Sequence[Any]] | None = None,
    overrides: Sequence[str] = (),
    *,
    count: int = 40,
    seeds: int | None = None,
    check: bool = False,
    selection: str | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> Proxy:
    """Rank configurations of a model and its training by training on a set.

    A configuration's rate means what it means on the full data: where it asks for twice
    ``experts.rate``, the set is trained at twice the rates it has learned. Recall is measured on
    the validation split alone, and on test only for the regret.

    >>> settings = ["selection.kind=random", "encoder.scope=heads", "encoder.image_head=linear"]
    >>> config = lors.load_config("tiny", [*settings, "evaluate.epochs=2"])
    >>> _ = lors.run(config, "chosen", references=False)
    >>> found = proxy(["chosen"], {"experts.rate": [0.03, 0.3], "encoder.embed_dim": [4, 8]})
    >>> len(found.candidates), found.stand_ins[0].recalls.shape, len(found.best(1))
    (4, (1, 4), 1)

    Args:
        sets: one set, or several that were made with different seeds.
        space: settings and the values that each may have, or a YAML file of them; default: heads
            on frozen features.
        overrides: changes to the configuration of the first set, e.g. ``data.root=/elsewhere``.
        count: how many configurations to draw from the space.
        seeds: networks for each configuration, in turn on each set; default: one per set.
        check: also train every configuration on the full data and on random pairs of equal storage,
            to say how far the set can be trusted.
        selection: with ``check``, also on as many pairs of a selection, by name.
        out: a folder that keeps what the full data reaches, so that an interrupted check goes on.
        progress: reports long-running work.

    Raises:
        InputError: the sets or the space do not fit.
    """
    progress = progress or Silent()
    made = [opened(each) for each in sets]
    if not made:
        raise InputError("give a set")
    candidates = drawn(read_space(space), count)
    base = evaluation_setting(made[0], configured_like(made[0], overrides), progress)
    settings = _settings(base, made[0], candidates, progress)
    numbers = range(seeds or len(made))
    rate = base.config.experts.rate

    def ranked(name: str, stand_ins: Sequence[tuple[SyntheticPairs, str]]) -> StandIn:
        work = [(seed, each) for seed in numbers for each in settings]
        reached = []
        for seed, each in progress.track(work, f"train on {name}", len(work)):
            pairs, loss = stand_ins[seed % len(stand_ins)]
            reached.append(reached_on_set(each, pairs, LOSSES[loss], rate, seed))
        recalls = np.array([r.val for r in reached]).reshape(len(numbers), -1)
        return StandIn(name, recalls, float(np.mean([r.seconds for r in reached])))

    with threads_of(base):
        learned = [(pairs_for(base, each), each.config.loss) for each in made]
        stand_ins, full = [ranked(THE_SET, learned)], list[Reached]()
        if check:
            full = _on_full_data(settings, candidates, out, progress)
            budget = math.ceil(made[0].storage())
            stand_ins.append(ranked(RANDOM, _chosen(base, "random", budget, len(numbers))))
            if selection is not None:
                stand_ins.append(ranked(selection, _chosen(base, selection, budget, 1)))
    return Proxy(candidates, stand_ins, full)


def _settings(
    base: Setting, made: DistilledSet, candidates: Sequence[Candidate], progress: Progress
) -> list[Setting]:
    """The setting of each configuration; those with the same image trunk share the data."""
    shared, found = {base.config.encoder.trunk(): base}, list[Setting]()
    for config in [configured(base.config, each) for each in candidates]:
        trunk = config.encoder.trunk()
        if trunk not in shared:
            shared[trunk] = evaluation_setting(made, config, progress)
        found.append(like(shared[trunk], config))
    return found


def _on_full_data(
    settings: Sequence[Setting],
    candidates: Sequence[Candidate],
    out: Path | None,
    progress: Progress,
) -> list[Reached]:
    """What each configuration reaches on the full data; what a folder has of it is not repeated."""
    path = None if out is None else out / "full-data.json"
    known: dict[str, Any] = {}
    if path is not None and path.is_file():
        known = json.loads(path.read_text("utf-8"))
    found = []
    work = list(zip(settings, candidates, strict=True))
    for setting, candidate in progress.track(work, "train on the full data", len(work)):
        key = json.dumps([setting.pairs.fingerprint, candidate], sort_keys=True)
        if key not in known:
            known[key] = asdict(reached_on_full_data(setting, setting.config.seed))
            if path is not None:
                write_text(path, json.dumps(known, indent=1))
        found.append(Reached(**known[key]))
    return found


def _chosen(
    setting: Setting, kind: str, count: int, draws: int
) -> list[tuple[SyntheticPairs, str]]:
    """Real pairs, with the rates and the loss that are best on val for the first draw."""
    sets = []
    for draw in range(draws):
        (images, _), captions = select(setting, kind, count, draw)
        sets.append(setting.plain_pairs(images, captions))
    best = tune(setting, sets[0])
    return [(with_rates(each, best.rates), best.loss) for each in sets]
