from __future__ import annotations

from benchmarks.speed.threads import ratios


def test_it_runs_small() -> None:
    small = (
        "data.pairs={train: 40, val: 10, test: 10}",
        "experts={count: 1, epochs: 2}",
        "distill.budget=12",
        "matching={steps: 1, max_start_epoch: 1, expert_epochs: 1}",
        "similarity.rank=2",
        "encoder.image_size=8",
        "evaluate={seeds: 2, epochs: 1, checks: 1}",
    )
    lines = ratios(2, cases={"tiny": ()}, counts=(), changes=small)
    assert [line.case for line in lines] == [
        f"tiny, {what}, {way}" for what in ("iteration", "evaluation") for way in ("as chosen",)
    ]
    assert all(line.faster > 0 for line in lines)
