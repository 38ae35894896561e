from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from lors.files import artifacts
from lors.files.headers import HEADERS
from lors.system.errors import InputError

KIND = "trajectory"
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.safetensors"
    header = {"origin": {"note": "é"}, "extra": 1}
    artifacts.save(path, KIND, header, {"x": torch.arange(6.0).view(2, 3)})
    return path


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """A safetensors file taken apart: its header and its data."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def put_together(path: Path, header: dict[str, Any], data: bytes) -> None:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_round_trip(file: Path) -> None:
    header, tensors = artifacts.load(file, KIND)
    assert header["origin"] == {"note": "é"}
    assert header["extra"] == 1
    assert torch.equal(tensors["x"], torch.arange(6.0).view(2, 3))


@st.composite
def any_tensor(draw: st.DrawFn) -> Tensor:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    values = torch.randn(shape, generator=torch.Generator().manual_seed(draw(st.integers(0, 99))))
    return (100 * values).to(dtype)


@given(
    tensors=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), any_tensor()),
    origin=st.dictionaries(st.text(st.characters(codec="utf-8")), st.floats(allow_nan=False)),
)
def test_whatever_is_saved_comes_back(
    tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, Tensor], origin: dict[str, float]
) -> None:
    tensors.pop("__metadata__", None)
    origin = {key: value for key, value in origin.items() if abs(value) < float("inf")}
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    artifacts.save(path, KIND, {"origin": origin}, tensors)
    header, again = artifacts.load(path, KIND)
    assert header["origin"] == origin
    assert again.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert again[name].dtype == tensor.dtype
        assert torch.equal(again[name], tensor)


def test_another_kind_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match="holds a trajectory, not a checkpoint"):
        artifacts.load(file, "checkpoint")


def test_an_unknown_kind_is_neither_written_nor_read(file: Path) -> None:
    with pytest.raises(InputError, match="unknown kind of artefact 'trajectories'; did you mean"):
        artifacts.save(file, "trajectories", {}, {})
    save_file({}, file, {"lors": json.dumps({"format": 1, "kind": "trajectories"})})
    with (
        pytest.raises(InputError, match="'trajectories', which this lors does not know"),
        artifacts.open_artifact(file),
    ):
        pass


@pytest.mark.parametrize(
    ("kind", "header", "message"),
    [
        ("checkpoint", {"iteration": -1, "best_recall": None}, "iteration should be greater"),
        ("checkpoint", {"iteration": "1", "best_recall": None}, "iteration should be a valid int"),
        ("checkpoint", {"iteration": 1}, "best_recall Field required"),
        ("trajectory", {"origin": []}, "origin should be an object"),
        ("text trunk", {"terms": [1]}, r"terms\.0 should be a valid string"),
        ("distilled set", {"config": {"distil": 1}}, r"config\.distil Extra inputs"),
        ("distilled set", {"pairs": 0}, "config Field required"),
    ],
)
def test_a_header_is_checked_field_by_field(
    file: Path, kind: str, header: dict[str, Any], message: str
) -> None:
    artifacts.save(file, kind, header, {})
    with pytest.raises(InputError, match=f"damaged or from another version of lors: {message}"):
        artifacts.load(file, kind)


@pytest.mark.parametrize(
    "nesting",
    ["[" * 100_000, '{"a":' * 100_000, "[" * 300 + "]" * 300],
    ids=["lists", "objects", "closed"],
)
def test_a_header_of_endless_nesting_is_refused(file: Path, nesting: str) -> None:
    save_file({}, file, {"lors": f'{{"format": 1, "kind": "{KIND}", "origin": {nesting}'})
    with pytest.raises(InputError, match="not written by lors"):
        artifacts.load(file, KIND)


@pytest.mark.parametrize("keep", [0, 4, 60, -1])
def test_a_truncated_file_is_refused(file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(InputError, match="damaged"):
        artifacts.load(file, KIND)


def test_every_flipped_bit_is_noticed_or_changes_nothing(file: Path) -> None:
    whole, content = artifacts.load(file, KIND), file.read_bytes()
    unnoticed = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        try:
            header, tensors = artifacts.load(file, KIND)
        except InputError:
            continue
        unnoticed += 1
        assert header == whole[0]
        assert torch.equal(tensors["x"], whole[1]["x"])
    # safetensors pads its header with blanks, and a blank may become another kind of blank.
    assert unnoticed <= 8


def test_a_header_without_its_checksum_is_refused_when_only_the_header_is_read(file: Path) -> None:
    header, data = parts(file)
    about = json.loads(header["__metadata__"]["lors"])
    for changed in (
        {**about, "origin": {"note": "e"}},
        {**about, "check": "0"},
        {name: value for name, value in about.items() if name != "check"},
    ):
        put_together(file, {**header, "__metadata__": {"lors": json.dumps(changed)}}, data)
        with pytest.raises(InputError, match="header does not fit"), artifacts.open_artifact(file):
            pass


def test_the_same_content_is_the_same_file_and_others_may_read_it(file: Path) -> None:
    before, again = file.read_bytes(), file.with_name("again.safetensors")
    artifacts.save(again, KIND, *_content(file))
    assert again.read_bytes() == before
    plain = file.with_name("plain")
    plain.touch()
    assert file.stat().st_mode == plain.stat().st_mode


def _content(file: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    header, tensors = artifacts.load(file, KIND)
    return {name: header[name] for name in ("origin", "extra")}, tensors


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_not_finite_are_refused(file: Path, value: float) -> None:
    artifacts.save(file, KIND, {"origin": {}}, {"theta": torch.tensor([1.0, value])})
    with pytest.raises(InputError, match="not all of 'theta' is finite"):
        artifacts.load(file, KIND)


@pytest.mark.parametrize(("dtype", "shape"), [("I16", [4]), ("F8_E5M2", [8]), ("F32", [0, 2**41])])
def test_types_and_shapes_that_lors_never_writes_are_refused(
    file: Path, dtype: str, shape: list[int]
) -> None:
    lors = json.dumps({"format": 1, "kind": KIND, "origin": {}})
    size = 0 if 0 in shape else 8
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    put_together(file, {"x": entry, "__metadata__": {"lors": lors}}, bytes(size))
    with pytest.raises(InputError, match=f"damaged: 'x' is {dtype}"):
        artifacts.load(file, KIND)


def test_more_tensors_than_lors_ever_writes_are_refused(file: Path) -> None:
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    lors = json.dumps({"format": 1, "kind": KIND, "origin": {}})
    many = {f"x{i}": entry for i in range(10_001)}
    put_together(file, {**many, "__metadata__": {"lors": lors}}, b"")
    with pytest.raises(InputError, match="it holds 10001 tensors"):
        artifacts.load(file, KIND)


def test_what_was_loaded_does_not_change_with_the_file(file: Path) -> None:
    _, tensors = artifacts.load(file, KIND)
    with file.open("r+b") as content:
        content.truncate(10)
    assert tensors["x"].sum() == 15


def test_a_tensor_that_is_not_there_is_a_sentence(file: Path) -> None:
    with (
        pytest.raises(InputError, match=r"damaged: .*y"),
        artifacts.open_artifact(file) as (_, handle),
    ):
        handle.get_tensor("y")


def test_foreign_and_absent_files_are_refused(tmp_path: Path) -> None:
    save_file({"x": torch.ones(1)}, tmp_path / "foreign.safetensors")
    with pytest.raises(InputError, match="not written by lors"):
        artifacts.load(tmp_path / "foreign.safetensors", KIND)
    with pytest.raises(InputError, match="no file"):
        artifacts.load(tmp_path / "absent.safetensors", KIND)


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(file: Path) -> None:
    before = file.read_bytes()

    def fail() -> None:
        with artifacts.writing(file) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot sync folders")
def test_content_reaches_the_disk_before_its_name_and_the_name_after(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watched_sync(descriptor: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{descriptor}").rpartition("/")[2])
        fsync(descriptor)

    def watched_replace(source: Path, target: Path) -> None:
        done.append("renamed")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "replace", watched_replace)
    artifacts.write_text(file, "new")
    assert done == [f".some.safetensors.{os.getpid()}.tmp", "renamed", file.parent.name]


def test_every_kind_that_is_saved_has_a_schema() -> None:
    source = Path(artifacts.__file__).parents[1]
    texts = [path.read_text("utf-8") for path in source.rglob("*.py")]
    for kind in HEADERS:
        assert any(f'"{kind}"' in text for text in texts), kind
