from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.speed.experts import Problem, ratios
from lors.encoders import FlatModel


@pytest.mark.parametrize("scope", ["heads", "image"])
def test_ours_and_the_reference_train_the_same_network(scope: str, tmp_path: Path) -> None:
    problem = Problem(tmp_path, "nf_resnet_tiny", scope, count=6, size=32, batch_size=4)
    fast, plain = problem.model(), problem.model()
    flat = FlatModel(fast)
    before = flat.flatten(fast)
    problem.fast(fast)
    problem.plain(plain)
    assert not torch.equal(flat.flatten(fast), before)
    torch.testing.assert_close(flat.flatten(fast), flat.flatten(plain), rtol=1e-4, atol=1e-5)


def test_a_line_for_each_scope() -> None:
    lines = ratios(2, trunk="nf_resnet_tiny", count=4, size=32, batch_size=2)
    assert [line.case.partition(":")[0] for line in lines] == ["scope heads", "scope image"]
    assert all(line.passes is not None for line in lines)
