"""Whether the parts of a file that claims to hold a set belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lors.config import Config, SimilarityConfig
from lors.similarity import SIMILARITIES

if TYPE_CHECKING:
    from lors.sets.distilled import DistilledSet

__all__ = ["STANDARDS", "check_pairs", "check_sizes", "saved_similarity"]

STANDARDS = ("image_standard", "text_standard")


def check_sizes(distilled: DistilledSet) -> None:
    """Refuse parts that come from different sets."""
    encoder, images, texts = distilled.config.encoder, distilled.pairs.images, distilled.pairs.texts
    wanted = {"text_standard": distilled.text_trunk.dim}
    if encoder.space == "features":
        wanted["image_standard"] = images.shape[1]
    elif len(distilled.mean) != len(distilled.std) or len(distilled.mean) not in (
        1,
        images.shape[1],
    ):
        raise ValueError("mean and std of the pixels must be given for each channel")
    if encoder.scope != "all" and texts.shape[1] != distilled.text_trunk.dim:
        raise ValueError(
            f"texts of {texts.shape[1]} numbers are no embeddings of a text trunk that gives "
            f"{distilled.text_trunk.dim}"
        )
    for name in STANDARDS:
        standard = getattr(distilled, name)
        if standard is None:
            continue
        size = wanted.get(name, len(standard.mean.reshape(-1)))
        if not all(_takes(part, images) for part in (standard.mean, standard.scale)):
            raise ValueError(f"{name} is {standard.mean.dtype} and {standard.scale.dtype}")
        if standard.mean.shape != (size,) or standard.scale.shape or not standard.scale > 0:
            raise ValueError(f"{name} does not standardise {size} numbers")


def _takes(part: Tensor, images: Tensor) -> bool:
    """Whether a part of a standardisation leaves numbers of the type that networks here take."""
    widest = torch.promote_types(torch.float32, images.dtype)
    return part.is_floating_point() and torch.promote_types(part.dtype, widest) == widest


def check_pairs(config: Config, count: int, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are no synthetic pairs, before a similarity of their size is built."""
    image_dims = 4 if config.encoder.space == "pixels" else 2
    text_dims = 3 if config.encoder.scope == "all" else 2
    for name, dims in (("images", image_dims), ("texts", text_dims), ("rates", 1)):
        if name not in tensors:
            raise ValueError(f"it holds no {name}")
        shape, pairs = tuple(tensors[name].shape), 2 if name == "rates" else count
        if len(shape) != dims or shape[0] != pairs or not tensors[name].numel():
            raise ValueError(f"{name} of shape {shape} do not fit {count} pairs")
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or tensor.dtype != tensors["images"].dtype:
            raise ValueError(f"{name} are {tensor.dtype} and images {tensors['images'].dtype}")
    if not (tensors["rates"] > 0).all():
        raise ValueError(f"learning rates must be positive, not {tensors['rates'].tolist()}")
    kind = SIMILARITIES.choose(config.similarity.kind)
    similarity = saved_similarity(config, tensors)
    found = sum(t.numel() for name, t in tensors.items() if name.startswith("similarity."))
    wanted = kind.stored(similarity, count)
    if found != wanted:
        raise ValueError(
            f"a {config.similarity.kind} similarity of {count} pairs holds {wanted} numbers, "
            f"not {found}"
        )


def saved_similarity(config: Config, tensors: Mapping[str, Tensor]) -> SimilarityConfig:
    """What S of saved pairs is. A full one may be whole, whatever phases the set was learned in."""
    numbers = tensors["images"][0].numel() + tensors["texts"][0].numel()
    similarity = config.similarity_within(numbers)
    values = tensors.get("similarity.values")
    if similarity.kind == "full" and values is not None and values.dim() == 2:
        return similarity.model_copy(update={"blocks": 1})
    return similarity
