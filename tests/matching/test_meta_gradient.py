from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from lors.config import EncoderConfig
from lors.encoders import FlatModel, Frozen, build_dual_encoder
from lors.losses import LOSSES
from lors.matching.meta_gradient import META_GRADIENTS, Inner, MetaGradient, exact, tesla, unrolled
from lors.matching.second_order import DERIVATIVES
from lors.matching.trajectory import distance_ratio
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import LowRank
from lors.training import Batch


class Problem:
    """A small inner run in double precision: the real network, a low-rank S, two rates."""

    def __init__(
        self,
        loss: str = "wbce",
        steps: int = 4,
        ratio: str = "merged",
        derivative: str = "double",
        **protocol: Any,
    ) -> None:
        self.protocol = protocol
        rng = torch.Generator().manual_seed(0)
        model = build_dual_encoder(EncoderConfig(image_size=16), Frozen(text_dim=6), 0).double()
        self.flat = FlatModel(model)
        similarity = LowRank(8, rank=2, alpha=3.0)
        similarity.load_state_dict(
            {k: torch.randn(t.shape, generator=rng) for k, t in similarity.state_dict().items()}
        )
        images = torch.randn(8, 3, 16, 16, generator=rng, dtype=torch.double)
        texts = torch.randn(8, 6, generator=rng, dtype=torch.double)
        self.pairs = SyntheticPairs(images, texts, similarity, (0.05, 0.08)).double()
        self.theta = self.flat.flatten(model)
        noise = torch.randn(self.theta.shape, generator=rng, dtype=torch.double)
        self.target = self.theta + 0.1 * noise
        self.loss, self.ratio, self.derivative = LOSSES[loss], ratio, DERIVATIVES[derivative]
        self.indices = [torch.randperm(8, generator=rng)[:5] for _ in range(steps)]

    def inner_loss(self, theta: Tensor, batch: Batch) -> Tensor:
        return self.loss(self.flat(theta, batch.inputs, batch.texts), batch.similarity)

    def inner(self) -> Inner:
        objective = partial(
            distance_ratio,
            start=self.theta,
            target=self.target,
            sides=self.flat.sides,
            ratio=self.ratio,
        )
        batches = self.pairs.gather(self.indices, self.pairs.images.__getitem__)
        return Inner(
            self.inner_loss,
            self.theta,
            batches,
            self.pairs.rates,
            self.flat.sides,
            objective,
            self.derivative,
            **self.protocol,
        )

    def gradients(self, way: Callable[[Inner], MetaGradient]) -> dict[str, Tensor]:
        """The gradient of every part of the synthetic pairs."""
        self.pairs.zero_grad()
        inner = self.inner()
        found = way(inner)
        outputs = [tensor for batch in inner.batches for tensor in batch]
        torch.autograd.backward(outputs, [g for batch in found.batches for g in batch])
        grads = {k: p.grad.clone() for k, p in self.pairs.named_parameters() if p.grad is not None}
        return grads | {"rates": found.rates, "objective": found.objective}


