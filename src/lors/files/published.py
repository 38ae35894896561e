"""Sets and experts as the codes of LoRS, RepBlend and PTM-ST write them.

A set is a dictionary: ``image`` (N, 3, size, size), ``text`` (N, d), ``similarity_params``
([ω, L, R] or [S]), ``similarity_mat`` (N, N), ``syn_lr_img`` and ``syn_lr_txt``. Experts are two
lists, of the image and of the text side, of experts, of epochs 0 … T, of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lors.files.artifacts import all_finite
from lors.files.pickles import TensorSpec
from lors.files.torch_files import read_tensors, write_tensors_as_pickle
from lors.system.errors import InputError
from lors.system.memory import check_fits

__all__ = ["PublishedSet", "published_experts", "read_published_set", "write_published_set"]

SET = ("image", "text", "similarity_params", "similarity_mat", "syn_lr_img", "syn_lr_txt")
OPTIONAL = ("similarity_params", "similarity_mat")
LARGE = 1e30
MOST = 1000
"""Experts in a file: far more than there are."""

IMAGES, TEXTS = "img_replay_buffer", "txt_replay_buffer"
"""How the names of expert files begin."""


@dataclass(frozen=True)
class PublishedSet:
    """A set as its file holds it.

    Args:
        images: as the published code feeds them to its image trunk. Shape: (N, 3, size, size)
        texts: embeddings. Shape: (N, d)
        factors: ω, L and R of shapes (N,), (N, r) and (N, r); or S of shape (N, N); or nothing.
        matrix: S, if the file has it. Shape: (N, N)
        rates: of the image and the text side. Shape: (2,)
    """

    images: Tensor
    texts: Tensor
    factors: tuple[Tensor, ...]
    matrix: Tensor | None
    rates: Tensor


def read_published_set(path: Path) -> PublishedSet:
    """Read a set. Its shapes and sizes are checked before any number is read.

    Raises:
        InputError: it is no such set, or not all of its numbers are finite.
    """
    found = read_tensors(path, _check_set)
    wide = torch.promote_types(found["image"].dtype, torch.float32)
    factors = tuple(_copy(part, wide) for part in found.get("similarity_params", ()))
    matrix = found.get("similarity_mat")
    rates = (torch.as_tensor(found[name]).reshape(()) for name in ("syn_lr_img", "syn_lr_txt"))
    read = PublishedSet(
        _copy(found["image"], wide),
        _copy(found["text"], wide),
        factors,
        None if matrix is None else _copy(matrix, wide),
        torch.stack([_copy(rate, wide) for rate in rates]),
    )
    every = (
        read.images,
        read.texts,
        *read.factors,
        read.rates,
        *([] if matrix is None else [matrix]),
    )
    if not all(map(all_finite, every)):
        raise InputError(f"cannot import {str(path)!r}: not all of its numbers are finite")
    if not (read.rates > 0).all():
        raise InputError(
            f"cannot import {str(path)!r}: its learning rates are {read.rates.tolist()}, and must "
            "be positive"
        )
    return read


def _copy(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to(dtype, copy=True).contiguous()


def _check_set(found: Any) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"a set is a dictionary, and this is a {type(found).__name__}")
    if unknown := sorted(found.keys() - set(SET)):
        raise ValueError(f"it holds {unknown[0][:40]!r}, which a published set has not")
    if missing := [name for name in SET if name not in found and name not in OPTIONAL]:
        raise ValueError(f"it holds no {missing[0]!r}, as a published set does")
    pairs, channels, height, width = _shape(found["image"], "image", 4)
    if channels != 3 or height != width:
        raise ValueError(f"image has shape {found['image'].shape}, not (N, 3, size, size)")
    wanted = {"text": (pairs, _shape(found["text"], "text", 2)[1])}
    if "similarity_mat" in found:
        wanted["similarity_mat"] = (pairs, pairs)
    for name, shape in wanted.items():
        _check_shape(found[name], name, shape)
    _check_factors(found.get("similarity_params"), pairs)
    for name in ("syn_lr_img", "syn_lr_txt"):
        rate = found[name]
        plain = type(rate) in (float, int) and abs(rate) < LARGE
        if not plain and not (isinstance(rate, TensorSpec) and rate.numbers == 1):
            raise ValueError(f"{name} is not one number")
    tensors = [part for part in found.values() if isinstance(part, TensorSpec)]
    tensors += found.get("similarity_params", [])
    check_fits(2 * sum(8 * tensor.numbers for tensor in tensors), "the set")


def _check_factors(factors: Any, pairs: int) -> None:
    if factors is None:
        return
    if type(factors) not in (list, tuple) or len(factors) not in (1, 3):
        raise ValueError("similarity_params is neither [ω, L, R] nor [S]")
    if len(factors) == 1:
        _check_shape(factors[0], "S", (pairs, pairs))
        return
    rank = _shape(factors[1], "L", 2)[1]
    for name, part, shape in zip(
        ("ω", "L", "R"), factors, ((pairs,), (pairs, rank), (pairs, rank)), strict=True
    ):
        _check_shape(part, name, shape)


def _shape(found: Any, name: str, dims: int) -> tuple[int, ...]:
    if not isinstance(found, TensorSpec) or len(found.shape) != dims:
        raise ValueError(f"{name} is not a tensor of {dims} dimensions")
    return found.shape


def _check_shape(found: Any, name: str, shape: tuple[int, ...]) -> None:
    if _shape(found, name, len(shape)) != shape:
        raise ValueError(f"{name} has shape {found.shape}, where {shape} would fit its images")


def write_published_set(path: Path, content: PublishedSet) -> None:
    """Write a set for the published scripts."""
    image_rate, text_rate = content.rates
    fields = {
        "image": content.images,
        "text": content.texts,
        "similarity_params": list(content.factors),
        "similarity_mat": content.matrix,
        "syn_lr_img": image_rate.clone(),
        "syn_lr_txt": text_rate.clone(),
    }
    write_tensors_as_pickle(path, fields)


def published_experts(
    path: Path, shapes: tuple[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]], epochs: int
) -> Iterator[Tensor]:
    """The experts of a pair of files, one after the other.

    Args:
        path: the file of the image side, ``img_replay_buffer_K.pt``; that of the text side lies
            beside it.
        shapes: of the parameters of the image side and of the text side, in their order.
        epochs: T, how many each was trained for.

    Yields:
        θ of each epoch, the image side first. Shape: (T + 1, P)

    Raises:
        InputError: a file is no such list, does not fit the network or its partner, or holds the
            same parameters for two epochs.
    """
    beside = text_file(path)
    sides = []
    for file, side, wanted in zip((path, beside), ("image", "text"), shapes, strict=True):
        check = partial(_check_side, side=side, shapes=wanted, epochs=epochs)
        sides.append(read_tensors(file, check))
    images, texts = sides
    if len(images) != len(texts):
        raise InputError(
            f"{str(path)!r} holds {len(images)} experts and {str(beside)!r} {len(texts)}: give "
            "files of the same training runs"
        )
    for number, (image, text) in enumerate(zip(images, texts, strict=True)):
        check_fits(
            4 * (epochs + 1) * sum(p.numel() for p in (*image[0], *text[0])), repr(str(path))
        )
        for side in (image, text):
            for epoch, (before, after) in enumerate(pairwise(side)):
                if all(map(torch.equal, before, after)):
                    raise InputError(f"cannot import {str(path)!r}: {_alike(number, epoch)}")
        thetas = [_theta(both) for both in zip(image, text, strict=True)]
        if not all(map(all_finite, thetas)):
            raise InputError(
                f"cannot import {str(path)!r}: not all parameters of expert {number} are finite"
            )
        yield torch.stack(thetas)


def text_file(path: Path) -> Path:
    """The file of the text side that belongs to one of the image side.

    Raises:
        InputError: the name is not that of an expert file.
    """
    if not path.name.startswith(IMAGES):
        raise InputError(
            f"{str(path)!r} is not named {IMAGES}_K.pt, so it is not known which file holds the "
            "text side: give the file of the image side under its published name"
        )
    return path.with_name(path.name.replace(IMAGES, TEXTS, 1))


def _alike(expert: int, epoch: int) -> str:
    return (
        f"expert {expert} has the same parameters after epochs {epoch} and {epoch + 1}, as buffers "
        "that were written on a CPU have: all its snapshots are the last one, and it cannot be used"
    )


def _theta(sides: tuple[list[Tensor], list[Tensor]]) -> Tensor:
    return torch.cat([part.detach().reshape(-1).float() for side in sides for part in side])


def _check_side(found: Any, side: str, shapes: Sequence[tuple[int, ...]], epochs: int) -> None:
    """A list of experts, of epochs, of parameters that fit the network and lie apart."""
    if type(found) is not list or not 0 < len(found) <= MOST:
        raise ValueError("experts are a list of lists of lists of tensors, and this is not")
    for number, expert in enumerate(found):
        if type(expert) is not list:
            raise ValueError(f"expert {number} is not a list of epochs")
        if len(expert) != epochs + 1:
            raise ValueError(
                f"expert {number} has {len(expert)} snapshots, and experts.epochs={epochs} needs "
                f"{epochs + 1}: set experts.epochs={max(1, len(expert) - 1)}"
            )
        before: set[str] = set()
        for epoch, parameters in enumerate(expert):
            _check_parameters(parameters, side, shapes)
            now = {part.stored.key for part in parameters}
            if now & before:
                raise ValueError(_alike(number, epoch - 1))
            before |= now


def _check_parameters(found: Any, side: str, shapes: Sequence[tuple[int, ...]]) -> None:
    if type(found) is not list or not all(isinstance(part, TensorSpec) for part in found):
        raise ValueError("an epoch is not a list of tensors")
    theirs = [part.shape for part in found]
    if len(theirs) != len(shapes):
        raise ValueError(
            f"its {side} side has {len(theirs)} parameters, and the network of the configuration "
            f"{len(shapes)}: choose another --like, or set its encoder"
        )
    for number, (one, other) in enumerate(zip(theirs, shapes, strict=True)):
        if one != tuple(other):
            raise ValueError(
                f"parameter {number} of its {side} side has shape {one}, and that of the network "
                f"of the configuration {tuple(other)}: choose another --like, or set its encoder"
            )
