"""A set as a file holds it: a JSON header, and tensors by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from lors.config import load_config
from lors.encoders import Standard
from lors.encoders.text import kind_of, restore_text_trunk
from lors.files import artifacts
from lors.sets.checks import STANDARDS, check_pairs, saved_similarity
from lors.sets.compact import compacted, expanded
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import build_similarity

if TYPE_CHECKING:
    from lors.sets.distilled import DistilledSet

__all__ = ["restored_parts", "saved_parts"]


def saved_parts(
    distilled: DistilledSet, bits: int = 32
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a set, with so many bits per number: see ``compact``."""
    trunk_header, trunk_tensors = distilled.text_trunk.state()
    header = {
        "config": distilled.config.model_dump(mode="json"),
        "pairs": len(distilled),
        "storage": distilled.storage(),
        "mean": distilled.mean,
        "std": distilled.std,
        "image_trunk": distilled.image_trunk,
        "text_trunk": {"kind": kind_of(distilled.text_trunk), **trunk_header},
        "versions": artifacts.versions(),
        "captions": distilled.captions,
    }
    if distilled.imported:
        header["imported"] = distilled.imported
    groups = {"text_trunk": trunk_tensors}
    for name in STANDARDS:
        standard = getattr(distilled, name)
        if standard is not None:
            groups[name] = standard.state_dict()
    tensors = compacted(distilled.pairs.state_dict(), bits)
    tensors |= {f"{group}.{k}": t for group, ts in groups.items() for k, t in ts.items()}
    return header, tensors


def restored_parts(header: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    """What a ``DistilledSet`` is made of, by the names of its fields.

    Raises:
        ValueError: or another, where they do not belong together.
    """
    config, count = load_config(header["config"]), header["pairs"]
    groups: dict[str, dict[str, Tensor]] = {g: {} for g in ("text_trunk", *STANDARDS, "")}
    for name, tensor in tensors.items():
        group, _, rest = name.partition(".")
        known = group in groups
        groups[group if known else ""][rest if known else name] = tensor
    own = expanded(groups[""])
    check_pairs(config, count, own)
    similarity = build_similarity(saved_similarity(config, own), count)
    similarity = similarity.to(own["images"].dtype)
    pairs = SyntheticPairs(own["images"], own["texts"], similarity)
    pairs.load_state_dict(own)
    saved = header["text_trunk"]
    trunk = restore_text_trunk(saved["kind"], config.encoder, saved, groups["text_trunk"])
    return {
        "pairs": pairs,
        "config": config,
        "text_trunk": trunk,
        "mean": tuple(header["mean"]),
        "std": tuple(header["std"]),
        "image_trunk": header["image_trunk"],
        "captions": tuple(header.get("captions") or ()),
        "imported": header.get("imported") or "",
        **{name: Standard(**groups[name]) for name in STANDARDS if groups[name]},
    }
