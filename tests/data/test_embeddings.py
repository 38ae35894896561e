from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from lors import load_config, run
from lors.config import DataConfig
from lors.data import load_pairs
from lors.data.shards import Shard
from lors.evaluation.evaluate import evaluate_set
from lors.experts import experts_of
from lors.files.arrays import read_tensor
from lors.sets.distilled import DistilledSet
from lors.setting import setting_of
from lors.system.errors import InputError


def config(folder: Path, **settings: object) -> DataConfig:
    given = {
        "source": "embeddings",
        "root": folder,
        "annotations": {"images": "images.npy", "texts": "texts.npy"},
    }
    return DataConfig.model_validate(given | settings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """200 pairs from one hidden cause, with two texts each."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(200, 6))
    images = cause @ rng.normal(size=(6, 12)) + 0.1 * rng.normal(size=(200, 12))
    texts = (cause @ rng.normal(size=(6, 10)))[:, None] + 0.1 * rng.normal(size=(200, 2, 10))
    np.save(tmp_path / "images.npy", images.astype(np.float32))
    np.save(tmp_path / "texts.npy", texts.astype(np.float16))
    return tmp_path


def test_rows_stay_together_and_splits_are_disjoint(folder: Path) -> None:
    pairs = load_pairs(config(folder), 1)
    images, texts = np.load(folder / "images.npy"), np.load(folder / "texts.npy")
    seen = []
    for split in pairs.splits.values():
        assert split.texts is not None
        own_texts = split.texts[:].reshape(len(split), 2, 10)
        for image, own in zip(split.images[:], own_texts, strict=True):
            row = int(np.flatnonzero((images == image).all(1))[0])
            assert np.array_equal(own, texts[row].astype(np.float32))
            seen.append(row)
    assert sorted(seen) == list(range(200))


def test_safetensors_give_the_same_pairs(folder: Path) -> None:
    from_npy = load_pairs(config(folder), 1)
    save_file({"images": np.load(folder / "images.npy")}, folder / "images.safetensors")
    save_file({"x": np.load(folder / "texts.npy")}, folder / "texts.safetensors")
    files = {"images": "images.safetensors", "texts": "texts.safetensors"}
    pairs = load_pairs(config(folder, annotations=files), 1)
    assert np.array_equal(pairs.splits["val"].images[:], from_npy.splits["val"].images[:])


def test_a_dump_of_embeddings_is_distilled_without_any_trunk(folder: Path, tmp_path: Path) -> None:
    settings = [
        "data.source=embeddings",
        f"data.root={folder}",
        "data.pairs={}",
        "data.annotations={images: images.npy, texts: texts.npy}",
        "encoder.scope=heads",
        "encoder.space=features",
        "encoder.image_head=mlp",
        "encoder.text_head=mlp",
        "encoder.embed_dim=8",
        "similarity.rank=1",
    ]
    results = run(load_config("tiny", settings), tmp_path / "run")
    assert set(results.rows) == {"full data", "random pairs", "distilled set"}
    path = tmp_path / "run" / "distilled.safetensors"
    distilled = DistilledSet.load(path)
    assert distilled.pairs.images.shape[1:] == (12,)
    assert distilled.storage() <= 8
    assert evaluate_set(path) == results.distilled
    assert distilled.image_standard is not None
    raw = torch.from_numpy(np.load(folder / "images.npy"))
    assert distilled.image_standard(raw).mean().abs() < 0.2
    with pytest.raises(InputError, match="no pixels"):
        distilled.pixels()
    with pytest.raises(InputError, match="encoder that made them"):
        distilled.embed(["a caption"])


def test_bad_embeddings_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"data\.annotations\.texts"):
        load_pairs(config(folder, annotations={"images": "images.npy"}), 1)
    np.save(folder / "texts.npy", np.zeros((5, 3), np.float32))
    with pytest.raises(InputError, match="do not fit"):
        load_pairs(config(folder), 1)
    np.save(folder / "texts.npy", np.full((200, 3), np.nan, np.float32))
    with pytest.raises(InputError, match="finite"):
        load_pairs(config(folder), 1)
    (folder / "texts.npy").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot read"):
        load_pairs(config(folder), 1)
    given = {"images": "images.npy", "texts": "both.safetensors"}
    save_file({"a": np.zeros(2), "b": np.zeros(2)}, folder / "both.safetensors")
    with pytest.raises(InputError, match="name the right one 'texts'"):
        load_pairs(config(folder, annotations=given), 1)
    (folder / "both.safetensors").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot read the embeddings"):
        load_pairs(config(folder, annotations=given), 1)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.0, np.nan]]),
        np.array([[1.0, 1e39]]),  # finite, but not as float32
        np.array([[1, 2]]),
        np.array([["a", "b"]]),
        np.zeros((200, 0)),
        np.array([[1.0 + 1j]]),
    ],
)
def test_what_is_no_finite_number_is_refused(folder: Path, array: np.ndarray) -> None:
    np.save(folder / "images.npy", array)
    with pytest.raises(InputError, match=r"finite floating-point numbers|cannot read the array"):
        load_pairs(config(folder), 1)


def test_nothing_is_unpickled(folder: Path) -> None:
    np.save(folder / "images.npy", np.array([{"code": "to run"}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"cannot read the array .*images\.npy"):
        load_pairs(config(folder), 1)
    np.savez(folder / "images", np.zeros((200, 2)))
    (folder / "images.npz").rename(folder / "images.npy")
    with pytest.raises(InputError, match="several arrays"):
        load_pairs(config(folder), 1)


def write_shards(folder: Path, counts: list[list[int]], width: int = 4) -> np.ndarray:
    """Shards as ``lors encode`` writes them: of each image, how many captions it has.

    Row i of the images holds i; caption c of image i is in words and numbers (i, c).
    """
    (folder / "train").mkdir(exist_ok=True)
    image, images = 0, []
    for number, shard in enumerate(counts):
        numbers = np.arange(image, image + len(shard))
        texts = [[i, c] for i, count in zip(numbers, shard, strict=True) for c in range(count)]
        lines = [
            json.dumps({"key": str(i), "captions": [f"caption {c} of {i}" for c in range(count)]})
            for i, count in zip(numbers, shard, strict=True)
        ]
        images.append(np.repeat(numbers[:, None], width, 1).astype(np.float16))
        np.save(folder / f"train/images-{number}.npy", images[-1])
        np.save(folder / f"train/texts-{number}.npy", np.array(texts, np.float32).reshape(-1, 2))
        np.save(folder / f"train/owner-{number}.npy", np.repeat(np.arange(len(shard)), shard))
        (folder / f"train/pairs-{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        image += len(shard)
    return np.concatenate(images)


@pytest.mark.parametrize("in_memory", [0, 2**20])
def test_shards_are_one_dataset_with_any_number_of_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr("lors.data.embeddings.IN_MEMORY", in_memory)
    rng = np.random.default_rng(0)
    counts = [rng.integers(1, 4, size).tolist() for size in (30, 0, 50)]
    write_shards(tmp_path, counts)
    pairs = load_pairs(config(tmp_path, annotations={}), 1)
    seen = []
    for split in pairs.splits.values():
        assert split.texts is not None
        assert isinstance(split.images, np.ndarray) == bool(in_memory)
        images = split.images[:][:, 0].astype(int)
        texts = split.texts[:].astype(int)
        assert np.array_equal(texts[:, 0], images[split.owner])
        words = [f"caption {c} of {i}" for i, c in texts]
        assert list(split.captions) == words
        assert split.captions[1:3] == words[1:3]
        assert len(texts) == np.concatenate(counts)[images].sum()
        seen += images.tolist()
    assert sorted(seen) == list(range(80))


def test_one_file_and_shards_of_it_give_the_same_splits(folder: Path) -> None:
    whole = load_pairs(config(folder), 1)
    for side in ("images", "texts"):
        for number, part in enumerate(np.split(np.load(folder / f"{side}.npy"), [70, 150])):
            np.save(folder / f"{side}_{number}.npy", part)
    patterns = {"images": "images_{0..2}.npy", "texts": "texts_*.npy"}
    shards = load_pairs(config(folder, annotations=patterns), 1)
    for name, split in whole.splits.items():
        other = shards.splits[name]
        assert np.array_equal(split.images[:], other.images[:])
        assert split.texts is not None
        assert other.texts is not None
        assert np.array_equal(split.texts[:], other.texts[:])
        assert np.array_equal(split.owner, other.owner)


def test_a_split_may_have_shards_of_its_own(tmp_path: Path) -> None:
    write_shards(tmp_path, [[1] * 30])
    shutil.copytree(tmp_path / "train", tmp_path / "test")
    pairs = load_pairs(config(tmp_path, annotations={}), 1)
    assert {name: len(split) for name, split in pairs.splits.items()} == {
        "train": 27,
        "val": 3,
        "test": 30,
    }
    both = {"images": "train/images-0.npy", "texts": "train/texts-0.npy"}
    own = {"val_images": "test/images-0.npy", "val_texts": "test/texts-0.npy"}
    assert len(load_pairs(config(tmp_path, annotations=both | own), 1).splits["val"]) == 30
    with pytest.raises(InputError, match=r"needs data\.annotations\.val_texts"):
        load_pairs(config(tmp_path, annotations=both | {"val_images": "test/images-0.npy"}), 1)
    np.save(tmp_path / "test/images-0.npy", np.zeros((30, 9)))
    with pytest.raises(InputError, match="images of the splits have rows of different lengths"):
        load_pairs(config(tmp_path, annotations=both | own), 1)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("owner-1", np.zeros(60), "float64 of shape"),
        ("owner-1", np.zeros(3, int), "each of the 60 texts"),
        ("owner-1", np.repeat(np.arange(30), 2)[::-1], "must ascend"),
        ("owner-1", np.repeat(np.arange(30), 2) + 5, "run from 5 to 34, but there are 30 images"),
        ("owner-1", np.repeat([0, 2], 30), "image 1 of the owners .* has no caption"),
        ("images-1", np.zeros((30, 5)), "of 4 and of 5 numbers"),
        ("images-1", np.full((30, 4), np.inf), r"images-1\.npy' must be finite"),
        ("images-2", np.zeros((30, 4)), "stands for 2 files and .* for 3"),
    ],
)
def test_shards_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, array: np.ndarray, message: str
) -> None:
    write_shards(tmp_path, [[1] * 30, [2] * 30])
    np.save(tmp_path / f"train/{name}.npy", array)
    with pytest.raises(InputError, match=message):
        load_pairs(config(tmp_path, annotations={}), 1)


def test_captions_that_are_not_there_are_named(tmp_path: Path) -> None:
    write_shards(tmp_path, [[1] * 30, [2] * 30])
    (tmp_path / "train/pairs-1.jsonl").write_text('{"captions": 3}\n' * 5)
    words = load_pairs(config(tmp_path, annotations={}), 1).splits["train"].captions
    for caption in (-1, 30):
        with pytest.raises(InputError, match=r"line \d+ of .*pairs-1\.jsonl' does not give"):
            words[caption]
    with pytest.raises(InputError, match=r"data\.annotations\.image; did you mean 'images'"):
        load_pairs(config(tmp_path, annotations={"image": "a"}), 1)


def test_a_selection_from_shards_shows_the_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    write_shards(tmp_path, [[2] * 40, [1] * 40])
    for number, texts in enumerate((80, 40)):
        np.save(tmp_path / f"train/images-{number}.npy", rng.normal(size=(40, 6)))
        np.save(tmp_path / f"train/texts-{number}.npy", rng.normal(size=(texts, 6)))
    settings = [f"data.root={tmp_path}", "distill.budget=5", "evaluate.seeds=1", "scorer=given"]
    settings += ["evaluate.epochs=2", "evaluate.checks=1", "similarity.rank=2"]
    chosen = []
    for in_memory in (0, 2**20):
        monkeypatch.setattr("lors.data.embeddings.IN_MEMORY", in_memory)
        for kind in ("herding", "k-center", "clip-score", "random"):
            out = tmp_path / f"{kind}-{in_memory}"
            asked = load_config("features", [*settings, f"selection.kind={kind}"])
            run(asked, out, references=False)
            chosen.append(list(csv.DictReader((out / "selection.csv").open())))
    assert [line["image"] for lines in chosen[:4] for line in lines] == [
        line["image"] for lines in chosen[4:] for line in lines
    ]
    assert all(line["text"].startswith("caption") for lines in chosen for line in lines)


def test_two_roots_that_only_numbers_tell_apart_share_nothing(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Archives and container images set all times equal."""
    other = tmp_path_factory.mktemp("other")
    for side in ("images", "texts"):
        array = np.load(folder / f"{side}.npy")
        np.save(other / f"{side}.npy", array[::-1].copy())
    for root in (folder, other):
        for path in root.iterdir():
            os.utime(path, (0, 0))
    here, there = (
        load_config(
            "features-lors",
            [
                f"data.root={root}",
                "data.annotations={images: images.npy, texts: texts.npy}",
                "experts.count=1",
                "experts.epochs=3",
                "distill.budget=10",
            ],
        )
        for root in (folder, other)
    )
    ours, theirs = (experts_of(setting_of(asked)) for asked in (here, there))
    assert ours.folder != theirs.folder
    assert not torch.equal(ours.snapshots(0, [3]), theirs.snapshots(0, [3]))
    moved = tmp_path_factory.mktemp("moved") / "data"
    shutil.copytree(folder, moved)
    again = here.model_copy(update={"data": here.data.model_copy(update={"root": moved})})
    assert experts_of(setting_of(again)).folder == ours.folder


def test_images_without_captions_are_refused(folder: Path) -> None:
    np.save(folder / "texts.npy", np.zeros((200, 0, 10), np.float32))
    with pytest.raises(InputError, match=r"\(200, 0, 10\) give images no caption"):
        load_pairs(config(folder), 1)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e-30])
