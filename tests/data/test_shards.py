from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lors.data.shards import GAP, Shard, ShardedRows
from lors.files.arrays import read_array
from lors.system.errors import InputError


def saved(folder: Path, *arrays: np.ndarray) -> list[Shard]:
    shards = []
    for number, array in enumerate(arrays):
        path = folder / f"{number}.npy"
        np.save(path, array)
        shards.append(Shard.of(read_array(path), path))
    return shards


@pytest.fixture
def whole() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((10_000, 8)).astype(np.float16)


@pytest.fixture
def rows(tmp_path: Path, whole: np.ndarray) -> ShardedRows:
    """Shards of all kinds: other types and byte orders, none at all, in Fortran's order."""
    parts = [
        whole[:10],
        whole[10:10],
        whole[10:9000].astype(">f8"),
        np.asfortranarray(whole[9000:9500]),
        whole[9500:].reshape(-1, 2, 8).astype(np.float32),
    ]
    return ShardedRows(saved(tmp_path, *parts))


@pytest.mark.parametrize(
    "index",
    [
        slice(None),
        slice(5, 9700),
        slice(3, 3),
        slice(9999, 2, -700),
        np.array([9999, 0, 5, 5, -1, 8999, 9000]),
        np.arange(0, 10_000, 3),
        np.array([], int),
    ],
)
def test_rows_are_those_of_one_array(
    rows: ShardedRows, whole: np.ndarray, index: slice | np.ndarray
) -> None:
    found = rows[index]
    assert found.dtype == rows.dtype == np.float32
    np.testing.assert_array_equal(found, whole[index].astype(np.float32))
    np.testing.assert_array_equal(rows[17], whole[17].astype(np.float32))
    assert (len(rows), rows.shape, rows.ndim) == (10_000, (10_000, 8), 2)


def test_some_of_the_rows_are_rows_again(rows: ShardedRows, whole: np.ndarray) -> None:
    chosen = np.random.default_rng(1).permutation(10_000)[:777]
    some = rows.of(chosen).of(np.arange(5, 700))
    np.testing.assert_array_equal(some[10:300], whole[chosen][15:305].astype(np.float32))
    assert some.nbytes == 695 * 8 * 4


def test_rows_that_are_not_there_are_refused(rows: ShardedRows) -> None:
    for index in (10_000, -10_001, np.array([3, 10_000])):
        with pytest.raises(IndexError, match="there are 10000 rows"):
            rows[index]


def test_rows_far_apart_are_read_one_by_one(tmp_path: Path) -> None:
    width = GAP // 4
    (shard,) = saved(tmp_path, np.arange(50 * width, dtype=np.float32).reshape(50, width))
    found = list(shard.take(np.array([0, 1, 1, 10, 49])))
    assert [(part.start, part.stop) for part, _ in found] == [(0, 3), (3, 4), (4, 5)]
    assert [block[:, 0].tolist() for _, block in found] == [
        [0, width, width],
        [10 * width],
        [49 * width],
    ]


def test_a_file_that_changed_is_named(tmp_path: Path, rows: ShardedRows) -> None:
    data = (tmp_path / "2.npy").read_bytes()
    (tmp_path / "2.npy").write_bytes(data[:-8])
    with pytest.raises(InputError, match=r"2\.npy' is shorter than it was"):
        rows[:]
    (tmp_path / "2.npy").unlink()
    with pytest.raises(InputError, match=r"cannot read the array .*2\.npy"):
        rows[8999]
