"""One inner step's share of the meta-gradient: its forward pass, and its way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor

from benchmarks.speed.ratio import Ratio, ratio
from lors.config import EncoderConfig
from lors.encoders import FlatModel, Frozen, build_dual_encoder
from lors.losses import wbce
from lors.matching.fitting import fitting_derivative, relative_error
from lors.matching.meta_gradient import META_GRADIENTS, Inner, MetaGradient
from lors.matching.second_order import DERIVATIVES, Derivative
from lors.matching.trajectory import distance_ratio
from lors.system.counting import PeakBytes
from lors.system.timing import take_turns
from lors.training import Batch

__all__ = ["ratios"]

NETWORKS = (
    ("nf_resnet_tiny", 32, 20),
    ("vit_tiny_patch16_224", 64, 20),
    ("nf_resnet26", 64, 20),
    ("nfnet_l0", 128, 8),
)
"""Smooth and small, smooth and larger, with ReLUs, the paper's; the side of images, and m."""


class Problem:
    """An inner run of one network on noise.

    Args:
        image: the image trunk, whose parameters train.
        size: side of the images.
        pairs: m.
        steps: t.
    """

    def __init__(self, image: str, size: int, pairs: int, steps: int) -> None:
        draw = torch.Generator().manual_seed(0)
        config = EncoderConfig(image=image, image_size=size)
        model = build_dual_encoder(config, Frozen(text_dim=384), 0)
        self.flat = FlatModel(model)
        self.theta = self.flat.flatten(model)
        images = torch.randn(pairs, 3, size, size, generator=draw)
        tensors = (images, torch.randn(pairs, 384, generator=draw), torch.eye(pairs))
        self.batch = Batch(*(tensor.requires_grad_() for tensor in tensors))
        self.steps, self.rates = steps, torch.tensor([0.01, 0.01])
        self.target = self.theta + 0.01 * torch.randn(self.theta.shape, generator=draw)

    def loss(self, theta: Tensor, batch: Batch) -> Tensor:
        return wbce(self.flat(theta, batch.inputs, batch.texts), batch.similarity)

    def gradient(self) -> Tensor:
        """One plain forward and backward pass."""
        theta = self.theta.detach().requires_grad_()
        batch = Batch(*(tensor.detach() for tensor in self.batch))
        return torch.autograd.grad(self.loss(theta, batch), theta)[0]

    def objective(self, theta: Tensor) -> Tensor:
        return distance_ratio(theta, self.theta, self.target, self.flat.sides)

    def inner(self, derivative: Derivative = DERIVATIVES["double"]) -> Inner:
        return Inner(
            self.loss,
            self.theta,
            [self.batch] * self.steps,
            self.rates,
            self.flat.sides,
            self.objective,
            derivative,
        )

    def ours(self, gradient: str, derivative: Derivative) -> MetaGradient:
        return META_GRADIENTS[gradient](self.inner(derivative))

    def fitting(self, gradient: str) -> tuple[str, Derivative]:
        """What ``auto`` would choose."""
        carry = gradient == "exact"
        return fitting_derivative(self.loss, self.theta, self.batch, self.gradient(), carry)


class Apart:
    """θ as the published code has it: two vectors, each a leaf with a graph of its own.

    It can be split into weight tensors as a whole θ can, which is all that ``FlatModel`` does.

    Args:
        image: the parameters of the image side.
        text: those of the text side.
    """

    def __init__(self, image: Tensor, text: Tensor) -> None:
        self.image, self.text = image, text

    def split(self, sizes: Sequence[int]) -> list[Tensor]:
        images = list(accumulate(sizes)).index(self.image.numel()) + 1
        return [*self.image.split(sizes[:images]), *self.text.split(sizes[images:])]


def reference(inner: Inner, carry: bool) -> list[Batch]:
    """With the operations of the published code, one step after the other.

    Parameters are two flat vectors; both ways make a graph, which the first throws away; each
    side's gradient is a call of its own.

    Args:
        inner: the inner run.
        carry: whether earlier steps matter to later ones (exact), or not (TESLA).

    Returns:
        The gradients of each batch.
    """
    rates = inner.rates.detach()

    def gradients(sides: Sequence[Tensor], batch: Batch) -> list[Tensor]:
        loss = inner.loss(cast(Tensor, Apart(*sides)), batch)
        return [torch.autograd.grad(loss, side, create_graph=True)[0] for side in sides]

    places = [[side.detach().requires_grad_() for side in inner.theta.split(inner.sides)]]
    for batch in inner.batches:
        moves = zip(places[-1], gradients(places[-1], batch), rates, strict=True)
        places.append([(side - rate * g).detach().requires_grad_() for side, g, rate in moves])
    end = torch.cat([side.detach() for side in places.pop()]).requires_grad_()
    (adjoint,) = torch.autograd.grad(inner.objective(end), end)
    slopes = list(adjoint.split(inner.sides))
    results = []
    for sides, batch in zip(reversed(places), reversed(inner.batches), strict=True):
        leaves = batch.leaves()
        parts = zip(rates, slopes, gradients(sides, leaves), strict=True)
        product = -torch.stack([rate * (slope * g).sum() for rate, slope, g in parts]).sum()
        wanted = [tensor for tensor in leaves if tensor.requires_grad]
        inputs = [*sides, *wanted] if carry else wanted
        found = list(torch.autograd.grad(product, inputs, materialize_grads=True))
        if carry:
            slopes = [slope + found.pop(0) for slope in slopes]
        results.append(leaves.gradients(found))
    return results[::-1]


def ratios(
    rounds: int, networks: Sequence[tuple[str, int, int]] = NETWORKS, steps: int = 1
) -> list[Ratio]:
    """Each network with each derivative, for TESLA's gradient and the exact one."""
    lines = []
    for network in networks:
        for gradient in ("tesla", "exact"):
            lines += _lines(rounds, (*network, steps), gradient)
    return lines


def _lines(rounds: int, sizes: tuple[str, int, int, int], gradient: str) -> list[Ratio]:
    problem = Problem(*sizes)
    image, size, pairs, steps = sizes
    fitting, chosen = problem.fitting(gradient)
    derivatives = {**DERIVATIVES, fitting: chosen}
    ways = {name: partial(problem.ours, gradient, way) for name, way in derivatives.items()}
    plain = partial(reference, problem.inner(), gradient == "exact")
    seconds = take_turns({"floor": problem.gradient, "reference": plain, **ways}, rounds)
    whole = _memory(plain)
    lines = []
    for name, way in derivatives.items():
        error = relative_error(way, problem.loss, problem.theta, problem.batch, problem.gradient())
        case = f"{image} {size} px, m={pairs}, {gradient}, {name}"
        more = {"error": error, "memory": _memory(ways[name]) / whole}
        lines.append(
            ratio(
                f"{case} (auto)" if name == fitting else case,
                seconds[name],
                seconds["reference"],
                seconds["floor"],
                steps,
                more,
            )
        )
    return lines


def _memory(work: Callable[[], object]) -> int:
    """The most bytes that tensors made by this took at a time."""
    with PeakBytes() as bytes_alive:
        work()
    return bytes_alive.peak
