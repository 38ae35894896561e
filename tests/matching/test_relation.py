from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.config.matchers import RelationOptions
from lors.encoders import EncodedSplit
from lors.matching import matcher_of
from lors.matching.relation import (
    RelationMatcher,
    hyperbolic_squares,
    lifted,
    range_and_residual,
    relation,
)
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import generator
from tests.conftest import altered

from .differences import assert_gradient_is_slope

OPTIONS = [
    "matching.kind=relation",
    "matching.rank=3",
    "encoder.scope=heads",
    "encoder.space=features",
    "encoder.image_head=linear",
]


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", ["dtype=float64", *OPTIONS]))


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator(*shape), dtype=torch.double)


def test_range_and_residual_of_the_real_relation_are_its_singular_values_cut_in_two() -> None:
    real = drawn(6, 6)
    span, rest = range_and_residual(real, real, 2)
    p, sigma, q = torch.linalg.svd(real)
    torch.testing.assert_close(span, torch.diag(sigma[:2]))
    torch.testing.assert_close(rest, p[:, 2:] @ torch.diag(sigma[2:]) @ q[2:])


def test_a_relation_of_the_range_leaves_no_residual() -> None:
    real = drawn(6, 6)
    p, _, q = torch.linalg.svd(real)
    other = p[:, :2] @ drawn(2, 2) @ q[:2]
    span, rest = range_and_residual(real, other, 2)
    assert span.norm().item() == pytest.approx(other.norm().item())
    assert rest.norm().item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("curvature", [0.3, 1.0])
def test_distances_from_the_centre_are_twice_the_lengths_of_vectors(curvature: float) -> None:
    vectors = drawn(5, 4)
    squares = hyperbolic_squares(torch.zeros(5, 4).double(), lifted(vectors, curvature), curvature)
    torch.testing.assert_close(squares.sqrt(), 2 * vectors.norm(dim=1))


def test_the_distance_is_that_of_the_upper_half_plane() -> None:
    """Another model of the same space, whose points are images under a Möbius map."""
    ball = torch.tensor([[0.3, -0.2], [-0.5, 0.4]], dtype=torch.double)
    a, b = (1j * (1 + z) / (1 - z) for z in (complex(*point) for point in ball.tolist()))
    cosh = 1 + abs(a - b) ** 2 / (2 * a.imag * b.imag)
    found = hyperbolic_squares(ball[:1], ball[1:], 1.0).item()
    assert found**0.5 == pytest.approx(math.acosh(cosh))


def test_near_the_centre_space_is_flat() -> None:
    x, y = 1e-3 * drawn(5, 4), 1e-3 * drawn(5, 3).mean(1, keepdim=True)
    found = hyperbolic_squares(lifted(x, 1.0), lifted(x + y, 1.0), 1.0)
    torch.testing.assert_close(found, 4 * (y.expand(5, 4)).square().sum(1), rtol=1e-3, atol=0)


def test_real_pairs_are_at_no_distance_from_themselves(double: Setting) -> None:
    real, model, index = double.real["train"], double.flat.model, np.arange(7)
    first = np.searchsorted(real.owner, index)
    seven = EncodedSplit(real.images[:7], real.texts[first], index)
    options = RelationOptions(rank=3)
    matcher = RelationMatcher(altered(double, real={**double.real, "train": seven}), options)
    pairs = SyntheticPairs(seven.inputs(index, model), seven.captions(index, model)).double()
    assert float(matcher.backward(pairs, generator(0))) == pytest.approx(0, abs=1e-9)
    pairs.texts.data = pairs.texts.data.roll(1, 0)  # other pairs of the same images and texts
    assert float(matcher.backward(pairs, generator(0))) > 0.1


def test_a_similarity_that_exchanges_texts_is_texts_exchanged() -> None:
    u, v, order = drawn(5, 3), drawn(5, 4)[:, :3], torch.tensor([2, 0, 1, 4, 3])
    torch.testing.assert_close(relation(u, v, torch.eye(5).double()[order]), relation(u, v[order]))


def test_gradient_equals_central_differences(double: Setting) -> None:
    pairs, matcher = start_pairs(double), matcher_of(double)
    right = pairs.get_parameter("similarity.right")
    right.data += 0.1 * torch.randn(right.shape, generator=generator("right")).to(right)
    names = ("images", "texts", "similarity.omega", "similarity.left", "similarity.right")
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(0))), pairs, names
    )


def test_experts_must_have_the_epochs_of_its_networks() -> None:
    with pytest.raises(InputError, match="begins at expert epoch 9"):
        load_config("tiny", [*OPTIONS, "matching.min_start_epoch=9"])
