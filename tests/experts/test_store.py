from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from lors.artifacts import save
from lors.errors import InputError
from lors.experts import TrajectoryStore

NOTHING = np.zeros((3, 2), dtype=bool)
ORIGIN = {"data": "flickr", "encoder": {"image": "nfnet"}}


def test_snapshots_come_back_as_they_went_in(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    trajectory, learned = torch.randn(4, 9), np.array([[True, False], [False, True], [True, True]])
    store.add(0, trajectory, learned)
    assert torch.equal(store.snapshots(0, [1, 3]), trajectory[[1, 3]])
    assert np.array_equal(store.learned(0), learned)


def test_experts_without_what_was_learned_say_what_to_do(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    save(store.path(0), "trajectory", {"origin": ORIGIN}, {"theta": torch.zeros(2, 3)})
    assert store.snapshots(0, [1]).shape == (1, 3)
    with pytest.raises(InputError, match="delete them"):
        store.learned(0)


def test_only_the_snapshots_asked_for_are_read(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    store.add(0, torch.stack([torch.full((1000,), float(i)) for i in range(4)]), NOTHING)
    # Overwrite the last snapshot on disk: reading the others must not notice.
    path = store.path(0)
    content = bytearray(path.read_bytes())
    last = content.rindex(struct.pack("<f", 3.0) * 1000)
    content[last : last + 4000] = b"\xff" * 4000
    path.write_bytes(content)
    assert torch.equal(store.snapshots(0, [0, 2])[1], torch.full((1000,), 2.0))
    assert store.snapshots(0, [3]).isnan().all()


def test_missing_lists_what_is_not_there(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    store.add(1, torch.zeros(2, 3), NOTHING)
    assert store.missing(3) == [0, 2]


def test_experts_of_another_origin_are_refused_by_what_differs(tmp_path: Path) -> None:
    TrajectoryStore(tmp_path, ORIGIN).add(0, torch.zeros(2, 3), NOTHING)
    other = {"data": "flickr", "encoder": {"image": "resnet50"}}
    with pytest.raises(InputError, match=r"encoder\.image: nfnet, not resnet50"):
        TrajectoryStore(tmp_path, other)
    TrajectoryStore(tmp_path, ORIGIN)


def test_a_truncated_expert_is_refused(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    store.add(0, torch.zeros(2, 3), NOTHING)
    path = store.path(0)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged"):
        TrajectoryStore(tmp_path, ORIGIN)
