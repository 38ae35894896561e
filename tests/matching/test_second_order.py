from __future__ import annotations

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.config import EncoderConfig
from lors.encoders import FlatModel, Frozen, build_dual_encoder
from lors.losses import wbce
from lors.matching.fitting import (
    fitting_derivative,
    fitting_one_sided,
    kept_bytes,
    relative_error,
)
from lors.matching.kinks import BranchesDifferError
from lors.matching.second_order import DERIVATIVES, forward, one_sided
from lors.training import Batch


def cubic(theta: Tensor, batch: Batch) -> Tensor:
    """ℓ = Σ x θ³ + Σ y θ², whose derivatives can be written down."""
    return (batch.inputs * theta**3).sum() + (batch.texts * theta**2).sum()


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_a_case_with_a_known_answer(derivative: str) -> None:
    theta, d = torch.randn(2, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    x, y = torch.ones(5).double().requires_grad_(), torch.full((5,), 2.0).double().requires_grad_()
    batch = Batch(x, y, torch.zeros(1).double())
    found = DERIVATIVES[derivative](cubic, theta, batch, True).product(d.clone())
    # g = 3xθ² + 2yθ
    close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-6)
    close(found.gradient, 3 * theta**2 + 4 * theta)
    close(found.theta, (6 * theta + 4) * d)
    close(found.batch.inputs, 3 * theta**2 * d)
    close(found.batch.texts, 2 * theta * d)
    assert not found.batch.similarity.any()


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_what_is_not_asked_for_is_not_given(derivative: str) -> None:
    theta = torch.ones(3)
    batch = Batch(torch.ones(3).requires_grad_(), torch.ones(3), torch.ones(1))
    found = DERIVATIVES[derivative](cubic, theta, batch, False).product(torch.ones(3))
    assert found.theta is None
    assert found.gradient is None
    torch.testing.assert_close(found.batch.inputs, torch.full((3,), 3.0), rtol=0.02, atol=0)
    assert not found.batch.texts.any()


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_no_direction_gives_zero(derivative: str) -> None:
    theta = torch.ones(3)
    batch = Batch(torch.ones(3).requires_grad_(), torch.ones(3), torch.ones(1))
    found = DERIVATIVES[derivative](cubic, theta, batch, True).product(torch.zeros(3))
    assert not found.batch.inputs.any()
    assert found.theta is not None
    assert not found.theta.any()


class Network:
    """An inner step of a small real network in single precision."""

    def __init__(self, image: str, size: int = 16) -> None:
        rng = torch.Generator().manual_seed(0)
        config = EncoderConfig(image=image, image_size=size)
        model = build_dual_encoder(config, Frozen(text_dim=6), 0)
        self.flat = FlatModel(model)
        self.theta = self.flat.flatten(model)
        images, texts = torch.randn(4, 3, size, size, generator=rng), torch.randn(4, 6)
        tensors = (images, texts, torch.eye(4))
        self.batch = Batch(*(tensor.requires_grad_() for tensor in tensors))
        self.direction = torch.randn(self.theta.shape, generator=rng)

    def loss(self, theta: Tensor, batch: Batch) -> Tensor:
        return wbce(self.flat(theta, batch.inputs, batch.texts), batch.similarity)

    def error(self, derivative: str) -> float:
        way = DERIVATIVES[derivative]
        return relative_error(way, self.loss, self.theta, self.batch, self.direction)

    def fitting(self, with_theta: bool = False, graphs: float = 0) -> str:
        arguments = (self.loss, self.theta, self.batch, self.direction, with_theta, graphs)
        return fitting_derivative(*arguments)[0]


@pytest.mark.parametrize("with_theta", [False, True])
def test_a_smooth_network_gets_one_sided_differences(with_theta: bool) -> None:
    network = Network("nf_resnet_tiny")
    assert network.error("central") < 0.01
    assert network.error("forward") < 1e-5
    assert network.error("kept") == 0
    assert network.fitting(with_theta) == "one-sided"


@pytest.mark.parametrize("image", ["test_resnet", "mobilenetv2_035"])
def test_differences_are_right_with_kinks_that_are_kept_to(image: str) -> None:
    """ReLUs and max pooling; ReLU6 and batch norms."""
    network = Network(image, 32)
    assert network.error("central") > 0.01
    assert network.fitting() == "one-sided"
    assert network.fitting(with_theta=True) == "one-sided"


