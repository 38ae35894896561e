"""Images and captions that are in memory: lists, or anything that can be indexed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lors.config import DataConfig
from lors.data.bad_row import BadRowError
from lors.data.files import caption_texts
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.data.problems import IN_MEMORY, collecting
from lors.system.errors import InputError, out_of_memory
from lors.system.progress import Progress, Silent

__all__ = ["dataset_items", "image_items"]

NO_IMAGE, NO_PAIR = "images that are none", "rows that are no pairs"
UNREAD = "rows that cannot be read"


def image_items(
    images: Sequence[Any], captions: Sequence[Any], what: str = "", skip_bad: bool = False
) -> list[Item]:
    """Lists of images and captions as items.

    Args:
        images: PIL images, files, arrays or tensors; see ``as_image``.
        captions: of each image one text, or a list of texts.
        what: begins the names of the lists in messages, as in ``"test "``.
        skip_bad: leave out what cannot be used, instead of refusing the lists.

    Raises:
        InputError: the lists differ in length, or hold something else.
    """
    if len(images) != len(captions):
        raise InputError(
            f"there are {len(images)} {what}images and {len(captions)} {what}captions: give for "
            "each image one caption, or a list of them"
        )
    items = []
    with collecting(_config(skip_bad), Silent(), IN_MEMORY) as problems:
        for row in range(len(images)):
            with problems:
                items.append(_item(images, row, captions[row], f"{what}image {row}"))
        problems.settle(len(images), f"{what}images")
    return items


def dataset_items(
    dataset: Any, what: str, progress: Progress, skip_bad: bool = False
) -> list[Item]:
    """A dataset whose rows are an image and its caption, or captions, as items.

    Every row is read once to know its content, and again to be decoded, so a dataset that changes
    images at random is seen as it was the second time.

    Args:
        dataset: has a length, and rows ``(image, caption)`` or mappings with these two names.
        what: says in messages which one it is.
        progress: reports long-running work.
        skip_bad: leave out rows that cannot be used, instead of refusing the dataset.
    """
    rows = range(len(dataset))
    items = []
    with collecting(_config(skip_bad), progress, IN_MEMORY) as problems:
        for row in progress.track(rows, "read the dataset", len(rows)):
            with problems:
                image, caption = _pair(dataset, row, f"{what} row {row}")
                images = _Column(dataset, f"{what} row {row}")
                items.append(_item(images, row, caption, f"{what} row {row}", image))
        problems.settle(len(rows), f"rows of {what}")
    return items


def _config(skip_bad: bool) -> DataConfig:
    return DataConfig(source="objects", skip_bad=skip_bad)


class _Column:
    """The images of a dataset, one at a time."""

    def __init__(self, dataset: Any, where: str) -> None:
        self.dataset, self.where = dataset, where

    def __getitem__(self, row: int) -> Any:
        return _pair(self.dataset, row, self.where)[0]


def _pair(dataset: Any, row: int, where: str) -> tuple[Any, Any]:
    try:
        found = dataset[row]
    except Exception as error:  # a dataset of the caller's may raise anything
        if out_of_memory(error):
            raise
        reason = " ".join(str(error).split())
        raise BadRowError(
            f"{where} cannot be read ({type(error).__name__}: {reason})", UNREAD
        ) from error
    if isinstance(found, dict):
        if not {"image", "caption"} <= found.keys():
            columns = ", ".join(map(str, found))
            raise BadRowError(f"{where} has {columns}: give image and caption", NO_PAIR)
        return found["image"], found["caption"]
    if not isinstance(found, (tuple, list)) or len(found) < 2:
        raise BadRowError(f"{where} is a {type(found).__name__}: give (image, caption)", NO_PAIR)
    return found[0], found[1]


def _item(images: Any, row: int, caption: Any, where: str, image: Any = None) -> Item:
    pixels = as_image(images[row] if image is None else image, where)
    content = hashlib.blake2b(repr((pixels.mode, pixels.size)).encode(), digest_size=16)
    content.update(pixels.tobytes())
    captions = caption_texts(caption, where)
    return Item(content.hexdigest(), captions, partial(_load, images, row, where))


def _load(images: Any, row: int, where: str) -> Image.Image:
    return as_image(images[row], where)


def as_image(image: Any, where: str) -> Image.Image:
    """An image of any usual kind, in RGB.

    Args:
        image: a PIL image; the path of a file; or an array or tensor, (height, width, 3) or (3,
            height, width), of whole numbers from 0 to 255 or floating-point ones from 0 to 1.
        where: names it in messages.

    Raises:
        BadRowError: it is something else.
    """
    if isinstance(image, Image.Image):
        return _converted(image, where)
    if isinstance(image, (str, Path)):
        if not Path(image).is_file():
            raise BadRowError(f"{where}: there is no file {str(image)!r}", "missing files")
        return decode_image(Path(image), f"{where}, {str(image)!r}")
    array = image.detach().cpu().numpy() if hasattr(image, "detach") else np.asarray(image)
    if array.ndim == 3 and array.shape[0] == 3 and array.shape[2] != 3:
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[2] != 3 or array.dtype.kind not in "uif":
        raise BadRowError(
            f"{where} is a {type(image).__name__} of shape {getattr(array, 'shape', '?')}: give a "
            "PIL image, the path of a file, or an array of shape (height, width, 3)",
            NO_IMAGE,
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or array.min() < 0 or array.max() > 1:
            raise BadRowError(
                f"{where}: give floating-point pixels from 0 to 1, not normalised", NO_IMAGE
            )
        array = (255 * array).round()
    elif array.min() < 0 or array.max() > 255:
        raise BadRowError(f"{where}: give whole pixels from 0 to 255", NO_IMAGE)
    return Image.fromarray(np.ascontiguousarray(array.astype(np.uint8)))


def _converted(image: Image.Image, where: str) -> Image.Image:
    """In RGB. One that was opened from a file is read only now, and may be damaged."""
    try:
        return image.convert("RGB")
    except (OSError, ValueError, SyntaxError) as error:
        raise BadRowError(f"{where} cannot be decoded ({error})", "unreadable images") from error
