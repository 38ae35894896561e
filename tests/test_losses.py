from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lors.config.names import PLAIN_LOSSES
from lors.losses import LOSSES, Loss, bce, ence, nce, wbce
from lors.system.errors import InputError

TAU = 0.07


def embeddings(m: int = 7, d: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised images u (a leaf), texts v, and any real similarity."""
    rng = torch.Generator().manual_seed(1)
    u, v = (
        torch.nn.functional.normalize(torch.randn(m, d, generator=rng, dtype=torch.double), dim=1)
        for _ in range(2)
    )
    return u.requires_grad_(), v, torch.randn(m, m, generator=rng, dtype=torch.double)


def gradient(loss: Loss, similarity: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """∂loss/∂u by autograd, with P^V, P^T and v for the closed form."""
    u, v, _ = embeddings()
    logits = u @ v.T / TAU
    (grad,) = torch.autograd.grad(loss(logits, similarity), u)
    return grad, logits.softmax(1).detach(), logits.softmax(0).detach(), v


def test_gradient_of_nce_is_proposition_1() -> None:
    eye = torch.eye(7, dtype=torch.double)
    grad, p_v, p_t, v = gradient(nce, eye)
    weights = (p_v + p_t - 2 * eye) / (7 * TAU)
    torch.testing.assert_close(grad, weights @ v)


def test_gradient_of_ence_is_proposition_2() -> None:
    s = embeddings()[2]
    grad, p_v, p_t, v = gradient(ence, s)
    weights = (s.sum(1, keepdim=True) * p_v + s.sum(0, keepdim=True) * p_t - 2 * s) / (7 * TAU)
    torch.testing.assert_close(grad, weights @ v)


def test_gradient_of_bce_is_proposition_3() -> None:
    u, v, s = embeddings()
    grad, *_ = gradient(bce, s)
    weights = ((u @ v.T / TAU).sigmoid() - s) / (7 * TAU)
    torch.testing.assert_close(grad, (weights @ v).detach())


def test_ence_with_identity_similarity_is_nce() -> None:
    u, v, _ = embeddings()
    logits = u @ v.T / TAU
    torch.testing.assert_close(ence(logits, torch.eye(7, dtype=torch.double)), nce(logits))


def test_wbce_averages_positives_and_negatives_apart() -> None:
    logits = torch.tensor([[0.0, 1.0], [-1.0, 2.0]], dtype=torch.double)
    s = torch.tensor([[1.0, 0.2], [0.5, 0.9]], dtype=torch.double)  # 0.5 is a negative

    def ell(y: float, x: float) -> float:
        p = 1 / (1 + math.exp(-x))
        return -y * math.log(p) - (1 - y) * math.log(1 - p)

    expected = (ell(1.0, 0) + ell(0.9, 2)) / 2 + (ell(0.2, 1) + ell(0.5, -1)) / 2
    assert wbce(logits, s).item() == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_wbce_with_one_side_empty_uses_the_other(value: float) -> None:
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    s = torch.full((3, 3), value)
    torch.testing.assert_close(wbce(logits, s), bce(logits, s) / 3)


@pytest.mark.parametrize("name", LOSSES)
@given(scale=st.floats(-1e4, 1e4), shift=st.floats(-100, 100))
def test_losses_and_gradients_stay_finite(name: str, scale: float, shift: float) -> None:
    logits = (torch.eye(4) * scale).requires_grad_()
    similarity = (torch.eye(4) + shift).requires_grad_()
    value = LOSSES[name](logits, similarity)
    (grad,) = torch.autograd.grad(value, logits)
    assert value.isfinite()
    assert grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_what_would_broadcast_to_something_else_is_refused(name: str) -> None:
    square, shapes = torch.zeros(3, 3), [(3, 4), (3,), (1, 1)]
    plain = name in PLAIN_LOSSES
    for shape in shapes[:2] if plain else shapes:
        logits = torch.zeros(shape) if plain else square
        with pytest.raises(InputError, match=r"must be \(m, m\)"):
            LOSSES[name](logits, torch.zeros(shape))