@pytest.mark.parametrize("with_theta", [False, True])
def test_operations_that_change_are_noticed(with_theta: bool) -> None:
    """A network whose operations depend on its numbers is never differenced in silence."""

    def loss(theta: Tensor, batch: Batch) -> Tensor:
        x = theta * batch.inputs
        return (x.relu() if x.detach().sum().item() > 1 else x.abs().relu()).square().sum()

    theta = torch.full((2,), 0.5).requires_grad_()
    batch = Batch(torch.ones(2).requires_grad_(), torch.ones(1), torch.ones(1))
    direction = torch.full((2,), 1.0)
    with pytest.raises(BranchesDifferError, match=r"set matching\.derivative"):
        one_sided(loss, theta, batch, with_theta, 1e-2).product(direction)
    assert fitting_one_sided(loss, theta, batch, direction)[1] == math.inf
    assert fitting_derivative(loss, theta, batch, direction, with_theta)[0] == "double"


def test_an_operation_with_one_derivative_is_differenced() -> None:
    """Torch has no second derivative of a hardsigmoid."""

    def loss(theta: Tensor, batch: Batch) -> Tensor:
        return (F.hardsigmoid(theta) * batch.inputs).square().sum()

    theta = torch.tensor([-4.0, -1.0, 2.0, 5.0])
    inputs = torch.tensor([1.0, 2.0, 3.0, 4.0])
    batch = Batch(inputs.requires_grad_(), torch.ones(1), torch.ones(1))
    name, way = fitting_derivative(loss, theta, batch, torch.ones(4), True)
    assert name == "one-sided"
    found = way(loss, theta, batch, True).product(torch.ones(4))
    # Between -3 and 3, ℓ = Σ ((θ + 3) x / 6)²
    expected = torch.tensor([0.0, 2 / 36 * 4, 2 / 36 * 9, 0.0])
    torch.testing.assert_close(found.theta, expected, rtol=0.01, atol=1e-3)


def test_noise_is_noticed() -> None:
    """Dropout that never sleeps: no second pass repeats the first, so its graph is kept."""

    def loss(theta: Tensor, batch: Batch) -> Tensor:
        return F.dropout(theta * batch.inputs, training=True).square().sum()

    torch.manual_seed(0)
    batch = Batch(torch.ones(50).requires_grad_(), torch.ones(1), torch.ones(1))
    fitting = fitting_derivative(loss, torch.ones(50), batch, torch.ones(50), True, graphs=1e9)
    assert fitting[0] == "kept"


@pytest.mark.parametrize("way", ["one-sided", "kept"])
def test_passes_are_not_repeated(way: str) -> None:
    """One pass forward for g, and at most one more for the derivative."""
    calls = []

    def counted(theta: Tensor, batch: Batch) -> Tensor:
        calls.append(1)
        return cubic(theta, batch)

    batch = Batch(torch.ones(3).requires_grad_(), torch.ones(3), torch.ones(1))
    visit = DERIVATIVES[way](counted, torch.ones(3), batch, True)
    assert len(calls) == 1
    visit.product(torch.ones(3))
    assert len(calls) == (2 if way == "one-sided" else 1)


def test_a_trial_is_short() -> None:
    calls = []

    def counted(theta: Tensor, batch: Batch) -> Tensor:
        calls.append(1)
        return cubic(theta, batch)

    batch = Batch(*(torch.ones(3).requires_grad_() for _ in range(3)))
    fitting_derivative(counted, torch.ones(3), batch, torch.ones(3), True)
    assert len(calls) <= 8


def test_kinks_that_are_not_known_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then graphs are kept if they fit; else small networks get double backward, large forward."""
    monkeypatch.setattr("lors.matching.kinks.KINKS", {})
    small, large = Network("test_resnet"), Network("resnet18", 32)
    size = kept_bytes(small.loss, small.theta, small.batch)
    assert small.fitting() == "double"
    assert small.fitting(graphs=size) == "kept"
    assert small.fitting(graphs=size - 1) == "double"
    assert large.fitting() == "forward"
    assert large.fitting(with_theta=True) == "double"
    assert large.error("forward") < 1e-4


def test_an_operation_without_forward_mode_gets_double_backward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Kinked(torch.autograd.Function):
        """A ReLU written without forward mode."""

        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * torch.heaviside(x, x.new_zeros(()))  # not known as an operation with kinks

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, *slopes: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
            return slopes[0] * (x > 0)

    def loss(theta: Tensor, batch: Batch) -> Tensor:
        return (batch.texts * Kinked.apply(theta - batch.inputs) ** 2).sum()

    # Half of θ is at the kink to within the step of a difference.
    theta = torch.linspace(1, 2, 8)
    inputs = theta + torch.tensor([1e-6, -1.0] * 4)
    monkeypatch.setattr("lors.matching.fitting.LARGE", 1)
    tensors = (inputs, torch.ones(8), torch.zeros(8))
    batch = Batch(*(tensor.requires_grad_() for tensor in tensors))
    with pytest.raises((RuntimeError, NotImplementedError)):
        forward(loss, theta, batch, torch.ones(8), False)
    assert fitting_derivative(loss, theta, batch, torch.ones(8), False)[0] == "double"
