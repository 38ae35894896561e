"""A rehearsal: the parts of a run as they are, on made-up data and made-up experts."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lors.config import Config
from lors.distillation.loop import Distillation
from lors.encoders import EncodedSplit
from lors.experts import TrajectoryStore, expert_origin, train_expert
from lors.matching import matcher_of
from lors.runs.made_up import MadeUpSetting
from lors.sets.synthetic import SyntheticPairs, pairs_within
from lors.setting import Setting, resolve
from lors.similarity import build_similarity
from lors.system.estimate import Cost, measured
from lors.system.memory import forget_peak_memory, peak_memory
from lors.system.progress import Silent
from lors.system.seeding import generator

__all__ = ["Rehearsal"]

QUIET = 1e-9
"""Outer learning rate: noise must not make the numbers overflow, and no cost depends on it."""
INNER_RATE = 1e-3
"""Likewise."""
EXPERT_PAIRS = 8
"""Pairs of an expert's step that is tried first."""
MOVED = 0.1
"""How far a made-up expert moves in all, as a share of the length of its parameters."""


class Remarks(Silent):
    """Collects what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


class Rehearsal:
    """A step of an expert and iterations of distillation, in full or with less of everything.

    ``setting`` is the made-up setting and ``count`` is N, how many pairs the set would have;
    ``remarks`` is what the matcher last had to say, and ``preparing`` the most bytes that making a
    matcher took.

    Args:
        config: of the run.
        folder: where made-up experts are kept; the caller removes it.
    """

    def __init__(self, config: Config, folder: Path) -> None:
        config = resolve(_without_weights(config))
        self.options, self.batch_size = config.matching, config.experts.batch_size
        epochs = min(config.experts.epochs, max(self.options.snapshots(config.experts.epochs)))
        experts = {"folder": folder, "compact": True, "epochs": max(1, epochs)}
        self.setting = MadeUpSetting(_changed(config, "experts", **experts))
        self.numbers = self.setting.plain_pairs(np.arange(1), np.arange(1)).pair_numbers()
        most, similarity = config.most_pairs(), config.similarity_within(self.numbers)
        if config.selection.kind is not None:
            most, similarity = None, config.selection.kept_similarity()
        self.count = pairs_within(config.distill.budget, self.numbers, similarity, most)
        self.remarks: list[str] = []
        self.preparing = 0

    def full_sizes(self) -> tuple[int, float]:
        """The steps of an iteration and the share of its pairs: all."""
        steps = self.options.step_option
        return (1 if steps is None else getattr(self.options, steps)), 1.0

    def small_sizes(self) -> tuple[int, float]:
        """The least: one step, and the share that leaves two pairs in the smallest batch."""
        counts = [self.count // self.setting.config.parts(), *self._batches().values()]
        return 1, min(1.0, 2 / min(counts))

    def small_expert(self) -> float:
        """The share of an expert's batch that is ``EXPERT_PAIRS``."""
        return min(1.0, EXPERT_PAIRS / self.batch_size)

    def expert_step(self, share: float) -> Cost:
        """What an expert's step costs on a share of its batch."""
        self._trained(share)
        return measured(lambda: self._trained(share), self.setting.device)

    def iteration(self, steps: int, share: float) -> Cost:
        """What an iteration costs with so many steps on a share of all pairs, after a first one."""
        setting, remarks = self._smaller(steps, share), Remarks()
        setting.progress = remarks
        if self.options.reads_experts:
            self._make_experts()
        forget_peak_memory(setting.device)
        matcher = matcher_of(setting)
        pairs = self._start(_part(self.count, share))
        run = Distillation(pairs, setting.config.distill, setting.config.seed)
        run.step(matcher)
        self.preparing = max(self.preparing, peak_memory(setting.device))
        self.remarks = remarks.said
        return measured(lambda: run.step(matcher), setting.device)

    def _smaller(self, steps: int, share: float) -> Setting:
        """The setting with so many steps, a share of every batch, and steady numbers."""
        setting = copy.copy(self.setting)  # shares data and networks
        sizes = {name: _part(size, share) for name, size in self._batches().items()}
        if self.options.step_option is not None:
            sizes[self.options.step_option] = steps
        config = _changed(setting.config, "matching", **sizes)
        protocol = _part(config.evaluate.batch_size, share)
        config = _changed(config, "evaluate", batch_size=protocol)
        rates = dict.fromkeys(type(config.distill.learning_rates).model_fields, QUIET)
        quiet = config.distill.learning_rates.model_copy(update=rates)
        setting.config = _changed(config, "distill", learning_rates=quiet, trajectories=1)
        return setting

    def _batches(self) -> dict[str, int]:
        found = {name: getattr(self.options, name) for name in self.options.batch_options}
        return {name: size or self.batch_size for name, size in found.items()}

    def _start(self, count: int) -> SyntheticPairs:
        every, config = np.arange(count), self.setting.config
        what = config.similarity_within(self.numbers)
        similarity = build_similarity(what, count, generator("rehearsal"))
        images, texts = self.setting.tensors_of(every, every)
        pairs = SyntheticPairs(images, texts, similarity, (INNER_RATE, INNER_RATE))
        return pairs.to(self.setting.device, self.setting.dtype)

    def _trained(self, share: float) -> list[torch.Tensor]:
        """The parameters of an expert before and after one step. Shape of each: (P,)"""
        setting, size = self.setting, _part(self.batch_size, share)
        real, every = setting.real["train"], np.arange(size)
        some = EncodedSplit(real.images[every], real.texts[every], every)
        experts = setting.config.experts.model_copy(update={"epochs": 1, "batch_size": size})
        model = setting.model("rehearsal")
        snapshots = train_expert(model, some, experts, setting.config.data, 0)
        return [snapshot.theta for snapshot in snapshots]

    def _make_experts(self) -> None:
        """Experts that go where one step leads; all share one file."""
        setting, config = self.setting, self.setting.config
        kept = config.expert_snapshots()
        assert config.experts.folder is not None
        store = TrajectoryStore(config.experts.folder, expert_origin(setting), kept)
        if not store.missing(config.experts.count):
            return
        start, after = self._trained(self.small_expert())
        move = after - start
        move *= MOVED * start.norm() / move.norm()
        thetas = torch.stack([start + move * epoch / config.experts.epochs for epoch in kept])
        learned = torch.zeros(config.experts.epochs, len(setting.real["train"]), dtype=torch.bool)
        store.write(0, thetas, learned)
        for expert in range(1, config.experts.count):
            os.link(store.path(0), store.path(expert))


def _without_weights(config: Config) -> Config:
    return _changed(config, "encoder", image_weights=None, text_weights="none")


def _changed(config: Config, section: str, **values: Any) -> Config:
    part = getattr(config, section).model_copy(update=values)
    return config.model_copy(update={section: part})


def _part(count: int, share: float) -> int:
    """A share of a number of pairs, at least two, unless there is only one."""
    return min(count, max(2, round(count * share)))
