from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from lors.selection.candidates import Candidates
from lors.selection.facility_location import similarities
from lors.selection.graph_cut import graph_cut
from tests.selection.test_candidates import some_pairs


def value(similar: np.ndarray, picks: list[int], weight: float) -> float:
    inside = similar[np.ix_(picks, picks)].sum()
    return float(similar[:, picks].sum() - weight * inside)


@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_every_pick_adds_most(weight: float) -> None:
    similar = similarities(Candidates(*some_pairs(30))).astype(np.float64)
    picks, gains = graph_cut(similar, 10, weight)
    for k in range(10):
        before = picks[:k].tolist()
        others = [pair for pair in range(30) if pair not in before]
        added = {
            pair: value(similar, [*before, pair], weight) - value(similar, before, weight)
            for pair in others
        }
        assert picks[k] == max(added, key=lambda pair: added[pair])
        assert gains[k] == pytest.approx(added[int(picks[k])])


def test_with_half_of_m_over_n_the_best_cut_has_the_least_mean_discrepancy() -> None:
    similar = similarities(Candidates(*some_pairs(9))).astype(np.float64)
    every = [list(picks) for picks in combinations(range(9), 3)]

    def discrepancy(picks: list[int]) -> float:
        inside, across = similar[np.ix_(picks, picks)].mean(), similar[:, picks].mean()
        return float(inside - 2 * across + similar.mean())

    cuts = [value(similar, picks, 9 / 6) for picks in every]
    assert int(np.argmax(cuts)) == int(np.argmin([discrepancy(picks) for picks in every]))
