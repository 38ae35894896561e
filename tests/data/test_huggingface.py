from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lors.config import DataConfig
from lors.data.huggingface import read_huggingface
from lors.data.pairs import Item
from lors.system.errors import InputError
from lors.system.progress import Silent

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the package builds its tables."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    return folder


def picture(grey: int) -> bytes:
    data = io.BytesIO()
    Image.new("L", (5, 4), grey).save(data, "png")
    return data.getvalue()


def table(greys: list[int], **columns: list[Any]) -> Any:
    """Images of one grey each, with their grey as the caption."""
    images = [{"bytes": picture(grey), "path": None} for grey in greys]
    columns = {"caption": [f"grey {grey}" for grey in greys]} | columns
    features = datasets.Dataset.from_dict(columns).features | {"image": datasets.Image()}
    return datasets.Dataset.from_dict({"image": images} | columns, datasets.Features(features))


def image_folder(folder: Path, split: str, greys: list[int]) -> None:
    (folder / split).mkdir(parents=True)
    for grey in greys:
        (folder / split / f"{grey}.png").write_bytes(picture(grey))
    rows = [{"file_name": f"{grey}.png", "caption": f"grey {grey}"} for grey in greys]
    (folder / split / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))


def read(root: Path, **settings: Any) -> dict[str, list[Item]]:
    return read_huggingface(DataConfig(source="huggingface", root=root, **settings), Silent())


def greys(items: list[Item]) -> list[int]:
    images = [item.load() for item in items]
    assert {image.mode for image in images} == {"RGB"}
    return [int(np.asarray(image)[0, 0, 0]) for image in images]


def test_saved_parquet_and_image_folders_hold_the_same_pairs(tmp_path: Path) -> None:
    splits = {"train": [1, 2, 3], "validation": [4], "test": [5, 6], "extra": [7]}
    found = datasets.DatasetDict({name: table(values) for name, values in splits.items()})
    found.save_to_disk(tmp_path / "saved")
    (tmp_path / "parquet").mkdir()
    (tmp_path / "parquet" / "README.md").write_text("A dataset.")
    for name, values in list(splits.items())[:3]:
        found[name].to_parquet(tmp_path / "parquet" / f"{name}-00000-of-00001.parquet")
        image_folder(tmp_path / "images", name, values)
    for kind in ("saved", "parquet", "images"):
        items = read(tmp_path / kind)
        assert {name: greys(items[name]) for name in items} == {
            "train": [1, 2, 3],
            "val": [4],
            "test": [5, 6],
        }
        assert [item.captions for item in items["test"]] == [("grey 5",), ("grey 6",)]


def test_a_dataset_without_splits_is_for_training(tmp_path: Path) -> None:
    table([1, 2]).save_to_disk(tmp_path)
    assert greys(read(tmp_path)["train"]) == [1, 2]


def test_columns_are_chosen_and_captions_may_be_lists(tmp_path: Path) -> None:
    found = table([1, 2], words=[["one", " 1  "], ["two"]]).rename_column("image", "photo")
    found.with_format("numpy").save_to_disk(tmp_path)
    items = read(tmp_path, image_column="photo", caption_column="words")["train"]
    assert [item.captions for item in items] == [("one", "1"), ("two",)]
    assert greys(items) == [1, 2]
    with pytest.raises(InputError, match=r"no column 'image': set data\.image_column to .*photo"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"data\.caption_column to .*caption, words"):
        read(tmp_path, image_column="photo", caption_column="text")


def test_reading_captions_decodes_no_image(tmp_path: Path) -> None:
    images = [{"bytes": b"not an image", "path": None}, None]
    features = datasets.Features({"image": datasets.Image(), "caption": datasets.Value("string")})
    found = datasets.Dataset.from_dict({"image": images, "caption": ["x", "y"]}, features)
    found.save_to_disk(tmp_path)
    with pytest.raises(InputError, match="row 1 has no image"):
        read(tmp_path)
    (broken,) = read(tmp_path, skip_bad=True)["train"]
    with pytest.raises(InputError, match=r"cannot read the image of .*'train' row 0: not an image"):
        broken.load()


def test_a_key_names_one_image_of_one_version(tmp_path: Path) -> None:
    image_folder(tmp_path, "train", [1, 2])
    first, again = ([item.key for item in read(tmp_path)["train"]] for _ in range(2))
    assert first == again
    assert len(set(first)) == 2
    (tmp_path / "train" / "1.png").write_bytes(picture(9))
    changed = read(tmp_path)["train"]
    assert changed[0].key not in first
    assert changed[1].key == first[1]
    assert greys(changed) == [9, 2]


