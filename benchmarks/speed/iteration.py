"""A whole iteration of trajectory matching: a start is drawn, trained, matched and learned from."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from benchmarks.speed.meta_gradient import reference
from benchmarks.speed.ratio import Ratio, side_by_side
from lors.config import load_config
from lors.config.matchers import TrajectoryOptions
from lors.encoders import FlatModel
from lors.experts import experts_of
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
SIDES = ("image", "text")
LARGE = (
    "data.pairs={train: 40, val: 10, test: 10}",
    "experts={count: 1, epochs: 3, batch_size: 20}",
    "evaluate.batch_size=20",
    "similarity.rank=2",
)
CASES: dict[str, tuple[str, ...]] = {
    "scope image, nf_resnet_tiny 32 px": (),
    "scope image, ViT-Tiny 64 px": (
        *LARGE,
        "encoder.image=vit_tiny_patch16_224",
        "encoder.image_size=64",
        "distill.budget=30",
    ),
    "scope image, nf_resnet26 64 px": (
        *LARGE,
        "encoder.image=nf_resnet26",
        "encoder.image_size=64",
        "distill.budget=30",
    ),
    "scope image, nfnet_l0 128 px": (
        *LARGE,
        "encoder.image=nfnet_l0",
        "encoder.image_size=128",
        "distill.budget=20",
        "matching.batch_size=8",
        "matching.steps=2",
    ),
    "scope heads, efficientnet_lite0 96 px": HEADS,
    "scope heads, whole-set batches": (*HEADS, "matching.batch_size=100"),
    "scope heads in features": (*HEADS, "encoder.space=features"),
}


class Published:
    """Iterations with the operations of the published code, and the same draws as ours.

    All snapshots of an expert are read into memory, from a file for each side as it keeps them (as
    plain numbers, about as fast as ``torch.load``); the model is built anew; S is built in full for
    every batch; images go through the frozen trunk at every inner step; graphs are made in both
    passes.

    Args:
        setting: what to distil.
        folder: where to write the experts as it keeps them.
    """

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.setting, self.folder = setting, folder
        assert isinstance(setting.config.matching, TrajectoryOptions)
        self.options = setting.config.matching
        store, flat = experts_of(setting), setting.flat
        for expert in range(setting.config.experts.count):
            theta = load_file(store.path(expert))["theta"]
            for side, part in zip(SIDES, theta.split(flat.sides, dim=1), strict=True):
                part.numpy().tofile(self._file(side, expert))
            self.dtype = theta.numpy().dtype

    def _file(self, side: str, expert: int) -> Path:
        return self.folder / f"{side}-{expert}"

    def iteration(self, pairs: SyntheticPairs, draw: torch.Generator) -> None:
        """Add to the gradients of the pairs."""
        options = self.options
        expert = int(torch.randint(self.setting.config.experts.count, (), generator=draw))
        epoch = int(torch.randint(options.max_start_epoch, (), generator=draw))
        flat = FlatModel(self.setting.model("reference"))
        trajectories = [
            torch.from_numpy(np.fromfile(self._file(side, expert), self.dtype)).view(-1, size)
            for side, size in zip(SIDES, flat.sides, strict=True)
        ]
        start, target = (
            torch.cat([trajectory[place] for trajectory in trajectories]).to(pairs.images)
            for place in (epoch, epoch + options.expert_epochs)
        )
        indices = list(islice(pairs.passes(options.batch_size, draw), options.steps))
        batches = [
            Batch(pairs.images[i], pairs.texts[i], pairs.similarity.matrix()[i][:, i])
            for i in indices
        ]
        objective = partial(distance_ratio, start=start, target=target, sides=flat.sides)
        loss = partial(self._loss, flat)
        inner = Inner(loss, start, batches, pairs.rates, flat.sides, objective)
        found = reference(inner, carry=options.gradient == "exact")
        for batch, gradients in zip(batches, found, strict=True):
            torch.autograd.backward(list(batch), list(gradients), retain_graph=True)

    def one_pass(self, pairs: SyntheticPairs) -> Tensor:
        """The floor: a plain forward and backward pass on one batch."""
        flat, m = self.setting.flat, self.options.batch_size
        theta = flat.flatten(flat.model).to(pairs.images).requires_grad_()
        similarity = torch.eye(len(pairs.images[:m])).to(theta)
        batch = Batch(pairs.images[:m].detach(), pairs.texts[:m].detach(), similarity)
        return torch.autograd.grad(self._loss(flat, theta, batch), theta)[0]

    def _loss(self, flat: FlatModel, theta: Tensor, batch: Batch) -> Tensor:
        inputs = batch.inputs
        if flat.model.trunk is not None:
            inputs = flat.model.image_standard(flat.model.trunk(inputs))
        return self.setting.loss(flat(theta, inputs, batch.texts), batch.similarity)


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
            ours, plain = start_pairs(setting), start_pairs(setting)
            published, backward = Published(setting, Path(folder)), matcher_of(setting).backward
            lines.append(
                side_by_side(
                    f"{case}, N={len(ours)}, m={published.options.batch_size}",
                    partial(backward, ours, generator(0)),
                    partial(published.iteration, plain, generator(0)),
                    rounds,
                    floor=partial(published.one_pass, plain),
                    batches=published.options.steps,
                )
            )
    return lines
