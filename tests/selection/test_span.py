from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lors.data.shards import Features, Shard, ShardedRows
from lors.files.arrays import read_array
from lors.selection.candidates import Candidates
from lors.selection.herding import herding
from lors.selection.k_center import k_center
from lors.selection.score import best_fitting
from lors.selection.span import PARTS, Span
from lors.system import ranks
from tests.ranks import run_ranks

CHUNK, PAIRS, COUNT = 16, 300, 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pairs in three shards, with duplicates, so that there are ties."""
    rng = np.random.default_rng(0)
    for side, per_pair in (("images", 1), ("texts", 2)):
        rows = rng.standard_normal((PAIRS * per_pair, 6)).astype(np.float32)
        rows[per_pair * 200 : per_pair * 260] = rows[per_pair * 20 : per_pair * 80]
        for number, part in enumerate(np.array_split(rows, 3)):
            np.save(tmp_path / f"{side}-{number}.npy", part)
    return tmp_path


def features(folder: Path, in_files: bool) -> tuple[Features, Features, np.ndarray]:
    sides: list[Features] = []
    for side in ("images", "texts"):
        paths = sorted(folder.glob(f"{side}-*.npy"))
        rows = ShardedRows([Shard.of(read_array(path), path) for path in paths])
        sides.append(rows if in_files else rows[:])
    return sides[0], sides[1], np.arange(PAIRS) * 2


def choices(folder: str, in_files: bool) -> list[list[list[float]]]:
    pairs = features(Path(folder), in_files)
    candidates = Candidates(*pairs, CHUNK)
    chosen = [herding(candidates, COUNT), k_center(candidates, COUNT)]
    chosen.append(best_fitting(*pairs, COUNT, CHUNK))
    return [[picks.tolist(), scores.tolist()] for picks, scores in chosen]


def both(folder: str) -> list[list[list[list[float]]]]:
    return [choices(folder, in_files) for in_files in (False, True)]


def spans(cases: list[list[int]]) -> list[list[int]]:
    found = []
    for pairs, chunk in cases:
        span = Span(pairs, chunk)
        covered = [pair for part in span.chunks() for pair in range(part.start, part.stop)]
        assert covered == list(range(span.start, span.stop))
        assert all(part.start % chunk == 0 for part in span.chunks())
        found.append([span.start, span.stop])
    return found


@pytest.mark.parametrize("size", [2, 4])
def test_any_number_of_ranks_chooses_exactly_what_one_would(folder: Path, size: int) -> None:
    alone = both(str(folder))
    assert run_ranks(size, both, str(folder)) == [alone] * size


def test_pairs_in_files_are_chosen_as_those_in_memory(folder: Path) -> None:
    in_files, in_memory = (choices(str(folder), where) for where in (True, False))
    for (picks, scores), (same, near) in zip(in_files, in_memory, strict=True):
        assert picks == same
        np.testing.assert_allclose(scores, near, rtol=1e-5)


def test_ranks_divide_all_pairs_even_if_there_are_more_ranks_than_chunks() -> None:
    cases = [[300, 16], [10, 4], [3, 16], [PARTS * 5 + 7, 2]]
    for (pairs, _), *found in zip(cases, *run_ranks(4, spans, cases), strict=True):
        assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
        assert found[-1][1] == pairs


def broken(folder: str) -> None:
    images, texts, captions = features(Path(folder), in_files=True)
    if ranks.rank() == 1:
        images = images[:]
        images[-1] = np.nan
    Candidates(images, texts, captions, CHUNK)


def test_a_broken_pair_of_one_rank_ends_all(folder: Path) -> None:
    with pytest.raises(AssertionError, match=r"rank 0: [\s\S]*could not reach[\s\S]*pair 299"):
        run_ranks(2, broken, str(folder), limit=30)
