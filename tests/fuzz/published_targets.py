"""Pickled files of other projects: sets and experts."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from lors.files.published import published_experts, read_published_set
from lors.sets.published import unpublished
from tests.fuzz import mutate
from tests.fuzz.target import Target
from tests.published import Malicious, full, low_rank, numbers

SHAPES = [(4, 3), (4,)], [(2, 4)]
INTEGERS = (0, 1, 2, 6, 7, 127, 255, 256, 18_432, 2**16, 2**31 - 1, -1, -(2**31))


def pickled(content: Any) -> bytes:
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def make_sets(root: Path) -> list[bytes]:
    plain = {**low_rank(), "similarity_params": [torch.eye(6)]}
    return [
        pickled(low_rank()),
        pickled(full()),
        pickled({k: v for k, v in plain.items() if k != "similarity_mat"}),
        pickled({**low_rank(), "text": Malicious(root / "was run")}),
    ]


def read_set(root: Path) -> None:
    try:
        found = read_published_set(root / "set.pt")
    finally:
        assert not (root / "was run").exists()
    same = torch.load(root / "set.pt", weights_only=True)
    assert torch.equal(found.images, same["image"].to(found.images.dtype))
    assert torch.equal(found.texts, same["text"].to(found.texts.dtype))
    pairs, _ = unpublished([found], alpha=None)
    assert all(tensor.isfinite().all() for tensor in pairs.state_dict().values())


def _epochs(shapes: Sequence[tuple[int, ...]], seed: int) -> list[list[torch.Tensor]]:
    return [[numbers(*s, seed=seed + epoch) for s in shapes] for epoch in range(3)]


def make_experts(root: Path) -> list[bytes]:
    (root / "txt_replay_buffer_0.pt").write_bytes(pickled([_epochs(SHAPES[1], 9)]))
    evil = [[Malicious(root / "was run")] * 2] * 3
    return [pickled([_epochs(SHAPES[0], 0)]), pickled([evil])]


def read_experts(root: Path) -> None:
    try:
        (theta,) = published_experts(root / "img_replay_buffer_0.pt", SHAPES, epochs=2)
    finally:
        assert not (root / "was run").exists()
    assert theta.shape == (3, 24)
    assert theta.isfinite().all()


def change_record(data: bytes, rng: Random) -> bytes:
    """Damage a record, mostly the pickle, and write the archive anew with good checksums."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except Exception:  # damaged before: of many kinds
        return mutate.flip(data, rng)
    names = [name for name in records if name.endswith("data.pkl")]
    name = rng.choice(names if names and rng.random() < 0.8 else list(records))
    records[name] = rng.choice((_integer, _swap, rng.choice(mutate.BYTES)))(records[name], rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for each, record in records.items():
            archive.writestr(each, record)
    return file.getvalue()


def _integer(data: bytes, rng: Random) -> bytes:
    """Another number where the pickle has one: a size, a stride, an offset, a length."""
    places = [p for p in range(len(data) - 5) if data[p : p + 1] in (b"K", b"M", b"J")]
    if not places:
        return data
    place = rng.choice(places)
    old = {b"K": 2, b"M": 3, b"J": 5}[data[place : place + 1]]
    new = b"J" + struct.pack("<i", rng.choice(INTEGERS))
    return data[:place] + new + data[place + old :]


def _swap(data: bytes, rng: Random) -> bytes:
    """Another name where the pickle imports one or names a record."""
    words = (b"_rebuild_tensor_v2", b"FloatStorage", b"OrderedDict", b"storage", b"image", b"torch")
    others = (
        *words,
        b"_rebuild_parameter",
        b"DoubleStorage",
        b"system",
        b"getattr",
        b"HalfStorage",
    )
    old, new = rng.choice(words), rng.choice(others)
    return data.replace(old, new, rng.randrange(1, 3))


PUBLISHED_TARGETS = {
    "published set": Target("set.pt", make_sets, (change_record,), read_set, share=5),
    "published experts": Target(
        "img_replay_buffer_0.pt", make_experts, (change_record,), read_experts, share=2
    ),
}