def test_embeddings_that_are_all_alike_are_blamed_on_the_data(folder: Path, value: float) -> None:
    np.save(folder / "texts.npy", np.full((200, 10), value, np.float32))
    overrides = [f"data.root={folder}", "data.annotations.images=images.npy"]
    made = load_config("features", [*overrides, "data.annotations.texts=texts.npy"])
    with pytest.raises(InputError, match="text embeddings of the training data are all alike"):
        run(made, folder / "run")


def test_safetensors_larger_than_memory_are_not_read_at_once(folder: Path) -> None:
    rows = 2**37  # 2 TiB, of which the disk holds a hole
    header = {"images": {"dtype": "F32", "shape": [rows, 4], "data_offsets": [0, rows * 16]}}
    text = json.dumps(header).encode()
    with (folder / "images.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + np.arange(4, dtype="<f4").tobytes())
        file.truncate(8 + len(text) + rows * 16)
    array = read_tensor(folder / "images.safetensors", "images")
    assert array.shape == (rows, 4)
    block = next(Shard.of(array, folder / "images.safetensors").blocks())
    assert block[:2].tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]


@pytest.mark.parametrize("shape", [(), (0, 3), (3,)])
def test_tensors_of_odd_shapes_are_read_as_they_are(folder: Path, shape: tuple[int, ...]) -> None:
    save_file({"x": np.ones(shape, np.float32), "y": np.ones(5)}, folder / "odd.safetensors")
    assert read_tensor(folder / "odd.safetensors", "x").shape == shape
    with pytest.raises(InputError, match="name the right one 'z'"):
        read_tensor(folder / "odd.safetensors", "z")
    save_file({"x": np.ones(3, np.int32)}, folder / "whole.safetensors")
    with pytest.raises(InputError, match="I32: give finite floating-point"):
        read_tensor(folder / "whole.safetensors", "x")
