from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from lors.selection.candidates import Candidates
from lors.selection.k_center import k_center
from lors.system.errors import InputError
from tests.selection.test_candidates import joint, mapped, some_pairs


def distances(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.norm(matrix[:, None] - matrix, axis=2)


def brute_force(matrix: np.ndarray, count: int) -> tuple[list[int], list[float]]:
    """Compare every candidate with every centre at every step."""
    apart, from_mean = distances(matrix), np.linalg.norm(matrix, axis=1)
    picks, scores = [int(from_mean.argmin())], [float(from_mean.min())]
    while len(picks) < count:
        nearest = apart[:, picks].min(1)
        picks.append(int(nearest.argmax()))
        scores.append(float(nearest.max()))
    return picks, scores


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("captions", ["own", "drawn"])
def test_every_pick_is_the_farthest_of_all(seed: int, captions: str) -> None:
    pairs = some_pairs(40, seed, captions)
    picks, scores = k_center(Candidates(*pairs), 15)
    expected, apart = brute_force(joint(*pairs), 15)
    assert picks.tolist() == expected
    np.testing.assert_allclose(scores, apart, atol=1e-5)


@pytest.mark.parametrize("chunk", [1, 9, 64])
def test_files_and_chunks_do_not_change_the_picks(chunk: int, tmp_path: Path) -> None:
    pairs = some_pairs(captions="drawn")
    expected, _ = k_center(Candidates(*pairs), 20)
    picks, _ = k_center(Candidates(*mapped(pairs, tmp_path), chunk), 20)
    assert picks.tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_no_choice_covers_the_pairs_with_half_the_radius(seed: int) -> None:
    pairs = some_pairs(12, seed)
    apart = distances(joint(*pairs))
    picks, _ = k_center(Candidates(*pairs), 3)
    best = min(apart[:, centres].min(1).max() for centres in combinations(range(12), 3))
    assert best <= apart[:, picks].min(1).max() <= 2 * best


def test_distances_never_grow_after_the_first_centre() -> None:
    _, scores = k_center(Candidates(*some_pairs()), 50)
    assert (np.diff(scores[1:]) <= 0).all()


def test_duplicates_come_last_and_nothing_is_picked_twice() -> None:
    images, texts, _ = some_pairs(6)
    rows = np.array([0, 1, 2, 3, 4, 5] * 3)
    picks, scores = k_center(Candidates(images[rows], texts, rows), 18)
    assert sorted(picks) == list(range(18))
    assert sorted(rows[picks[:6]]) == [0, 1, 2, 3, 4, 5]
    assert (scores[1:6] > 0.1).all()
    np.testing.assert_allclose(scores[6:], 0, atol=1e-2)


def test_pairs_that_are_all_the_same_can_be_chosen() -> None:
    same = np.ones((5, 3), np.float32)
    picks, scores = k_center(Candidates(same, same, np.arange(5)), 5)
    assert sorted(picks) == [0, 1, 2, 3, 4]
    assert not scores.any()


@pytest.mark.parametrize("count", [0, -1, 51])
def test_more_than_there_are_cannot_be_chosen(count: int) -> None:
    with pytest.raises(InputError, match=f"cannot choose {count} of 50 pairs: ask for 1 to 50"):
        k_center(Candidates(*some_pairs()), count)
