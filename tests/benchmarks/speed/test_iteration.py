from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.speed.iteration import Published, ratios
from lors.config import load_config
from lors.matching import matcher_of
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator


@pytest.mark.parametrize("scope", ["image", "heads"])
@pytest.mark.parametrize("gradient", ["tesla", "exact"])
def test_ours_and_the_published_iteration_learn_the_same(
    scope: str, gradient: str, tmp_path: Path
) -> None:
    overrides = [f"encoder.scope={scope}", f"matching.gradient={gradient}", "dtype=float64"]
    overrides += ["encoder.image_head=linear"] if scope == "heads" else []
    setting = setting_of(load_config("tiny", overrides))
    ours, plain = start_pairs(setting), start_pairs(setting)
    matcher_of(setting).backward(ours, generator(0))
    Published(setting, tmp_path).iteration(plain, generator(0))
    for part in ("images", "texts", "similarity.omega", "similarity.right"):
        a, b = (pairs.get_parameter(part).grad for pairs in (ours, plain))
        assert a is not None
        assert b is not None
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max()))


def test_it_runs_small() -> None:
    small = ("data.pairs.train=40", "distill.budget=12", "matching.steps=1", "similarity.rank=2")
    lines = ratios(2, cases={"tiny": ()}, changes=small)
    assert lines[0].faster > 0
    assert "N=11" in lines[0].case
