"""Hugging Face datasets: one of the Hub by its name, or a local folder.

A folder is one that ``save_to_disk`` wrote, one of parquet files, or an image folder with a
``metadata.jsonl`` or ``metadata.csv``. No code of a dataset is ever run.
See https://huggingface.co/docs/datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from lors.config import DataConfig
from lors.data.files import below, caption_texts, root_folder
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.errors import InputError

__all__ = ["read_huggingface"]

SPLITS = {"train": "train", "validation": "val", "val": "val", "test": "test"}
"""What the Hub calls a split -> what we call it."""


def read_huggingface(config: DataConfig) -> dict[str, list[Item]]:
    """The train, val (also called validation) and test splits of a dataset; others are left out.

    A dataset of the Hub with several subsets is named ``owner/dataset:subset``.
    """
    try:
        import datasets
    except ImportError:
        raise InputError(
            "data source 'huggingface' needs the package datasets: pip install 'lors[huggingface]'"
        ) from None
    if config.root is not None:
        root = root_folder(config)
        title, folders, load = str(root), [root], partial(_open_folder, datasets, root)
    elif config.name:
        title, load = config.name, partial(_open_hub, datasets, config.name)
        folders = _caches(datasets)
    else:
        raise InputError(
            "data source 'huggingface' needs a dataset: set data.name to one of the Hub, or "
            "data.root to a folder"
        )
    found = _splits(load, title)
    return {
        SPLITS[name]: _items(datasets, split, config, folders, f"{title!r} split {name!r}")
        for name, split in found.items()
        if name in SPLITS
    }


def _open_folder(datasets: Any, root: Path) -> Any:
    if (root / "dataset_dict.json").is_file() or (root / "state.json").is_file():
        return _open_saved(datasets, root)
    tables = {path for path in root.rglob("*.parquet") if path.name != "metadata.parquet"}
    for path in (*tables, *root.rglob("metadata.*")):
        below(root, str(path), "data.root")
    return datasets.load_dataset("parquet" if tables else "imagefolder", data_dir=str(root))


def _open_saved(datasets: Any, root: Path) -> Any:
    """What ``save_to_disk`` wrote; the files that it names must lie below the root, too."""
    found = datasets.load_from_disk(str(root))
    for split in found.values() if isinstance(found, dict) else [found]:
        for file in split.cache_files:
            below(root, file["filename"], "data.root")
    return found


def _open_hub(datasets: Any, name: str) -> Any:
    name, _, subset = name.partition(":")
    return datasets.load_dataset(name, subset or None)


def _caches(datasets: Any) -> list[Path]:
    """The folders into which the Hub's files are downloaded."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return [Path(cache).resolve() for cache in (datasets.config.HF_DATASETS_CACHE, HF_HUB_CACHE)]


def _splits(load: Callable[[], Any], title: str) -> dict[str, Any]:
    try:
        found = load()
    except Exception as error:  # the package raises its own, pyarrow's and the network's
        reason = " ".join(str(error.__cause__ or error).split())
        raise InputError(f"cannot load the Hugging Face dataset {title!r}: {reason}") from None
    splits = dict(found) if isinstance(found, dict) else {"train": found}
    if "train" not in splits:
        raise InputError(f"{title!r} has no split 'train'; it has: {', '.join(map(str, splits))}")
    return splits


def _items(
    datasets: Any, split: Any, config: DataConfig, folders: Sequence[Path], where: str
) -> list[Item]:
    for setting in ("image_column", "caption_column"):
        column = getattr(config, setting)
        if column not in split.column_names:
            raise InputError(
                f"{where} has no column {column!r}: set data.{setting} to one of "
                f"{', '.join(split.column_names)}"
            )
    images = _undecoded(datasets, split, config.image_column, where)
    captions = split.with_format(None).select_columns([config.caption_column])[:]
    return [
        Item(
            f"{split._fingerprint}|{config.image_column}|{row}",
            caption_texts(caption, f"{where} row {row}"),
            partial(_load, images, config.image_column, row, folders, f"{where} row {row}"),
        )
        for row, caption in enumerate(captions[config.caption_column])
    ]


def _undecoded(datasets: Any, split: Any, column: str, where: str) -> Any:
    """The images as the bytes or the path of a file."""
    images = split.with_format(None).select_columns([column])
    try:
        return images.cast_column(column, datasets.Image(decode=False))
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"{where}: the column {column!r} holds {split.features[column]}, not images: "
            "set data.image_column"
        ) from None


def _load(images: Any, column: str, row: int, folders: Sequence[Path], where: str) -> Image.Image:
    value = images[row][column] or {}
    if value.get("bytes"):
        return decode_image(value["bytes"], where)
    if not value.get("path"):
        raise InputError(f"{where} has no image")
    path = value["path"]
    inside = (folder for folder in folders if (folder / path).resolve().is_relative_to(folder))
    return decode_image(below(next(inside, folders[0]), path, where), where)
