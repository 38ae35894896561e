from __future__ import annotations

import torch
from torch import nn

from benchmarks.speed.frozen import gradient, plain_gradient, ratios
from lors.encoders import DualEncoder
from lors.encoders.folding import folded
from lors.encoders.image import has_batch_norm, image_trunk


def test_both_ways_agree() -> None:
    trunk = image_trunk("resnet10t", None, 32).eval().requires_grad_(False).double()
    model = DualEncoder(nn.Identity(), nn.Identity(), trunk=folded(trunk, 32))
    assert not has_batch_norm(model)
    photos = torch.rand(3, 3, 32, 32, dtype=torch.double, requires_grad=True)
    torch.testing.assert_close(gradient(model, photos), plain_gradient(trunk, photos))


def test_a_line_for_each_size() -> None:
    lines = ratios(2, name="resnet10t", sizes=(32, 40), count=2)
    assert [line.case for line in lines] == [f"resnet10t, 2 photos, {size} px" for size in (32, 40)]
    assert all(line.ours > 0 for line in lines)
