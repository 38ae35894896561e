from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from lors.config import DataConfig
from lors.data.known import read_coco, read_flickr30k
from lors.data.pairs import Item
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent

SPLITS = ("train", "val", "test")
Reader = Callable[[DataConfig, Progress], dict[str, list[Item]]]


def tree(root: Path, annotations: str, folders: list[str]) -> Path:
    """A dataset of one image per split and folder, as BLIP's annotations describe it.

    Train has a row per caption, val and test a row per image.
    """
    for split in SPLITS:
        rows: list[dict[str, object]] = []
        for folder in folders:
            name = f"{folder}/{split}.jpg"
            (root / folder).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4)).save(root / name)
            captions = [f"{split} one", f"{split} two"]
            if split == "train":
                rows += [{"image": name, "caption": caption} for caption in captions]
            else:
                rows.append({"image": name, "caption": captions})
        (root / annotations.format(split)).write_text(json.dumps(rows))
    return root


def flickr30k(root: Path) -> Path:
    return tree(root, "flickr30k_{}.json", ["flickr30k-images"])


def coco(root: Path) -> Path:
    return tree(root, "coco_karpathy_{}.json", ["train2014", "val2014"])


@pytest.mark.parametrize(
    ("make", "read", "images"), [(flickr30k, read_flickr30k, 1), (coco, read_coco, 2)]
)
def test_the_usual_tree_needs_no_settings_but_its_root(
    tmp_path: Path, make: Callable[[Path], Path], read: Reader, images: int
) -> None:
    splits = read(DataConfig(root=make(tmp_path)), Silent())
    assert tuple(splits) == SPLITS
    for split, items in splits.items():
        assert [item.captions for item in items] == [(f"{split} one", f"{split} two")] * images
        assert items[0].load().size == (4, 4)


@pytest.mark.parametrize(
    ("make", "read", "missing", "source"),
    [
        (flickr30k, read_flickr30k, "flickr30k_val.json", "research/datasets/flickr30k_val.json"),
        (flickr30k, read_flickr30k, "flickr30k-images", "shannon.cs.illinois.edu/DenotationGraph"),
        (coco, read_coco, "coco_karpathy_test.json", "datasets/coco_karpathy_test.json"),
        (coco, read_coco, "val2014", "val2014.zip from https://cocodataset.org"),
    ],
)
def test_what_is_missing_is_named_with_its_source_and_its_place(
    tmp_path: Path, make: Callable[[Path], Path], read: Reader, missing: str, source: str
) -> None:
    path = make(tmp_path) / missing
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"{missing}.*{source}.*{re.escape(str(path))}"):
        read(DataConfig(root=tmp_path), Silent())


def test_a_root_is_needed() -> None:
    with pytest.raises(InputError, match=r"'coco' needs a folder: set data\.root"):
        read_coco(DataConfig(source="coco"), Silent())
