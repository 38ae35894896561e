from __future__ import annotations

import pytest
import torch

from lors.system.estimate import PATIENCE, Cost, estimate

CPU = torch.device("cpu")


def test_costs_are_carried_on_in_every_direction() -> None:
    def work(steps: float, pairs: float) -> Cost:
        return Cost(PATIENCE + 3 * steps + 2 * pairs + 5 * steps * pairs, 10 + steps * pairs)

    cost = estimate(work, [1, 2], [8, 20], CPU)
    assert not cost.whole
    assert (cost.seconds, cost.memory) == pytest.approx((PATIENCE + 24 + 40 + 800, 170))


def test_what_is_affordable_is_measured_in_full() -> None:
    assert estimate(lambda n: Cost(n**3 / 1000, 1), [1], [4], CPU) == Cost(0.064, 1)
    assert not estimate(lambda n: Cost(n / 1000, 1e15), [1], [4], CPU).whole


def test_a_burst_of_load_is_not_multiplied() -> None:
    slowed = {(1, 1): 20.0, (1, 2): 21.0, (2, 1): 39.0, (2, 2): 400.0}
    cost = estimate(lambda *sizes: Cost(slowed[sizes], 1), [1, 1], [10, 10], CPU)
    assert cost.seconds <= 20 * 10 * 10


def test_a_size_that_is_full_at_once_is_measured_once() -> None:
    seen = []

    def work(*sizes: float) -> Cost:
        seen.append(sizes)
        return Cost(1.0, 1.0)

    assert estimate(work, [1, 0.5], [1, 1.0], CPU).whole
    assert seen == [(1, 0.5), (1, 1.0)]
