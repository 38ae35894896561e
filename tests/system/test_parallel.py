"""A batch divided between ranks gives the numbers of the whole one, to any order of derivative."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lors.config import load_config
from lors.encoders import FlatModel
from lors.losses import wbce
from lors.matching.meta_gradient import META_GRADIENTS, Inner
from lors.matching.second_order import DERIVATIVES
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.parallel import my_rows
from lors.system.seeding import generator
from lors.training import Batch
from tests.ranks import run_ranks

SETTINGS = ["dtype=float64", "encoder.image_size=8", "data.pairs.train=20"]
SIZES = (5, 3, 6)
"""Of the batches; with four ranks, one of them has nothing of the second."""


def products(gradient: str, derivative: str, divided: bool) -> list[float]:
    """Of the meta-gradient of a small inner run with drawn directions; and its objective."""
    setting = setting_of(load_config("tiny", SETTINGS))
    model = setting.model("network")
    flat, draw = FlatModel(model), generator("batches")
    model.divided = divided
    start = flat.flatten(model)
    part = my_rows if divided else lambda rows: rows
    whole = [start_pairs(setting).images.detach()[:1].expand(m, -1, -1, -1) for m in SIZES]
    images = [x + torch.randn(x.shape, generator=draw, dtype=x.dtype) for x in whole]
    texts = [torch.randn(m, 16, generator=draw, dtype=start.dtype) for m in SIZES]
    blocks = [torch.eye(m, dtype=start.dtype) for m in SIZES]
    batches = [
        Batch(part(x).requires_grad_(), part(y).requires_grad_(), s.requires_grad_())
        for x, y, s in zip(images, texts, blocks, strict=True)
    ]
    rates = torch.tensor([0.1, 0.2], dtype=start.dtype)
    target = start + torch.randn(start.shape, generator=draw, dtype=start.dtype)

    def loss(theta: torch.Tensor, batch: Batch) -> torch.Tensor:
        return wbce(flat(theta, batch.inputs, batch.texts), batch.similarity)

    inner = Inner(
        loss,
        start,
        batches,
        rates,
        flat.sides,
        lambda theta: (theta - target).square().sum(),
        DERIVATIVES[derivative],
    )
    found = META_GRADIENTS[gradient](inner)
    directions = [
        [torch.randn(t.shape, generator=draw, dtype=start.dtype) for t in (x, y, s)]
        for x, y, s in zip(images, texts, blocks, strict=True)
    ]
    sums = torch.zeros(3, dtype=start.dtype)
    for batch, (x, y, s) in zip(found.batches, directions, strict=True):
        sums[0] += (batch.inputs * part(x)).sum()
        sums[1] += (batch.texts * part(y)).sum()
        sums[2] += (batch.similarity * s).sum()
    return [*sums.tolist(), *found.rates.tolist(), found.objective.item()]


WAYS = [("exact", "double"), ("exact", "central"), ("tesla", "forward"), ("unrolled", "double")]


def all_ways(divided: bool) -> list[Any]:
    return [products(gradient, derivative, divided) for gradient, derivative in WAYS]


@pytest.mark.parametrize("size", [2, 4])
def test_a_divided_batch_has_the_meta_gradient_of_the_whole(size: int) -> None:
    expected = torch.tensor(all_ways(False), dtype=torch.float64)
    found = torch.tensor(run_ranks(size, all_ways, True), dtype=torch.float64)
    # Images and texts are parts, whose sum is the whole; S, rates and objective are whole on each.
    torch.testing.assert_close(found[..., :2].sum(0), expected[:, :2], rtol=1e-6, atol=0)
    for one in found:
        torch.testing.assert_close(one[:, 2:], expected[:, 2:], rtol=1e-6, atol=0)


def test_rows_are_divided_in_order() -> None:
    parts = run_ranks(4, "tests.system.test_parallel:parts")
    assert parts == [[[0, 1], [0], []], [[2, 3], [1], []], [[4], [2], []], [[5], [], []]]


def parts() -> list[list[int]]:
    return [my_rows(torch.arange(rows)).tolist() for rows in (6, 3, 0)]
