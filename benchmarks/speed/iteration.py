"""A whole iteration of trajectory matching: a start is drawn, trained, matched and learned from."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice

import torch
from safetensors.torch import load_file
from torch import Tensor

from benchmarks.speed.meta_gradient import reference
from benchmarks.speed.ratio import Ratio, side_by_side
from lors.config import load_config
from lors.config.matchers import TrajectoryOptions
from lors.encoders import FlatModel
from lors.experts import TrajectoryStore, experts_of
from lors.matching import matcher_of
from lors.matching.meta_gradient import Inner
from lors.matching.trajectory import distance_ratio
from lors.sets.synthetic import SyntheticPairs
from lors.setting import setting_of
from lors.setting.setting import Setting
from lors.starts import start_pairs
from lors.system.seeding import generator
from lors.training import Batch

__all__ = ["ratios"]

SHARED = (
    "data.pairs={train: 400, val: 50, test: 50}",
    "experts={count: 2, epochs: 3}",
    "distill.budget=100",
    "matching={gradient: tesla, steps: 8, batch_size: 20, max_start_epoch: 2, expert_epochs: 1}",
)
HEADS = (
    "encoder.image=efficientnet_lite0",
    "encoder.image_size=96",
    "encoder.image_head=linear",
    "encoder.scope=heads",
)
CASES: dict[str, tuple[str, ...]] = {
    "scope image, nf_resnet_tiny 32 px": (),
    "scope heads, efficientnet_lite0 96 px": HEADS,
    "scope heads, whole-set batches": (*HEADS, "matching.batch_size=100"),
    "scope heads in features": (*HEADS, "encoder.space=features"),
}


def plain_iteration(
    setting: Setting, store: TrajectoryStore, pairs: SyntheticPairs, draw: torch.Generator
) -> None:
    """As published code does it, with the same draws as ours.

    The whole trajectory of an expert is read, the model is built, S is built in full for every
    batch, images go through the frozen trunk at every inner step, and graphs are made in both
    passes.
    """
    config = setting.config.matching
    assert isinstance(config, TrajectoryOptions)
    expert = int(torch.randint(setting.config.experts.count, (), generator=draw))
    epoch = int(torch.randint(config.max_start_epoch, (), generator=draw))
    trajectory = load_file(store.path(expert))["theta"].clone()
    start, target = trajectory[[epoch, epoch + config.expert_epochs]].to(pairs.images)
    flat = FlatModel(setting.model("reference"))

    def loss(theta: Tensor, batch: Batch) -> Tensor:
        inputs = batch.inputs
        if flat.model.trunk is not None:
            inputs = flat.model.image_standard(flat.model.trunk(inputs))
        return setting.loss(flat(theta, inputs, batch.texts), batch.similarity)

    indices = list(islice(pairs.passes(config.batch_size, draw), config.steps))
    batches = [
        Batch(pairs.images[i], pairs.texts[i], pairs.similarity.matrix()[i][:, i]) for i in indices
    ]
    objective = partial(distance_ratio, start=start, target=target, sides=flat.sides)
    inner = Inner(loss, start, batches, pairs.rates, flat.sides, objective)
    found = reference(inner, carry=config.gradient == "exact")
    for batch, gradients in zip(batches, found, strict=True):
        torch.autograd.backward(list(batch), list(gradients), retain_graph=True)


def ratios(
    rounds: int,
    cases: Mapping[str, Sequence[str]] = CASES,
    changes: Sequence[str] = (),
) -> list[Ratio]:
    """Trunks that train, and frozen ones with synthetic images in pixels and in features."""
    lines = []
    for case, settings in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            setting = setting_of(
                load_config("demo", [*SHARED, *settings, f"experts.folder={folder}", *changes])
            )
            options = setting.config.matching
            assert isinstance(options, TrajectoryOptions)
            ours, plain = start_pairs(setting), start_pairs(setting)
            lines.append(
                side_by_side(
                    f"{case}, N={len(ours)}, m={options.batch_size}",
                    partial(
                        matcher_of(setting).backward,
                        ours,
                        generator(0),
                    ),
                    partial(plain_iteration, setting, experts_of(setting), plain, generator(0)),
                    rounds,
                )
            )
    return lines
