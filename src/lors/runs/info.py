"""What an artefact is, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lors.config import names
from lors.evaluation.results import chance_of, in_one_sentence
from lors.files.artifacts import open_artifact
from lors.runs.folders import CONFIG, saved_results
from lors.system.errors import InputError

__all__ = ["describe"]


def describe(path: Path) -> dict[str, Any]:
    """Facts about any file or run directory that lors wrote, read from headers only.

    Raises:
        InputError: it is not one of ours.
    """
    if path.is_dir():
        return _describe_run(path)
    with open_artifact(path) as (header, handle):
        tensors = {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118
        shapes = {name: tuple(t.get_shape()) for name, t in tensors.items()}
        rates = handle.get_tensor("rates").tolist() if shapes.get("rates") == (2,) else []
    facts: dict[str, Any] = {"kind": header["kind"], "format": header["format"]}
    facts["size"] = _size(path)
    if "config" in header:
        facts |= _describe_set(header, shapes, rates)
    if "encoder" in header:
        encoder = header["encoder"]
        facts["image trunk"] = f"{encoder['image']}, {encoder['image_size']} px"
        facts["text trunk"] = encoder["text"]
    if "origin" in header:
        facts |= {k: json.dumps(v) for k, v in header["origin"].items()}
    facts |= {k: header[k] for k in ("iteration", "best_recall") if k in header}
    if "config" not in header:
        facts |= {f"tensor {name}": _shape(shape) for name, shape in shapes.items()}
    return facts


def _size(path: Path) -> str:
    """The size of a file, for people.

    >>> _size(Path(__file__)).split()[1]
    'kB'
    """
    size = path.stat().st_size
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{-(-size // 1000)} kB"


def _shape(shape: Sequence[int]) -> str:
    return " × ".join(f"{side:,}" for side in shape) or "one number"


def _describe_set(
    header: dict[str, Any], shapes: dict[str, tuple[int, ...]], rates: list[float]
) -> dict[str, Any]:
    config = header["config"]
    encoder, protocol = config["encoder"], config["evaluate"]
    similarity, space = config["similarity"], encoder["space"]
    unit = "features" if space == "features" else "pixels"
    kind = similarity["kind"]
    imported = {"imported from": header["imported"]} if header.get("imported") else {}
    return {
        **imported,
        "pairs": f"{header['pairs']:,}, in the storage of {header['storage']:.2f} plain pairs "
        f"(budget {config['distill']['budget']:,})",
        "an image": f"{_shape(shapes.get('images', ())[1:])} {unit}",
        "a text": f"{_shape(shapes.get('texts', ())[1:])} numbers",
        "similarity": f"{kind}, rank {similarity['rank']}" if kind == "lowrank" else kind,
        "rates" if imported else "learned rates": ", ".join(
            f"{rate:.4g} ({side})" for rate, side in zip(rates, ("image", "text"), strict=False)
        ),
        "loss": config["loss"],
        "what trains": f"scope {encoder['scope']}",
        "image trunk": f"{header['image_trunk'].partition('|')[0]}, {encoder['image_size']} px",
        "text trunk": header["text_trunk"]["kind"],
        "data": config["data"]["source"],
        "protocol": f"{protocol['epochs']} epochs, batches of {protocol['batch_size']}, "
        f"{protocol['seeds']} networks",
        "seed": config["seed"],
        "points to": "\n".join(_places(config)) or "nothing outside",
        "versions": ", ".join(f"{k} {v}" for k, v in header["versions"].items()),
    }


def _places(config: dict[str, Any]) -> list[str]:
    """The files, folders and repositories that using a set would read, for who did not make it."""
    sections = {"data": ("root", "name"), "experts": ("folder",), "similarity": ("values",)}
    sections["encoder"] = ("image_weights", "text")
    found = {f"{s}.{key}": config[s][key] for s, keys in sections.items() for key in keys}
    if not names.names_a_model(found["encoder.text"]):
        found["encoder.text"] = None
    return [f"{name} {value}" for name, value in found.items() if value is not None]


def _describe_run(path: Path) -> dict[str, Any]:
    if not (path / CONFIG).is_file():
        raise InputError(f"{str(path)!r} is not a run directory: it holds no {CONFIG}")
    results = saved_results(path)
    facts: dict[str, Any] = {"kind": "run directory"}
    for name, row in results.rows.items():
        facts[f"mean recall, {name}"] = f"{row.recall.mean} ({row.pairs:,} pairs)"
    if (least := chance_of(results.rows)) is not None:
        facts["mean recall, chance"] = f"{least.mean:.1f}"
    facts["in short"] = in_one_sentence(results.rows) or "not evaluated yet"
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    return facts | {file.name: _size(file) for file in files}