def test_paths_in_a_column_are_below_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for path in (tmp_path / "secret.png", root / "inside.png"):
        path.write_bytes(picture(8))
    inside = ["inside.png", str(root / "inside.png")]

    def save(paths: list[str]) -> None:
        found = datasets.Dataset.from_dict({"image": paths, "caption": ["x"] * len(paths)})
        found.to_parquet(root / "train.parquet")

    save(inside)
    assert greys(read(root)["train"]) == [8, 8]
    for outside in ("../secret.png", str(tmp_path / "secret.png")):
        save([*inside, outside])
        with pytest.raises(InputError, match=r"row 2: .* outside the root"):
            read(root)


@pytest.mark.parametrize("caption", ["", " ", None, [], ["x", ""], ["x", None]])
def test_empty_captions_are_refused(tmp_path: Path, caption: Any) -> None:
    table([1, 2], caption=[["x"] if isinstance(caption, list) else "x", caption]).save_to_disk(
        tmp_path
    )
    with pytest.raises(
        InputError, match=r"'train' row 1: the caption (is|must be) (empty|missing|text)"
    ):
        read(tmp_path)


def test_a_column_of_something_else_is_no_image(tmp_path: Path) -> None:
    table([1], size=[3]).save_to_disk(tmp_path)
    with pytest.raises(InputError, match=r"'size' holds .*int64.*, not images"):
        read(tmp_path, image_column="size")


def test_a_train_split_is_needed(tmp_path: Path) -> None:
    datasets.DatasetDict({"test": table([1]), "dev": table([2])}).save_to_disk(tmp_path)
    with pytest.raises(InputError, match="no split 'train'; it has: test, dev"):
        read(tmp_path)


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot load the Hugging Face dataset"):
        read(tmp_path)


def test_the_hub_is_asked_by_name_and_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str | None, ...]] = []

    def load_dataset(*args: str | None) -> Any:
        asked.append(args)
        return datasets.DatasetDict({"train": table([3])})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    for name in ("owner/data", "owner/data:english"):
        items = read_huggingface(DataConfig(source="huggingface", name=name), Silent())
        assert greys(items["train"]) == [3]
    assert asked == [("owner/data", None), ("owner/data", "english")]


def test_images_of_the_hub_are_in_its_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (cache, tmp_path):
        (folder / "a.png").write_bytes(picture(5))

    def give(path: Path) -> None:
        found = datasets.Dataset.from_dict({"image": [str(path)], "caption": ["x"]})
        monkeypatch.setattr(datasets, "load_dataset", lambda *_: {"train": found})

    give(cache / "a.png")
    config = DataConfig(name="owner/data")
    assert greys(read_huggingface(config, Silent())["train"]) == [5]
    give(tmp_path / "a.png")
    with pytest.raises(InputError, match="outside the root"):
        read_huggingface(config, Silent())


def test_what_cannot_be_read_at_all_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"set data\.name .* or data\.root"):
        read_huggingface(DataConfig(source="huggingface"), Silent())

    def unreachable(*_: object) -> None:
        raise ConnectionError("Couldn't reach\nthe Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    monkeypatch.setattr("lors.system.hub.hub_answers", lambda: False)
    with pytest.raises(InputError, match="'owner/data': it must be downloaded, and the Hugging"):
        read_huggingface(DataConfig(name="owner/data"), Silent())
    monkeypatch.setattr("lors.system.hub.hub_answers", lambda: True)
    with pytest.raises(InputError, match="dataset 'owner/data': Couldn't reach the Hub"):
        read_huggingface(DataConfig(name="owner/data"), Silent())
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'lors\[huggingface\]'"):
        read_huggingface(DataConfig(name="owner/data"), Silent())


def test_tables_are_below_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    table([1, 2]).save_to_disk(outside)
    table([1, 2]).to_parquet(tmp_path / "secret.parquet")
    root.mkdir()
    (root / "train.parquet").symlink_to(tmp_path / "secret.parquet")
    with pytest.raises(InputError, match="outside the root"):
        read(root)
    (root / "train.parquet").unlink()
    for name in ("state.json", "dataset_info.json"):
        text = (outside / name).read_text()
        (root / name).write_text(text.replace("data-00000", "../outside/data-00000"))
    with pytest.raises(InputError, match="outside the root"):
        read(root)
