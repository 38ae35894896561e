"""Hugging Face datasets: one of the Hub by its name, or a local folder.

A folder is one that ``save_to_disk`` wrote, one of parquet files, or an image folder with a
``metadata.jsonl`` or ``metadata.csv``. No code of a dataset is ever run.
See https://huggingface.co/docs/datasets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.files import below, caption_texts, root_folder
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.data.problems import IN_MEMORY, Problems, collecting
from lors.data.source import Source
from lors.files.digests import file_digests
from lors.system.errors import InputError
from lors.system.hub import hub_or_cache
from lors.system.progress import Progress, Silent

__all__ = ["SOURCE", "object_items", "read_huggingface"]

SPLITS = {"train": "train", "validation": "val", "val": "val", "test": "test"}
"""What the Hub calls a split -> what we call it."""


ROWS = 10_000
"""Images whose files are looked up at a time."""


def read_huggingface(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
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
    found = {name: split for name, split in _splits(load, title).items() if name in SPLITS}
    with collecting(config, progress) as problems:
        items = {
            SPLITS[name]: _items(
                datasets, split, config, folders, f"{title!r} split {name!r}", progress, problems
            )
            for name, split in found.items()
        }
        problems.settle(sum(map(len, found.values())))
    return items


def object_items(
    found: Any, image: str, caption: str, skip_bad: bool = False
) -> dict[str, list[Item]]:
    """The splits of a ``datasets`` object in memory; one without splits is all for training.

    Args:
        found: a ``Dataset`` or a ``DatasetDict``.
        image: the column of images.
        caption: the column of captions.
        skip_bad: leave out rows that cannot be used, instead of refusing the dataset.

    Raises:
        InputError: it is something else, or has no such columns.
    """
    if not hasattr(found, "column_names"):
        raise InputError(f"a {type(found).__name__} is not a dataset of the package datasets")
    import datasets

    config = DataConfig(
        source="objects", image_column=image, caption_column=caption, skip_bad=skip_bad
    )
    splits = dict(found) if isinstance(found, dict) else {"train": found}
    for split in splits.values():
        if not hasattr(split, "__len__"):
            raise InputError(
                f"a {type(split).__name__} is a stream of rows: load the dataset without "
                "streaming=True, or keep some rows with Dataset.from_list(list(dataset.take(1000)))"
            )
    anywhere = [Path(Path.cwd().anchor)]  # its maker decides which files it names
    with collecting(config, Silent(), IN_MEMORY) as problems:
        items = {
            SPLITS[name]: _items(
                datasets, split, config, anywhere, f"split {name!r}", Silent(), problems
            )
            for name, split in splits.items()
            if name in SPLITS
        }
        problems.settle(sum(len(split) for split in splits.values()))
    return items


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
    with hub_or_cache() as answers:
        try:
            return datasets.load_dataset(name, subset or None)
        except Exception:
            if answers:
                raise
            raise ConnectionError(
                "it must be downloaded, and the Hugging Face Hub does not answer; a local folder "
                "is data.root=FOLDER"
            ) from None


def _caches(datasets: Any) -> list[Path]:
    """The folders into which the Hub's files are downloaded."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return [Path(cache).resolve() for cache in (datasets.config.HF_DATASETS_CACHE, HF_HUB_CACHE)]


def _splits(load: Callable[[], Any], title: str) -> dict[str, Any]:
    try:
        found = load()
        splits = dict(found) if isinstance(found, dict) else {"train": found}
        for split in splits.values():  # pyarrow itself believes offsets, and reads where they lead
            split.data.validate(full=True)
    except Exception as error:  # the package raises its own, pyarrow's and the network's
        reason = " ".join(str(error.__cause__ or error).split())
        raise InputError(f"cannot load the Hugging Face dataset {title!r}: {reason}") from None
    if "train" not in splits:
        raise InputError(f"{title!r} has no split 'train'; it has: {', '.join(map(str, splits))}")
    return splits


def _items(
    datasets: Any,
    split: Any,
    config: DataConfig,
    folders: Sequence[Path],
    where: str,
    progress: Progress,
    problems: Problems,
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
    keys = _keys(images, config.image_column, folders, where, progress, problems)
    items = []
    for row, caption in enumerate(captions[config.caption_column]):
        with problems:
            texts = caption_texts(caption, f"{where} row {row}")
            load = partial(_load, images, config.image_column, row, folders, f"{where} row {row}")
            if row in keys:
                items.append(Item(keys[row], texts, load))
    return items


def _keys(
    images: Any,
    column: str,
    folders: Sequence[Path],
    where: str,
    progress: Progress,
    problems: Problems,
) -> dict[int, str]:
    """What identifies the image of each row: its file; its row in files of rows; or its bytes."""
    rows_in = [file["filename"] for file in images.cache_files]
    content = "|".join([images._fingerprint, *file_digests(folders[0], rows_in, progress)])
    names = _paths(images, column)
    paths = {}
    for row, name in enumerate(names):
        with problems:
            if name is not None:
                paths[row] = _file(name, folders, f"{where} row {row}")
    digests = file_digests(folders[0], list(paths.values()), progress)
    inside = {
        row: f"{content}|{column}|{row}" if rows_in else _digest(images[row][column])
        for row, name in enumerate(names)
        if name is None
    }
    return inside | dict(zip(paths, digests, strict=True))


def _paths(images: Any, column: str) -> list[str | None]:
    """The file that each image is in; None for one whose bytes are in the table; "" for none."""
    found: list[str | None] = []
    for start in range(0, len(images), ROWS):
        values = images.with_format("arrow")[start : start + ROWS][column].combine_chunks()
        inside = values.field("bytes").is_valid().to_pylist()
        paths = values.field("path").to_pylist()
        found += [None if here else path or "" for here, path in zip(inside, paths, strict=True)]
    return found


def _digest(value: Mapping[str, Any] | None) -> str:
    return hashlib.blake2b((value or {}).get("bytes") or b"", digest_size=16).hexdigest()


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
        raise BadRowError(f"{where} has no image", "captions without image")
    return decode_image(_file(value["path"], folders, where), where)


def _file(path: str, folders: Sequence[Path], where: str) -> Path:
    """The file of an image, which must lie below one of the folders."""
    if not path:
        raise BadRowError(f"{where} has no image", "captions without image")
    inside = (folder for folder in folders if (folder / path).resolve().is_relative_to(folder))
    return below(next(inside, folders[0]), path, where)


SOURCE = Source(read_huggingface)
