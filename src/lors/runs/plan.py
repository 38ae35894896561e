"""What a run will need, from a short rehearsal on this device and without its data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lors.config import Config
from lors.runs.gpu_model import GPUS, modelled_memory, modelled_seconds
from lors.runs.made_up import known_pairs
from lors.runs.rehearsal import Rehearsal
from lors.setting.memory import growing_settings
from lors.setting.threads import threads_of
from lors.system.devices import choose_device
from lors.system.estimate import Cost, estimate
from lors.system.memory import available_memory
from lors.system.progress import Progress

__all__ = ["Plan", "plan"]

TIGHT = 0.8
"""The share of the available memory from which on a run is said to be a tight fit."""


@dataclass(frozen=True)
class Plan:
    """Parameters, storage, memory and time of a run.

    Args:
        config: of the run.
        device: where it would run.
        parameters: of the image side and of the text side.
        pairs: N, how many synthetic pairs there would be, or selected ones.
        pair_numbers: numbers per pair.
        real_pairs: M, how many real ones there are; None if only reading them would tell.
        expert_bytes: that one expert takes on disk.
        expert_step: one step of an expert.
        iteration: one iteration with a single trajectory; None for a selection.
        remarks: what the matcher said.
        available: bytes of memory that there are on the device.
    """

    config: Config
    device: torch.device
    parameters: tuple[int, int]
    pairs: int
    pair_numbers: int
    real_pairs: int | None
    expert_bytes: int
    expert_step: Cost
    iteration: Cost | None
    remarks: tuple[str, ...]
    available: int

    @property
    def seconds(self) -> float:
        """Of all iterations, in one process."""
        if self.iteration is None:
            return 0.0
        distill = self.config.distill
        return self.iteration.seconds * (distill.trajectories or 1) * distill.iterations

    @property
    def expert_seconds(self) -> float:
        """For a pair that an expert sees."""
        return self.expert_step.seconds / self.config.experts.batch_size

    @property
    def memory(self) -> float:
        """The peak of training experts and of distilling."""
        iteration = 0 if self.iteration is None else self.iteration.memory
        return max(self.expert_step.memory, iteration)

    @property
    def verdict(self) -> str:
        """Whether the run fits the machine; if not, what to lower."""
        needed, there = _bytes(self.memory), _bytes(self.available)
        if self.memory > self.available:
            return (
                f"too large: it needs about {needed} of memory and {there} are available; lower "
                f"{' or '.join(self._too_large())}"
            )
        fit = "tight" if self.memory > TIGHT * self.available else "fits"
        time = "" if self.iteration is None else f", and distillation takes {_time(self.seconds)}"
        return f"{fit}: about {needed} of {there} of memory{time}"

    def _too_large(self) -> list[str]:
        """The settings that memory grows with, where there is not enough."""
        settings = []
        if self.iteration is not None and self.iteration.memory > self.available:
            settings += growing_settings(self.config, "matching")
        if self.expert_step.memory > self.available:
            settings += growing_settings(self.config, "experts")
        return sorted(dict.fromkeys(settings), key="encoder.image_size".__eq__)

    def lines(self) -> list[tuple[str, str]]:
        """The plan in words: what, and how much; the verdict comes last."""
        config, (image, text) = self.config, self.parameters
        numbers, budget = self.pair_numbers, config.distill.budget
        lines = [
            ("device", f"{self.device} ({choose_device(config.device, config.dtype).why})"),
            ("parameters", f"{image:,} image side + {text:,} text side"),
            ("synthetic pairs", f"{self.pairs}, within the storage of {budget} plain pairs"),
            ("numbers per pair", f"{numbers:,} ({_bytes(4 * numbers * budget)} in all)"),
            ("expert storage", self._expert_storage()),
            ("expert training", self._expert_training()),
        ]
        if self.iteration is None:
            how = f"{config.selection.kind} chooses real pairs; nothing is distilled"
            lines[2] = ("selected pairs", str(self.pairs))
            lines.append(("selection", how))
        else:
            lines += self._distillation(self.iteration)
        return [
            *lines,
            ("peak memory", f"about {_bytes(self.memory)}"),
            ("available memory", _bytes(self.available)),
            *self._elsewhere(),
            ("verdict", self.verdict),
        ]

    def _elsewhere(self) -> Iterator[tuple[str, str]]:
        """What a run would take on GPUs: a model."""
        expert = self.expert_step.counts
        iteration = None if self.iteration is None else self.iteration.counts
        if self.device.type == "cuda" or expert is None:
            return
        for name, gpu in GPUS.items():
            found = []
            if iteration is not None:
                each = modelled_seconds(iteration, gpu) * (self.config.distill.trajectories or 1)
                found.append(f"an iteration {_time(each)}")
                found.append(f"distillation {_time(each * self.config.distill.iterations)}")
            memory = modelled_memory(expert, iteration)
            fits = "" if memory < gpu.memory else f", more than its {_bytes(gpu.memory)}"
            yield f"on an {name} (model)", f"{', '.join([*found, _bytes(memory)])}{fits}"

    def _expert_storage(self) -> str:
        experts = self.config.experts
        snapshots = len(self.config.expert_snapshots()) if experts.compact else experts.epochs + 1
        how = f"{experts.count} experts x {snapshots} snapshots"
        compact = ", compact" if experts.compact else ""
        return f"{_bytes(experts.count * self.expert_bytes)} ({how}{compact})"

    def _expert_training(self) -> str:
        experts = self.config.experts
        each = f"{1000 * self.expert_seconds:.1f} s per 1,000 pairs seen"
        if self.real_pairs is None:
            return each
        seen = experts.count * experts.epochs * self.real_pairs
        return f"{each}, {_time(self.expert_seconds * seen)} for all experts"

    def _distillation(self, iteration: Cost) -> list[tuple[str, str]]:
        config, options = self.config.distill, self.config.matching
        trajectories = config.trajectories or 1
        how = "" if trajectories == 1 else f", {trajectories} trajectories"
        if options.step_option is not None:
            how += f", {getattr(options, options.step_option)} inner steps"
        whole = "measured" if iteration.whole else "carried on from smaller ones"
        seconds = _time(iteration.seconds * trajectories)
        return [
            ("one iteration", f"{seconds} in one process{how} ({whole})"),
            *(("", remark) for remark in self.remarks),
            ("distillation", f"{_time(self.seconds)} for {config.iterations:,} iterations"),
        ]


def plan(config: Config, progress: Progress | None = None) -> Plan:
    """Rehearse a configuration on noise and see what a run of it would need.

    Two iterations of the real matcher, with made-up experts, and a step of an expert are done, and
    what follows the first of each is measured; work that is too large for that is done with 1 and 2
    inner steps, on small batches and on batches twice as large, and time and memory are carried on
    in straight lines to all steps and pairs. One trajectory stands for all. Off CUDA,
    operations and tensors are also counted, and ``gpu_model`` says what they would take on GPUs.

    Args:
        config: of the run; neither its data nor pretrained image weights need be there, except for
            the headers of given embeddings.
        progress: reports long-running work.

    >>> from lors.config import load_config
    >>> found = plan(load_config("tiny"))
    >>> found.parameters, found.pairs, found.pair_numbers, found.verdict[:4]
    ((77072, 2176), 7, 784, 'fits')
    """
    with tempfile.TemporaryDirectory(prefix="lors-plan-") as folder, ExitStack() as stack:
        rehearsal = Rehearsal(config, Path(folder))
        setting, available = rehearsal.setting, available_memory(rehearsal.setting.device)
        stack.enter_context(threads_of(setting))
        least, what = [rehearsal.small_expert()], "measure steps of an expert"
        step = estimate(rehearsal.expert_step, least, [1.0], setting.device, progress, what)
        iteration = None
        if config.selection.kind is None:
            sizes, what = (rehearsal.small_sizes(), rehearsal.full_sizes()), "measure iterations"
            iteration = estimate(rehearsal.iteration, *sizes, setting.device, progress, what)
            memory = max(iteration.memory, rehearsal.preparing)
            iteration = replace(iteration, memory=memory)
        return Plan(
            config,
            setting.device,
            setting.flat.sides,
            rehearsal.count,
            rehearsal.numbers,
            known_pairs(config),
            _expert_bytes(config, sum(setting.flat.sides), len(setting.pairs.splits["train"])),
            step,
            iteration,
            tuple(rehearsal.remarks),
            available,
        )


def _expert_bytes(config: Config, parameters: int, real_pairs: int) -> int:
    """What an expert takes on disk: its snapshots, and which pairs it learned when."""
    experts, size = config.experts, getattr(torch, config.dtype).itemsize
    if experts.compact:  # the first as it is, the others as differences in bfloat16
        snapshots = size + 2 * (len(config.expert_snapshots()) - 1)
    else:
        snapshots = size * (experts.epochs + 1)
    return snapshots * parameters + experts.epochs * real_pairs


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"
