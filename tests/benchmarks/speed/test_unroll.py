from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from benchmarks.speed.unroll import gradient, plain_iteration, random_features, ratios
from lors.encoders import DualEncoder
from lors.encoders.heads import MlpHead
from lors.matching import matcher_of
from lors.matching.hindsight import HindsightMatcher
from lors.starts import start_pairs
from lors.system.seeding import generator
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


SMALL = [
    "experts={count: 2, epochs: 1}",
    "encoder.embed_dim=6",
    "distill.budget=10",
    "similarity.rank=2",
    "matching.steps=3",
    "matching.real_batch_size=8",
]


def test_a_whole_iteration_is_the_same_either_way(tmp_path: Path) -> None:
    setting = random_features(["dtype=float64", f"experts.folder={tmp_path}", *SMALL], (9, 7), 40)
    matcher, found = matcher_of(setting), []
    assert isinstance(matcher, HindsightMatcher)
    thetas = [setting.flat.flatten(each) for each in matcher.teachers.networks]
    for step in (matcher.backward, partial(plain_iteration, setting, thetas)):
        pairs = start_pairs(setting)
        loss = step(pairs, generator(0))
        found.append([torch.tensor(float(loss)), *(p.grad for p in pairs.parameters())])
    for short, long in zip(*found, strict=True):
        torch.testing.assert_close(short, long, rtol=1e-8, atol=1e-12)


def test_two_lines() -> None:
    gradients, whole = ratios(2, pairs=4, steps=2, sizes=(8, 6), settings=SMALL)
    assert gradients.case == "2 steps on 4 pairs of 8 and 6 features"
    assert gradients.ours > 0
    assert whole.case.startswith("a whole iteration, 8 pairs, 2 teachers")
    assert whole.passes is not None
