"""Trajectory matching: training on synthetic data should end where training on real data ends."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from functools import partial
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from lors.config.matchers import TrajectoryOptions
from lors.encoders import DualEncoder, FlatModel
from lors.encoders.dropout import drops
from lors.experts import experts_of
from lors.losses import Loss
from lors.matching.blend import blended
from lors.matching.fitting import (
    TOLERANCE,
    fitting_derivative,
    fitting_one_sided,
    trial_batch,
)
from lors.matching.linear_heads import linear_heads, worth_it
from lors.matching.matcher import add_batch_gradients
from lors.matching.meta_gradient import META_GRADIENTS, Inner, MetaGradient
from lors.matching.second_order import DERIVATIVES, Derivative, afresh, double, kept, remade
from lors.matching.starts import Starts
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system import ranks
from lors.system.errors import InputError, choose
from lors.system.memory import total_memory
from lors.system.parallel import my_rows
from lors.system.seeding import derive_seed, draw_seed
from lors.training import Batch

__all__ = ["TrajectoryMatcher", "distance_ratio", "fits_closed_form", "inner_loss", "meta_gradient"]


GRAPHS = 4
"""The share of the device's memory that kept graphs may take, unless the user says: a quarter."""

PIECE = 1 << 18
"""Numbers of θ that are compared at a time: they stay in a CPU's cache."""


def distance_ratio(
    theta: Tensor, start: Tensor, target: Tensor, sides: tuple[int, int], ratio: str = "merged"
) -> Tensor:
    """‖θ - θ*‖² / ‖θ₀ - θ*‖² over all parameters, or the sum of an image and a text ratio.

    Args:
        theta: where training on synthetic data ended. Shape: (P,)
        start: θ₀, where it started.
        target: θ*, where the expert went.
        sides: how many of the numbers belong to the image and to the text side.
        ratio: ``merged`` (the paper) or ``separate`` (the published code's default);
            ``merged-published`` is ``merged`` for all but the rates.
    """
    if ratio != "separate":
        return _squares(theta, target) / _squares(start, target)
    parts = zip(*(part.split(sides) for part in (theta, start, target)), strict=True)
    return torch.stack([_squares(a, c) / _squares(b, c) for a, b, c in parts]).sum()


class _Squares(torch.autograd.Function):
    """‖a - b‖², at little memory: vectors as long as θ are what there is most of."""

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        parts = zip(a.split(PIECE), b.split(PIECE), strict=True)
        return torch.stack([F.mse_loss(x, y, reduction="sum") for x, y in parts]).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        a, b = ctx.saved_tensors
        return torch.sub(a, b).mul_(2 * slope), None


