"""Embeddings in Parquet and Arrow files, captions beside them, and rows that cannot be used."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lors.config import DataConfig
from lors.data import Decoded, load_pairs
from lors.data.checking import check_pairs
from lors.data.problems import BadDataError
from lors.files.artifacts import home
from lors.system.errors import InputError
from tests.data.test_problems import Telling

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


@pytest.fixture
def sides() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "images": rng.normal(size=(60, 5)).astype(np.float32),
        "texts": rng.normal(size=(60, 2, 4)).astype(np.float16),
    }


def load(root: Path, progress: Telling | None = None, skip: bool = False, **files: str) -> Decoded:
    data = {"source": "embeddings", "root": root, "annotations": files, "skip_bad": skip}
    return load_pairs(DataConfig.model_validate(data), 1, progress)


def from_npy(root: Path, sides: dict[str, np.ndarray]) -> Decoded:
    for side, array in sides.items():
        np.save(root / f"{side}.npy", array)
    return load(root, images="images.npy", texts="texts.npy")


def same(ours: Decoded, theirs: Decoded) -> bool:
    for name, split in ours.splits.items():
        other = theirs.splits[name]
        assert split.texts is not None
        assert other.texts is not None
        if not np.array_equal(split.images[:], other.images[:]):
            return False
        if not np.array_equal(split.texts[:], other.texts[:]):
            return False
        if not np.array_equal(split.owner, other.owner):
            return False
    return True


def column(array: np.ndarray, kind: str) -> Any:
    """An array as lists, as large lists, or as lists of fixed size."""
    if array.ndim == 3:
        flat = column(array.reshape(-1, array.shape[2]), kind)
        return pyarrow.FixedSizeListArray.from_arrays(flat, array.shape[1])
    values = pyarrow.array(array.reshape(-1))
    if kind == "fixed":
        return pyarrow.FixedSizeListArray.from_arrays(values, array.shape[1])
    offsets = np.arange(0, array.size + 1, array.shape[1])
    if kind == "large":
        return pyarrow.LargeListArray.from_arrays(pyarrow.array(offsets), values)
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets.astype(np.int32)), values)


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
def test_tables_give_the_pairs_of_plain_arrays(
    tmp_path: Path, sides: dict[str, np.ndarray], kind: str, suffix: str
) -> None:
    table = pyarrow.table({side: column(array, kind) for side, array in sides.items()})
    path = tmp_path / f"both{suffix}"
    if suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=17)
    elif suffix == ".feather":
        feather.write_feather(table, path, chunksize=17)
    else:  # a stream, as the package datasets writes it
        with pyarrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=17)
    found = load(tmp_path, images=path.name, texts=path.name)
    assert same(found, from_npy(tmp_path, sides))


def test_an_unpacked_column_is_a_memory_map(
    tmp_path: Path, sides: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lors.data.embeddings.IN_MEMORY", 0)
    for side, array in sides.items():
        table = pyarrow.table({"id": np.arange(60), "embedding": column(array, "fixed")})
        parquet.write_table(table, tmp_path / f"{side}.parquet")
    files: dict[str, Any] = {"images": "images.parquet", "texts": "texts.parquet"}
    found = load(tmp_path, **files)
    assert not isinstance(found.splits["train"].images, np.ndarray)
    assert same(found, from_npy(tmp_path, sides))
    unpacked = sorted((home() / "embeddings").iterdir())
    load(tmp_path, **files)
    assert sorted((home() / "embeddings").iterdir()) == unpacked


def test_the_right_column_is_asked_for(tmp_path: Path, sides: dict[str, np.ndarray]) -> None:
    np.save(tmp_path / "texts.npy", sides["texts"])
    two = {name: column(sides["images"], "fixed") for name in ("a", "b")}
    parquet.write_table(pyarrow.table(two), tmp_path / "two.parquet")
    with pytest.raises(InputError, match=r"has 2 columns of lists of numbers: name .* 'images'"):
        load(tmp_path, images="two.parquet", texts="texts.npy")
    rows = [[1.0, 2.0], [1.0]] * 30
    parquet.write_table(pyarrow.table({"images": rows}), tmp_path / "uneven.parquet")
    with pytest.raises(InputError, match=r"not all of the shape \(2,\)"):
        load(tmp_path, images="uneven.parquet", texts="texts.npy")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_damaged_tables_get_a_sentence(
    tmp_path: Path, sides: dict[str, np.ndarray], suffix: str
) -> None:
    np.save(tmp_path / "texts.npy", sides["texts"])
    path = tmp_path / f"images{suffix}"
    table = pyarrow.table({"images": column(sides["images"], "list")})
    if suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="uncompressed")
    whole = path.read_bytes()
    for content in (b"", b"nonsense", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot read the table|has no rows|lists"):
            load(tmp_path, images=path.name, texts="texts.npy")


def test_a_column_that_unpacks_to_far_more_than_its_file_is_refused(tmp_path: Path) -> None:
    zeros = np.zeros((300_000, 64), np.float32)
    parquet.write_table(
        pyarrow.table({"images": column(zeros, "fixed")}), tmp_path / "zeros.parquet"
    )
    assert (tmp_path / "zeros.parquet").stat().st_size < 76_000
    with pytest.raises(InputError, match="would unpack to 76,800,000 bytes"):
        load(tmp_path, images="zeros.parquet", texts="zeros.parquet")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "images.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'lors\[huggingface\]'"):
        load(tmp_path, images="images.parquet", texts="images.parquet")


def test_owners_and_captions_may_be_columns(tmp_path: Path, sides: dict[str, np.ndarray]) -> None:
    owner = np.repeat(np.arange(60), 2)
    words = [f"text {c} of {i}" for i in range(60) for c in range(2)]
    flat = sides["texts"].reshape(120, 4)
    np.save(tmp_path / "images.npy", sides["images"])
    table = {"texts": column(flat, "fixed"), "owner": owner, "caption": words}
    parquet.write_table(pyarrow.table(table), tmp_path / "texts.parquet")
    (tmp_path / "words.csv").write_text("\n".join(["id,caption", *(f"1,{w}" for w in words)]))
    lines = [json.dumps({"caption": word}) for word in words]
    (tmp_path / "words.jsonl").write_text("\n".join(lines))
    pairs = [[words[2 * i], words[2 * i + 1]] for i in range(60)]
    feather.write_feather(pyarrow.table({"captions": pairs}), tmp_path / "words.feather")
    given: dict[str, Any] = {"images": "images.npy", "texts": "texts.parquet"}
    given |= {"owner": "texts.parquet"}
    for captions in ("texts.parquet", "words.csv", "words.jsonl", "words.feather"):
        found = load(tmp_path, captions=captions, **given)
        for split in found.splits.values():
            rows = [np.flatnonzero((sides["images"] == row).all(1))[0] for row in split.images[:]]
            expected = [w for row in rows for w in words[2 * row : 2 * row + 2]]
            assert list(split.captions) == expected
    (tmp_path / "words.csv").write_text("caption\na\nb")
    with pytest.raises(InputError, match="have 2 rows, for 60 images and 120 texts"):
        load(tmp_path, captions="words.csv", **given)


def test_texts_without_owner_are_explained_in_the_numbers_of_the_user(
    tmp_path: Path, sides: dict[str, np.ndarray]
) -> None:
    np.save(tmp_path / "images.npy", sides["images"])
    np.save(tmp_path / "texts.npy", sides["texts"].reshape(120, 4))
    with pytest.raises(InputError) as caught:
        load(tmp_path, images="images.npy", texts="texts.npy")
    message = str(caught.value)
    assert "60 images (60, 5) and 120 texts (120, 4) do not fit" in message
    assert "texts.reshape(60, 2, 4)" in message
    assert "data.annotations.owner" in message
    assert "[0, 0, 1, 1, …, 59, 59]" in message


def test_rows_that_cannot_be_used_are_left_out_of_embeddings(
    tmp_path: Path, sides: dict[str, np.ndarray]
) -> None:
    images, texts = sides["images"], sides["texts"].reshape(120, 4).copy()
    images[3, 2], images[40] = np.nan, np.inf
    texts[20, 0] = np.nan  # one of the two of image 10
    texts[22:24] = np.inf  # both of image 11
    words = [f"text {i}" for i in range(120)]
    (tmp_path / "words.csv").write_text("\n".join(["caption", *words]))
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "texts.npy", texts)
    np.save(tmp_path / "owner.npy", np.repeat(np.arange(60), 2))
    files: dict[str, Any] = {side: f"{side}.npy" for side in ("images", "texts", "owner")}
    with pytest.raises(BadDataError) as caught:
        load(tmp_path, **files)
    assert str(caught.value).startswith("5 problems in 180 embeddings (rows that are not finite: 5")
    found = load(tmp_path, skip=True, captions="words.csv", **files)
    seen = []
    for split in found.splits.values():
        rows = [int(np.flatnonzero((images == row).all(1))[0]) for row in split.images[:]]
        assert split.texts is not None
        own = zip(split.captions, split.texts[:], split.owner, strict=True)
        for caption, text, owner in own:
            number = int(caption.split()[1])
            assert number // 2 == rows[owner]
            assert np.array_equal(text, texts[number].astype(np.float32))
        seen += rows
    assert sorted(seen) == [i for i in range(60) if i not in (3, 40, 11)]
    assert sum(len(split.owner) for split in found.splits.values()) == 2 * 57 - 1


def test_a_missing_row_of_a_column_is_a_bad_row(
    tmp_path: Path, sides: dict[str, np.ndarray]
) -> None:
    rows: list[Any] = sides["images"].tolist()
    rows[7] = None
    parquet.write_table(pyarrow.table({"images": rows}), tmp_path / "images.parquet")
    np.save(tmp_path / "texts.npy", sides["texts"])
    with pytest.raises(InputError, match="row 7 holds numbers that are not finite"):
        load(tmp_path, images="images.parquet", texts="texts.npy")
    kept = load(tmp_path, skip=True, images="images.parquet", texts="texts.npy")
    assert sum(map(len, kept.splits.values())) == 59


def test_what_is_odd_is_said_and_used_all_the_same(
    tmp_path: Path, sides: dict[str, np.ndarray]
) -> None:
    sides["images"][[4, 5]] = 0
    sides["texts"][:, :, 1] = 2
    sides["images"][:, 0] = 0
    for side, array in sides.items():
        np.save(tmp_path / f"{side}.npy", array)
    told = Telling()
    load(tmp_path, told, images="images.npy", texts="texts.npy")
    assert "Warning: images of train that are all zeros: 2." in told.said
    assert (
        "Warning: of the 4 numbers of the texts of train, 1 are the same in every row." in told.said
    )


def test_a_check_of_embeddings_says_what_they_hold(
    tmp_path: Path, sides: dict[str, np.ndarray]
) -> None:
    from_npy(tmp_path, sides)
    files = {"images": "images.npy", "texts": "texts.npy"}
    checked = check_pairs(DataConfig(source="embeddings", root=tmp_path, annotations=files))
    assert checked.error() is None
    assert checked.facts == {
        "train": "48 images, 96 texts",
        "val": "6 images, 12 texts",
        "test": "6 images, 12 texts",
        "texts per image": "2",
        "numbers per row": "images 5, texts 4",
    }
