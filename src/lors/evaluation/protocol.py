"""Evaluation: train fresh networks on a set, measure recall on real pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from lors.config import EvaluateConfig
from lors.encoders import DualEncoder, EncodedSplit, FlatModel
from lors.encoders.dropout import dropping
from lors.evaluation.recall import METRICS, Recall, recall
from lors.evaluation.results import Readings
from lors.evaluation.statistic import Recalls, Statistic
from lors.losses import Loss
from lors.sets.synthetic import SyntheticPairs
from lors.system import ranks
from lors.system.progress import Progress
from lors.system.seeding import generator
from lors.training import sgd, train

__all__ = [
    "Outcome",
    "choose_epoch",
    "frozen_inputs",
    "measure",
    "outcome",
    "outcomes",
    "snapshots",
    "summarise",
    "train_on",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What one network reached.

    Args:
        last: test recall after the last epoch.
        chosen: test recall at the epoch with the best validation recall.
        val: that best validation recall, as the mean of six.
        legacy: test recall at the epoch with the best *test* recall, the literature's habit.
        diverged: whether its parameters ended as no finite numbers, which retrieve nothing.
    """

    last: Recall
    chosen: Recall
    val: float
    legacy: Recall | None = None
    diverged: bool = False

    @classmethod
    def restore(cls, values: dict[str, Any]) -> Outcome:
        """The outcome that ``dataclasses.asdict`` was asked of."""
        recalls = {k: Recall(**v) for k, v in values.items() if isinstance(v, dict)}
        return cls(**{**values, **recalls})


def outcomes(
    items: Sequence[T], work: Callable[[T], Outcome], progress: Progress, what: str
) -> list[Outcome]:
    """What each item's network reached; the ranks divide them."""
    found = ranks.divide(items, lambda item: asdict(work(item)), progress, what)
    return [Outcome.restore(values) for values in found]


def measure(model: DualEncoder, split: EncodedSplit) -> Recall:
    """The recall of a model on a split.

    >>> import lors
    >>> from lors.setting import setting_of
    >>> setting = setting_of(lors.load_config("tiny"))
    >>> reached = measure(setting.model("mine"), setting.real["test"])  # not trained yet
    >>> 0 < reached.mean < 30
    True

    Args:
        model: as ``Setting.model`` makes it.
        split: one of ``Setting.real``.
    """
    images, texts = split.embed(model)
    return recall(images, texts, torch.from_numpy(split.owner).to(images.device))


@torch.no_grad()
def frozen_inputs(synthetic: SyntheticPairs, model: DualEncoder) -> Tensor:
    """What the trainable part takes of a set's images: the same for all networks of a setting."""
    return model.freeze(synthetic.images)


def train_on(
    synthetic: SyntheticPairs,
    model: DualEncoder,
    loss: Loss,
    config: EvaluateConfig,
    *keys: int | str,
    inputs: Tensor | None = None,
    after_epoch: Callable[[int], None] = lambda epoch: None,
) -> DualEncoder:
    """Train a dual encoder on a set by the protocol: SGD with momentum, ×0.1 at half-time.

    >>> import lors
    >>> from lors.encoders import Frozen, build_dual_encoder
    >>> frozen = Frozen(10, 12, None, small.image_standard, small.text_standard)
    >>> model = build_dual_encoder(small.config.encoder, frozen, seed=0)
    >>> batch = next(small.batches(model=model))
    >>> before = small.loss(model(*batch[:2]), batch.similarity).item()
    >>> model = train_on(small.pairs, model, small.loss, small.config.evaluate)
    >>> small.loss(model(*batch[:2]), batch.similarity).item() < before
    True

    Args:
        synthetic: what to train on; its learned rates are the learning rates.
        model: trained in place.
        loss: the contrastive loss that the set was made for.
        config: the protocol.
        keys: seed the order of the data.
        inputs: what ``frozen_inputs`` gives, if it is known.
        after_epoch: called with the number of epochs done.
    """
    image_rate, text_rate = synthetic.rates.tolist()
    optimizer = sgd(model, (image_rate, text_rate), config.momentum, config.weight_decay)
    halfway = torch.optim.lr_scheduler.LambdaLR(optimizer, config.pace)
    order = synthetic.in_protocol(config, generator(*keys, "evaluation order"))
    steps = -(-len(synthetic) // config.batch_size)
    known = frozen_inputs(synthetic, model) if inputs is None else inputs
    for epoch in range(config.epochs):
        with torch.no_grad():
            batches = synthetic.gather(list(islice(order, steps)), known.__getitem__)
        with dropping(*keys, "evaluation dropout", epoch):
            train(model, optimizer, batches, loss)
        halfway.step()
        after_epoch(epoch + 1)
    return model


def snapshots(
    synthetic: SyntheticPairs,
    model: DualEncoder,
    loss: Loss,
    config: EvaluateConfig,
    *keys: int | str,
    inputs: Tensor | None = None,
    after_epoch: Callable[[int], None] = lambda epoch: None,
) -> list[Tensor]:
    """Train a network on a set and keep its parameters at ``config.checks`` epochs."""
    flat, kept = FlatModel(model), []
    checks = config.checked()

    def keep(epoch: int) -> None:
        if epoch in checks:
            kept.append(flat.flatten(model))
        after_epoch(epoch)

    train_on(synthetic, model, loss, config, *keys, inputs=inputs, after_epoch=keep)
    return kept


def choose_epoch(
    model: DualEncoder, thetas: Sequence[Tensor], val: EncodedSplit
) -> tuple[int, float]:
    """Which of a run's snapshots has the best mean recall on val, and that recall."""
    recalls = [_at(model, theta, val).mean for theta in thetas]
    best = int(np.argmax(recalls))
    return best, recalls[best]


def outcome(
    model: DualEncoder,
    thetas: Sequence[Tensor],
    val: EncodedSplit,
    test: EncodedSplit,
    legacy: bool = False,
) -> Outcome:
    """Choose among the snapshots of one training run on val, and measure on test.

    The model is left at the epoch that was chosen.
    """
    best, recall_on_val = choose_epoch(model, thetas, val)
    every = [_at(model, theta, test) for theta in thetas] if legacy else []
    last = _at(model, thetas[-1], test)
    chosen = last if best == len(thetas) - 1 else _at(model, thetas[best], test)
    best_on_test = max(every, key=lambda r: r.mean, default=None)
    diverged = not bool(thetas[-1].isfinite().all())
    return Outcome(last, chosen, recall_on_val, best_on_test, diverged)


def _at(model: DualEncoder, theta: Tensor, split: EncodedSplit) -> Recall:
    FlatModel(model).load(theta, model)
    return measure(model, split)


def summarise(outcomes: Sequence[Outcome]) -> Readings:
    """Mean and deviation over networks of every recall, by reading.

    >>> one, other = Recall(*[10.0] * 6), Recall(*[14.0] * 6)
    >>> print(summarise([Outcome(one, one, 10.0), Outcome(other, one, 10.0)]).last.mean)
    12.0 ± 2.8
    """
    read = {name: [getattr(o, name) for o in outcomes] for name in ("last", "chosen", "legacy")}
    known = {name: _over_networks(found) for name, found in read.items() if None not in found}
    return Readings(**known)


def _over_networks(recalls: Sequence[Recall]) -> Recalls:
    names = (*METRICS, "mean")
    return Recalls(**{name: Statistic.of([getattr(r, name) for r in recalls]) for name in names})
