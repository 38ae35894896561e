from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from lors import load_config, run
from lors.config import DataConfig
from lors.data import load_pairs
from lors.distilled import DistilledSet
from lors.errors import InputError
from lors.pipeline import evaluate_set


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
        for image, own in zip(split.images, split.texts.reshape(len(split), 2, 10), strict=True):
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
    assert np.array_equal(pairs.splits["val"].images, from_npy.splits["val"].images)


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
    assert set(results["rows"]) == {"full data", "random pairs", "distilled set"}
    path = tmp_path / "run" / "distilled.safetensors"
    distilled = DistilledSet.load(path)
    assert distilled.pairs.images.shape[1:] == (12,)
    assert distilled.storage() <= 8
    assert evaluate_set(path)["recall"] == results["rows"]["distilled set"]["recall"]
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