def _squares(a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = _Squares.apply(a, b)
    return found


def inner_loss(flat: FlatModel, loss: Loss, autocast: bool, theta: Tensor, batch: Batch) -> Tensor:
    """ℓ(θ, batch): the loss of one inner step.

    Args:
        flat: the dual encoder.
        loss: the contrastive loss.
        autocast: whether the encoder runs in bfloat16 where that is safe.
        theta: Shape: (P,)
        batch: synthetic pairs.
    """
    with torch.autocast(theta.device.type, torch.bfloat16) if autocast else nullcontext():
        logits = flat(theta, batch.inputs, batch.texts)
    return loss(logits.to(theta.dtype), batch.similarity)


def fits_closed_form(model: DualEncoder, options: TrajectoryOptions) -> bool:
    """Whether meta-gradients are those of ``linear_heads``; naming a derivative turns it off."""
    if options.derivative != "auto" or options.gradient == "unrolled" or options.autocast:
        return False
    return worth_it(model, options.steps * options.batch_size)


def meta_gradient(
    flat: FlatModel,
    loss: Loss,
    options: TrajectoryOptions,
    start: Tensor,
    target: Tensor,
    batches: list[Batch],
    rates: Tensor,
    derivative: Derivative | None,
    dropout: int | None = None,
) -> MetaGradient:
    """The gradient of the matching loss of one inner run.

    Args:
        flat: the dual encoder.
        loss: the contrastive loss.
        options: how to match.
        start: θ₀. Shape: (P,)
        target: θ*. Shape: (P,)
        batches: of synthetic pairs, one per step.
        rates: of the image side and the text side. Shape: (2,)
        derivative: how second derivatives are made; None for the closed form of linear heads.
        dropout: seeds its masks, if there is any.
    """
    if derivative is None:
        carry = options.gradient == "exact"
        return linear_heads(flat.model, loss, start, target, batches, rates, options.ratio, carry)
    step = partial(inner_loss, flat, loss, options.autocast)
    ratio = partial(distance_ratio, start=start, target=target, sides=flat.sides)
    objective, of_rates = partial(ratio, ratio=options.ratio), None
    if options.ratio == "merged-published":
        of_rates = partial(ratio, ratio="separate")
    inner = Inner(step, start, batches, rates, flat.sides, objective, derivative, of_rates, dropout)
    return META_GRADIENTS[options.gradient](inner)


class TrajectoryMatcher:
    """The matcher of MTT-VL, TESLA and LoRS, and of RepBlend, AMD and PTM-ST by its options.

    With ``matching.phases`` each part of the set is learned in its own part of the run, from its
    own range of start epochs; what the phases made is used together.

    Args:
        setting: the experts to match, the dual encoder, the loss of the inner steps.
        options: how to match.
    """

    Options = TrajectoryOptions

    def __init__(self, setting: Setting, options: TrajectoryOptions) -> None:
        self.state: dict[str, Tensor] = {}
        self.options, self.iterations = options, setting.config.distill.iterations
        self.flat, self.loss = setting.flat, setting.loss
        experts = experts_of(setting)
        budget = setting.config.distill.budget
        self.phases = len(options.phases_within(budget))
        self.starts = Starts(experts, setting.config.experts, self.flat, options, budget)
        self.divided = setting.data_parallel
        if options.temperature is not None:
            model = copy.copy(self.flat.model)
            model.temperature = options.temperature
            self.flat = FlatModel(model)
        if self.divided and self.options.blend:
            raise InputError(
                "matching.blend mixes pairs of a whole batch, which the ranks divide: leave out "
                "--data-parallel or set matching.blend=0"
            )
        linear = fits_closed_form(self.flat.model, self.options)
        self.derivative: Derivative | None = None
        if not linear:
            self.derivative = self._derivative(setting)
        elif self.divided:
            self.derivative = afresh(double)  # as exact as the closed form, of whole batches
        if self.divided:
            model = copy.copy(self.flat.model)
            model.divided = True
            self.flat = FlatModel(model)

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the matching loss to every part that requires one.

        Args:
            synthetic: the set being learned.
            generator: draws the expert, the start epoch, the batches and how they are blended.

        Returns:
            The matching loss: 1 means no closer to the expert than the start, 0 means there.
        """
        phase, among = self._phase(len(synthetic))
        start, target = self.starts.draw(generator, synthetic.images, phase)
        size, drop_last = self.options.batch_size, self.options.drop_last
        order = synthetic.passes(size, generator, among, drop_last)
        batches = synthetic.gather(
            list(islice(order, self.options.steps)),
            lambda index: self.flat.model.freeze(synthetic.images[index]),
            my_rows if self.divided else lambda index: index,
        )
        if self.options.blend:
            batches = [blended(batch, self.options.blend, generator) for batch in batches]
        found = meta_gradient(
            self.flat,
            self.loss,
            self.options,
            start,
            target,
            batches,
            synthetic.rates,
            self.derivative,
            self._dropout(generator),
        )
        if self.divided and ranks.rank() > 0:  # what is whole on all ranks counts once
            found = MetaGradient(
                torch.zeros_like(found.objective),
                [batch._replace(similarity=batch.similarity * 0) for batch in found.batches],
                found.rates * 0,
            )
        add_batch_gradients(found.batches, found.rates, batches, synthetic)
        return found.objective

    def prefetch(self, synthetic: SyntheticPairs, generator: torch.Generator) -> None:
        """Begin to read the start and the target that ``backward`` will draw."""
        calls = int(self.state.get("calls", 0))
        self.starts.prefetch(generator, synthetic.images, self._phase_of(calls))

    def spare_memory(self) -> bool:
        """Make each graph again, where all were kept."""
        if self.derivative is not kept:
            return False
        self.derivative = remade
        return True

    def _dropout(self, generator: torch.Generator) -> int | None:
        """Seeds the masks of a call, if the network has dropout; each rank has its own."""
        if not drops(self.flat.model):
            return None
        return derive_seed(draw_seed(generator), ranks.rank() if self.divided else 0)

    def _phase(self, pairs: int) -> tuple[int, Tensor | None]:
        """Which phase this call belongs to, and the pairs that it learns; None for all."""
        phases = self.phases
        if not phases:
            return 0, None
        calls = int(self.state.get("calls", 0))
        self.state = {"calls": torch.tensor(calls + 1)}
        phase = self._phase_of(calls)
        return phase, torch.arange(pairs).tensor_split(phases)[phase]

    def _phase_of(self, calls: int) -> int:
        phases = max(self.phases, 1)
        return min(calls * phases // self.iterations, phases - 1)

    def _derivative(self, setting: Setting) -> Derivative:
        """The way asked for, or one that fits the network: see ``fitting_derivative``."""
        asked = self.options.derivative
        if asked not in ("auto", "one-sided"):
            return choose(DERIVATIVES, asked, "derivative")
        if self.options.gradient == "unrolled":
            return afresh(double)
        first = self.options.start_ranges()[0][0]
        batch = trial_batch(setting, self.options.batch_size)
        m = len(batch.inputs)
        start, target = self.starts.snapshots(0, [first], batch.inputs)
        carry = self.options.gradient == "exact"
        step = partial(inner_loss, self.flat, self.loss, self.options.autocast)
        memory = self.options.memory
        if memory is None:
            mine = total_memory(setting.device) // (GRAPHS * ranks.neighbours())
            memory = min(ranks.gather(mine))
        graphs = memory / self.options.steps * m / self.options.batch_size
        if asked == "one-sided":
            way, error = fitting_one_sided(step, start, batch, start - target)
            if error < TOLERANCE:
                return way
            raise InputError(
                f"matching.derivative=one-sided is wrong by {error:.0%} for this network in this "
                "precision: set matching.derivative=auto"
            )
        return fitting_derivative(step, start, batch, start - target, carry, graphs)[1]
