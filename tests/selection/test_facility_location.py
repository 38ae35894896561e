from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from lors.selection.candidates import Candidates
from lors.selection.facility_location import facility_location, similarities
from lors.system.errors import InputError
from tests.selection.test_candidates import joint, some_pairs


def value(similar: np.ndarray, picks: list[int]) -> float:
    return float(similar[:, picks].max(1).sum())


def brute_force(similar: np.ndarray, count: int) -> list[int]:
    """Ask every pair at every step."""
    picks: list[int] = []
    while len(picks) < count:
        others = [pair for pair in range(len(similar)) if pair not in picks]
        values = [value(similar, [*picks, pair]) for pair in others]
        picks.append(others[int(np.argmax(values))])
    return picks


@pytest.mark.parametrize("seed", range(3))
def test_lazy_picks_are_those_of_asking_every_pair(seed: int) -> None:
    similar = similarities(Candidates(*some_pairs(40, seed))).astype(np.float64)
    picks, gains = facility_location(similar, 12)
    assert picks.tolist() == brute_force(similar, 12)
    assert gains.sum() == pytest.approx(value(similar, picks.tolist()))
    assert (np.diff(gains) <= 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_choice_is_better_by_more_than_the_bound(seed: int) -> None:
    similar = similarities(Candidates(*some_pairs(12, seed)))
    found = value(similar, facility_location(similar, 3)[0].tolist())
    best = max(value(similar, list(picks)) for picks in combinations(range(12), 3))
    assert (1 - np.exp(-1)) * best <= found <= best


def test_similarities_are_cosines_of_joint_features_and_never_negative() -> None:
    pairs = some_pairs(9)
    unit = joint(*pairs) / np.linalg.norm(joint(*pairs), axis=1, keepdims=True)
    expected = np.maximum(unit @ unit.T, 0)
    np.testing.assert_allclose(similarities(Candidates(*pairs, 4)), expected, atol=1e-5)


def test_duplicates_are_chosen_last() -> None:
    images, texts, _ = some_pairs(4)
    rows = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    picks, gains = facility_location(similarities(Candidates(images[rows], texts, rows)), 8)
    assert sorted(rows[picks[:4]]) == [0, 1, 2, 3]
    np.testing.assert_allclose(gains[4:], 0, atol=1e-4)


def test_more_pairs_than_memory_can_compare_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lors.selection.facility_location.total_memory", lambda device: 2**10)
    with pytest.raises(InputError, match="for 50 pairs: choose k-center or medoids"):
        similarities(Candidates(*some_pairs(50)))
