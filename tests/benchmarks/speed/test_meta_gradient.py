from __future__ import annotations

import pytest
import torch

from benchmarks.speed.meta_gradient import Problem, ratios, reference
from lors.matching.second_order import DERIVATIVES


@pytest.mark.parametrize("gradient", ["tesla", "exact"])
def test_ours_and_the_reference_compute_the_same(gradient: str) -> None:
    problem = Problem("nf_resnet_tiny", 16, pairs=4, steps=3)
    ours = problem.ours(gradient, DERIVATIVES["double"]).batches
    theirs = reference(problem.inner(), carry=gradient == "exact")
    for mine, plain in zip(ours, theirs, strict=True):
        for a, b in zip(mine, plain, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * float(b.abs().max()))


def test_every_derivative_has_a_line_and_one_is_chosen() -> None:
    lines = ratios(2, networks=[("nf_resnet_tiny", 16, 4)])
    assert len(lines) == 2 * len(DERIVATIVES)
    chosen = [line for line in lines if line.case.endswith("(auto)")]
    assert [line.case.split(", ")[-1] for line in chosen] == ["one-sided (auto)"] * 2
    for line in lines:
        assert line.passes is not None
        assert line.more["error"] < 0.01
        assert line.more["memory"] > 0
