"""Training one configuration, on a set or on the full data, in one protocol."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass

import torch

from lors.config import Config
from lors.encoders import DualEncoder
from lors.evaluation.protocol import measure, train_on
from lors.evaluation.tuning import with_rates
from lors.losses import LOSSES, Loss
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.training import Batch, sgd, train

__all__ = ["Reached", "like", "reached_on_full_data", "reached_on_set", "train_on_full_data"]


@dataclass(frozen=True)
class Reached:
    """What a network reached.

    Args:
        val: mean recall on the validation split.
        seconds: of processor time to train it.
        test: mean recall on the test split, where it was measured.
    """

    val: float
    seconds: float
    test: float | None = None


def like(setting: Setting, config: Config) -> Setting:
    """The same data and trunks with another configuration of heads and training."""
    other = copy.copy(setting)
    other.config = config
    vars(other).pop("flat", None)
    return other


def train_on_full_data(setting: Setting, *keys: int | str) -> DualEncoder:
    """A network trained on all real pairs: the protocol of sets, for the epochs of experts.

    SGD at ``experts.rate`` with the momentum and weight decay of ``evaluate``, ×0.1 at half-time.

    Args:
        setting: data, encoders and how to train.
        keys: draw the network and the order of the data.
    """
    config, real = setting.config, setting.real["train"]
    experts, protocol = config.experts, config.evaluate
    model = setting.model(*keys)
    optimizer = sgd(model, experts.rates(), protocol.momentum, protocol.weight_decay)
    half = experts.epochs // 2
    pace = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: 1.0 if e < half else 0.1)
    for epoch in range(experts.epochs):
        shown = real.epoch(
            model, experts.batch_size, config.data.captions, config.data.augment, *keys, epoch
        )
        batches = (Batch(u, v, torch.eye(len(u)).to(u)) for _, u, v in shown)
        train(model, optimizer, batches, LOSSES[experts.loss])
        pace.step()
    return model


def reached_on_full_data(setting: Setting, seed: int) -> Reached:
    """What a network reaches that is trained on all real pairs."""
    start = time.process_time()
    model = train_on_full_data(setting, seed, "full data")
    seconds = time.process_time() - start
    val, test = (measure(model, setting.real[name]).mean for name in ("val", "test"))
    return Reached(val, seconds, test)


def reached_on_set(
    setting: Setting, pairs: SyntheticPairs, loss: Loss, rate: float, seed: int
) -> Reached:
    """What a network reaches that is trained on a set in the place of the real pairs.

    Args:
        setting: data, encoders and how to train.
        pairs: the set, with rates that suit it where those of ``experts`` are ``rate``.
        loss: the one that the set was made for.
        rate: ``experts.rate`` of the configuration that the set was made with: where a
            configuration has twice that, the set is trained at twice its own rates.
        seed: draws the network.
    """
    experts = setting.config.experts
    image, text = pairs.rates.tolist()
    asked = experts.rates()
    rates = (image * asked[0] / rate, text * asked[1] / rate)
    protocol = setting.config.evaluate.model_copy(update={"batch_size": experts.batch_size})
    keys = (seed, "proxy")
    start = time.process_time()
    model = train_on(with_rates(pairs, rates), setting.model(*keys), loss, protocol, *keys)
    seconds = time.process_time() - start
    return Reached(measure(model, setting.real["val"]).mean, seconds)
