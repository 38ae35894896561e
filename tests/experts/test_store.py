from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from lors.experts import Snapshot, TrajectoryStore, train_missing
from lors.files.artifacts import save
from lors.system.errors import InputError
from lors.system.progress import Silent

ORIGIN = {"data": "flickr", "encoder": {"image": "nfnet"}}


def snapshots(trajectory: torch.Tensor) -> list[Snapshot]:
    """An expert of these parameters that learned a pair of two at every other epoch."""
    return [Snapshot(t, np.array([e % 2 == 1, False])) for e, t in enumerate(trajectory)]


def test_snapshots_come_back_as_they_went_in(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    trajectory = torch.randn(4, 9)
    store.add(0, snapshots(trajectory))
    assert torch.equal(store.snapshots(0, [1, 3]), trajectory[[1, 3]])
    assert store.learned(0).tolist() == [[True, False], [False, False], [True, False]]
    assert [path.name for path in tmp_path.iterdir()] == ["expert-000.safetensors"]


def test_compact_snapshots_are_few_and_small_and_near(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN, epochs=[0, 1, 2, 10])
    start, moved = torch.randn(10_000), 1e-3 * torch.randn(11, 10_000)
    trajectory = start + moved.cumsum(0) - moved[0]
    store.add(0, snapshots(trajectory))
    assert store.kept(0) == [0, 1, 2, 10]
    found = store.snapshots(0, [0, 2, 10])
    assert torch.equal(found[0], trajectory[0])
    # The error is relative to how far training went, not to the size of the parameters.
    for here, epoch in zip(found[1:], (2, 10), strict=True):
        distance = (trajectory[epoch] - start).norm()
        assert (here - trajectory[epoch]).norm() < 0.003 * distance
    published = 11 * 4 * 10_000
    assert store.path(0).stat().st_size < published / 4
    with pytest.raises(InputError, match="no snapshot of epoch 5"):
        store.snapshots(0, [5])
    assert store.learned(0).shape == (10, 2)


def test_an_expert_cut_short_keeps_the_snapshots_it_had(tmp_path: Path) -> None:
    store, trajectory = TrajectoryStore(tmp_path, ORIGIN), torch.randn(4, 9)

    def dies() -> Iterator[Snapshot]:
        yield from snapshots(trajectory)[:3]
        raise MemoryError("killed")

    with pytest.raises(MemoryError):
        store.add(0, dies())
    assert store.missing(1) == [0]
    begun = store.begun(0)
    assert torch.equal(torch.stack([snapshot.theta for snapshot in begun]), trajectory[:3])
    store.add(0, snapshots(trajectory))
    assert torch.equal(store.snapshots(0, range(4)), trajectory)


def test_snapshots_after_a_damaged_one_do_not_count(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    with pytest.raises(RuntimeError):
        store.add(0, (Snapshot(torch.ones(e), np.zeros(2, bool)) for e in range(1, 4)))
    (_, damaged, last) = sorted(tmp_path.glob("unfinished-000/*"))
    damaged.write_bytes(damaged.read_bytes()[:-4])
    assert len(store.begun(0)) == 1
    assert not last.exists()
    other = TrajectoryStore(tmp_path, {"data": "coco"})
    assert other.begun(0) == []


def test_an_expert_is_trained_by_one_process(tmp_path: Path) -> None:
    store, other = (TrajectoryStore(tmp_path, ORIGIN) for _ in range(2))
    with store.claim(0) as mine, other.claim(0) as theirs, other.claim(1) as another:
        assert (mine, theirs, another) == (True, False, True)
    with other.claim(0) as free:
        assert free


def test_experts_without_what_was_learned_say_what_to_do(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    save(store.path(0), "trajectory", {"origin": ORIGIN}, {"theta": torch.zeros(2, 3)})
    assert store.snapshots(0, [1]).shape == (1, 3)
    with pytest.raises(InputError, match=r"another experts\.folder"):
        store.learned(0)


def test_only_the_snapshots_asked_for_are_read(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    store.add(0, snapshots(torch.stack([torch.full((1000,), float(i)) for i in range(4)])))
    # Overwrite the last snapshot on disk: reading the others must not notice.
    path = store.path(0)
    content = bytearray(path.read_bytes())
    last = content.rindex(struct.pack("<f", 3.0) * 1000)
    content[last : last + 4000] = b"\xff" * 4000
    path.write_bytes(content)
    assert torch.equal(store.snapshots(0, [0, 2])[1], torch.full((1000,), 2.0))
    with pytest.raises(InputError, match="snapshot 3 does not fit its checksum"):
        store.snapshots(0, [3])
    with pytest.raises(InputError, match="no snapshot of epoch 4"):
        store.snapshots(0, [0, 4])


def test_missing_lists_what_is_not_there(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    store.add(1, snapshots(torch.zeros(2, 3)))
    assert store.missing(3) == [0, 2]


def test_experts_of_another_origin_are_refused_by_what_differs(tmp_path: Path) -> None:
    TrajectoryStore(tmp_path, ORIGIN).add(0, snapshots(torch.zeros(2, 3)))
    other = {"data": "flickr", "encoder": {"image": "resnet50"}}
    with pytest.raises(InputError, match=r"encoder\.image: nfnet, not resnet50"):
        TrajectoryStore(tmp_path, other)
    TrajectoryStore(tmp_path, ORIGIN)


def test_a_truncated_expert_is_refused(tmp_path: Path) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN)
    store.add(0, snapshots(torch.zeros(2, 3)))
    path = store.path(0)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged"):
        TrajectoryStore(tmp_path, ORIGIN)


@pytest.mark.parametrize("epochs", [None, [0, 1, 3]])
def test_a_flipped_bit_is_found_in_any_snapshot(tmp_path: Path, epochs: list[int] | None) -> None:
    store = TrajectoryStore(tmp_path, ORIGIN, epochs)
    trajectory = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    store.add(0, snapshots(trajectory))
    path, kept = store.path(0), epochs or [0, 1, 2, 3]
    whole = path.read_bytes()
    (header,) = struct.unpack("<Q", whole[:8])

    def found_by(read: Callable[[], object]) -> bool:
        try:
            read()
        except InputError as error:
            return "does not fit its checksum" in str(error)
        return False

    for place in range(8 + header, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1  # the lowest bit of a byte: every number stays finite
        path.write_bytes(damaged)
        in_snapshots = sum(found_by(partial(store.snapshots, 0, [epoch])) for epoch in kept)
        in_learned = found_by(partial(store.learned, 0))
        assert in_snapshots + in_learned in (1, len(kept))  # all need the start of a compact one


def test_what_killed_processes_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    store, trajectory = TrajectoryStore(tmp_path, ORIGIN), torch.randn(3, 4)
    for expert in (0, 1):
        unfinished = tmp_path / f"unfinished-{expert:03d}"
        unfinished.mkdir()
        (unfinished / ".epoch-0001.safetensors.77.tmp").write_bytes(b"half")
        (tmp_path / f".expert-{expert:03d}.safetensors.77.tmp").write_bytes(b"half")
    train_missing(store, 1, 2, lambda expert, begun: iter(snapshots(trajectory)), Silent())
    (tmp_path / "unfinished-000").mkdir()  # killed before its last step
    store.tidy()
    left = {path.name for path in tmp_path.rglob("*") if path.suffix != ".lock"}
    assert left == {
        "expert-000.safetensors",
        "unfinished-001",  # expert 1 was not asked for: whoever trains it removes these
        ".epoch-0001.safetensors.77.tmp",
        ".expert-001.safetensors.77.tmp",
    }
    with store.claim(0):
        (tmp_path / "unfinished-000").mkdir()
        store.tidy()
        assert (tmp_path / "unfinished-000").exists()  # another process is at it
