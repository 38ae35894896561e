from __future__ import annotations

from dataclasses import asdict

import pytest

from benchmarks.speed.evaluation import Problem, fast, plain, ratios
from lors.config import EvaluateConfig


def test_ours_and_the_reference_reach_the_same_recalls() -> None:
    config = EvaluateConfig(epochs=4, checks=2, seeds=2, batch_size=8)
    problem = Problem(20, 30, config)
    ours, reference = fast(problem), plain(problem)
    assert ours[0] != ours[1]
    for mine, theirs in zip(ours, reference, strict=True):
        assert asdict(mine.chosen) == pytest.approx(asdict(theirs.chosen), abs=4)  # one image
        assert asdict(mine.last) == pytest.approx(asdict(theirs.last), abs=4)


def test_a_line_for_each_size() -> None:
    lines = ratios(2, sizes=(4, 6), images=10, epochs=2)
    assert [line.case.partition(",")[0] for line in lines] == ["4 pairs", "6 pairs"]
