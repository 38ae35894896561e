from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lors.selection.candidates import Candidates
from lors.selection.herding import herding
from lors.system.errors import InputError
from tests.selection.test_candidates import joint, mapped, some_pairs


def brute_force(matrix: np.ndarray, count: int) -> tuple[list[int], list[float]]:
    """Try every candidate at every step."""
    picks: list[int] = []
    distances = []
    for _ in range(count):
        tried = {
            i: float(np.linalg.norm(matrix.mean(0) - matrix[[*picks, i]].mean(0)))
            for i in range(len(matrix))
            if i not in picks
        }
        picks.append(min(tried, key=lambda i: tried[i]))
        distances.append(tried[picks[-1]])
    return picks, distances


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("captions", ["own", "drawn"])
def test_every_pick_is_the_best_of_all(seed: int, captions: str) -> None:
    pairs = some_pairs(40, seed, captions)
    picks, scores = herding(Candidates(*pairs), 15)
    expected, distances = brute_force(joint(*pairs), 15)
    assert picks.tolist() == expected
    np.testing.assert_allclose(scores, distances, atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 9, 64])
def test_files_and_chunks_do_not_change_the_picks(chunk: int, tmp_path: Path) -> None:
    pairs = some_pairs(captions="drawn")
    expected, _ = herding(Candidates(*pairs), 20)
    picks, _ = herding(Candidates(*mapped(pairs, tmp_path), chunk), 20)
    assert picks.tolist() == expected.tolist()


def test_all_pairs_have_the_mean_of_all() -> None:
    picks, scores = herding(Candidates(*some_pairs()), 50)
    assert sorted(picks) == list(range(50))
    assert scores[-1] == pytest.approx(0, abs=1e-6)


def test_herding_matches_the_mean_better_than_chance() -> None:
    pairs = some_pairs(200)
    _, scores = herding(Candidates(*pairs), 20)
    matrix, rng = joint(*pairs), np.random.default_rng(0)
    chance = [np.linalg.norm(matrix[rng.choice(200, 20, False)].mean(0)) for _ in range(100)]
    assert scores[-1] < min(chance) / 2


def test_fewer_picks_are_the_first_of_more() -> None:
    candidates = Candidates(*some_pairs())
    assert herding(candidates, 5)[0].tolist() == herding(candidates, 12)[0][:5].tolist()


@pytest.mark.parametrize("count", [0, -1, 51])
def test_more_than_there_are_cannot_be_chosen(count: int) -> None:
    with pytest.raises(InputError, match=f"cannot choose {count} of 50 pairs: ask for 1 to 50"):
        herding(Candidates(*some_pairs()), count)