def relative_error(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


@pytest.mark.parametrize("ratio", ["merged", "separate"])
@pytest.mark.parametrize("loss", ["ence", "bce", "wbce"])
def test_exact_equals_unrolled(loss: str, ratio: str) -> None:
    problem = Problem(loss, ratio=ratio)
    ours, reference = problem.gradients(exact), problem.gradients(unrolled)
    assert set(ours) == {
        "images",
        "texts",
        "similarity.omega",
        "similarity.left",
        "similarity.right",
        "rates",
        "objective",
    }
    for name in ours:
        assert relative_error(ours[name], reference[name]) < 1e-8, name


MOMENTUM: dict[str, Any] = {"momentum": 0.9, "weight_decay": 0.05, "pace": [1.0, 1.0, 0.1, 0.1]}


@pytest.mark.parametrize(
    "protocol", [MOMENTUM, {"momentum": 0.5}, {"weight_decay": 0.1}, {"pace": [1.0, 2.0, 0.5, 1.0]}]
)
@pytest.mark.parametrize(("derivative", "error"), [("double", 1e-8), ("one-sided", 1e-4)])
def test_exact_equals_unrolled_with_the_steps_of_the_protocol(
    protocol: dict[str, Any], derivative: str, error: float
) -> None:
    reference = Problem(**protocol).gradients(unrolled)
    ours = Problem(derivative=derivative, **protocol).gradients(exact)
    plain = Problem().gradients(unrolled)
    for name in ours:
        assert relative_error(ours[name], reference[name]) < error, name
        assert relative_error(plain[name], reference[name]) > 1e-4, name


def test_a_run_with_momentum_ends_where_torch_s_sgd_ends() -> None:
    problem = Problem(**MOMENTUM)
    inner, ends = problem.inner(), []

    def distance(theta: Tensor) -> Tensor:
        ends.append(theta.detach().clone())
        return theta.sum()

    exact(replace(inner, objective=distance))
    parts = [part.clone().requires_grad_() for part in problem.theta.split(problem.flat.sides)]
    rates = problem.pairs.rates.tolist()
    groups = [{"params": [part], "lr": rate} for part, rate in zip(parts, rates, strict=True)]
    sgd = torch.optim.SGD(groups, momentum=0.9, weight_decay=0.05)
    for batch, pace in zip(inner.batches, MOMENTUM["pace"], strict=True):
        for group, rate in zip(sgd.param_groups, rates, strict=True):
            group["lr"] = pace * rate
        sgd.zero_grad()
        data = Batch(*(tensor.detach() for tensor in batch))
        problem.inner_loss(torch.cat(parts), data).backward()
        sgd.step()
    assert relative_error(ends[0], torch.cat(parts).detach()) < 1e-12


def test_tesla_refuses_momentum() -> None:
    with pytest.raises(ValueError, match="plain SGD"):
        tesla(Problem(momentum=0.9).inner())


@pytest.mark.parametrize(
    ("derivative", "error"),
    [("forward", 1e-8), ("central", 1e-5), ("one-sided", 1e-4), ("kept", 1e-8)],
)
@pytest.mark.parametrize("way", [exact, tesla])
def test_every_derivative_gives_the_same(
    way: Callable[[Inner], MetaGradient], derivative: str, error: float
) -> None:
    reference = Problem().gradients(way)
    ours = Problem(derivative=derivative).gradients(way)
    for name in reference:
        assert relative_error(ours[name], reference[name]) < error, name


def test_unrolled_equals_central_differences() -> None:
    problem = Problem("ence")
    gradient = problem.gradients(unrolled)
    rng = torch.Generator().manual_seed(1)
    for name, parameter in problem.pairs.named_parameters():
        direction = torch.randn(parameter.shape, generator=rng, dtype=torch.double)
        values = []
        for sign in (1, -1):
            parameter.data += sign * 1e-5 * direction
            values.append(unrolled(problem.inner()).objective)
            parameter.data -= sign * 1e-5 * direction
        slope = (values[0] - values[1]) / 2e-5
        torch.testing.assert_close(slope, (gradient[name] * direction).sum(), rtol=1e-5, atol=1e-9)


def test_tesla_is_the_derivative_with_the_adjoint_frozen() -> None:
    problem = Problem()
    inner = problem.inner()
    theta, thetas = problem.theta, []
    for batch in inner.batches:
        theta = theta.detach().requires_grad_()
        thetas.append(theta)
        theta = theta - inner.spread(inner.rates) * inner.gradient(theta, batch)
    end = theta.detach().requires_grad_()
    (adjoint,) = torch.autograd.grad(inner.objective(end), end)
    # θ_t with every θ_i held: the adjoint times -Σ η g_i, differentiated in data and rates alone.
    sum_of_steps = torch.stack(
        [
            inner.spread(inner.rates) * inner.gradient(theta, batch, create_graph=True)
            for theta, batch in zip(thetas, inner.batches, strict=True)
        ]
    ).sum(0)
    problem.pairs.zero_grad()
    (-(adjoint * sum_of_steps).sum()).backward()
    expected = {
        k: p.grad.clone() for k, p in problem.pairs.named_parameters() if p.grad is not None
    }
    ours = problem.gradients(tesla)
    for name in expected:
        assert relative_error(ours[name], expected[name]) < 1e-10, name
    differs = problem.gradients(exact)
    assert relative_error(ours["images"], differs["images"]) > 1e-3


def test_all_ways_agree_for_a_single_step() -> None:
    problem = Problem(steps=1)
    reference = problem.gradients(unrolled)
    for way in (exact, tesla):
        ours = problem.gradients(way)
        for name in reference:
            assert relative_error(ours[name], reference[name]) < 1e-10, name


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("way", META_GRADIENTS)
def test_parts_held_fixed_cost_nothing_and_get_zero(way: str, derivative: str) -> None:
    problem = Problem(derivative=derivative)
    problem.pairs.images.requires_grad_(False)
    problem.pairs.similarity.requires_grad_(False)
    found = META_GRADIENTS[way](problem.inner())
    assert all(not batch.inputs.any() and not batch.similarity.any() for batch in found.batches)
    assert all(batch.texts.any() for batch in found.batches)


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("way", META_GRADIENTS)
def test_everything_but_the_rates_may_be_fixed(way: str, derivative: str) -> None:
    problem = Problem(derivative=derivative)
    problem.pairs.requires_grad_(False)
    expected = Problem().gradients(META_GRADIENTS[way])["rates"]
    torch.testing.assert_close(META_GRADIENTS[way](problem.inner()).rates, expected)


class SavedTensors:
    """The bytes that autograd keeps alive for backward passes, now and at the peak."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def pack(self, tensor: Tensor) -> Tensor:
        kept = tensor.detach()
        size = kept.numel() * kept.element_size()
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(kept, self.release, size)
        return kept

    def release(self, size: int) -> None:
        self.now -= size


def peak_graph(way: Callable[[Inner], MetaGradient], steps: int, derivative: str = "double") -> int:
    inner = Problem("ence", steps, derivative=derivative).inner()
    gc.collect()
    saved = SavedTensors()
    # Second derivatives need the graph of what was saved, so only the first pass is counted.
    with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda kept: kept):
        way(inner)
    return saved.peak


def test_memory_of_the_adjoint_does_not_grow_with_steps() -> None:
    assert peak_graph(exact, 8) == peak_graph(exact, 2)
    assert peak_graph(tesla, 8) == peak_graph(tesla, 2)
    assert peak_graph(exact, 8, "central") == peak_graph(exact, 2, "central")
    assert peak_graph(unrolled, 8) > 3 * peak_graph(unrolled, 2)
