from __future__ import annotations

import torch

from benchmarks.speed.unroll import gradient, ratios
from lors.encoders import DualEncoder
from lors.encoders.heads import MlpHead
from lors.training import Batch


def test_both_ways_agree() -> None:
    draw = torch.Generator().manual_seed(0)
    model = DualEncoder(MlpHead(9, 6), MlpHead(7, 6)).double()
    parts = [torch.randn(5, size, generator=draw).double() for size in (9, 7, 5)]
    whole = Batch(*(part.requires_grad_() for part in parts))
    ways = [gradient(model, whole, 3, short) for short in (True, False)]
    for short, long in zip(*ways, strict=True):
        assert long.abs().max() > 1e-6
        torch.testing.assert_close(short, long)


def test_one_line() -> None:
    (line,) = ratios(2, pairs=4, steps=2, sizes=(8, 6))
    assert line.case == "2 steps on 4 pairs of 8 and 6 features"
    assert line.ours > 0
