"""What an artefact is, in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lors.config import names
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
    if "config" in header:
        facts |= _describe_set(header, shapes.get("texts", ())[1:])
        facts["learned rates"] = ", ".join(f"{rate:.4g}" for rate in rates)
    if "encoder" in header:
        encoder = header["encoder"]
        facts["image trunk"] = f"{encoder['image']}, {encoder['image_size']} px"
        facts["text trunk"] = encoder["text"]
    if "origin" in header:
        facts |= {k: json.dumps(v) for k, v in header["origin"].items()}
    facts |= {k: header[k] for k in ("iteration", "best_recall") if k in header}
    facts |= {f"tensor {name}": shape for name, shape in shapes.items()}
    facts["bytes"] = f"{path.stat().st_size:,}"
    return facts


def _describe_set(header: dict[str, Any], text_shape: tuple[int, ...]) -> dict[str, Any]:
    config = header["config"]
    encoder = config["encoder"]
    return {
        "pairs": f"{header['pairs']}, storage of {header['storage']:.2f} plain pairs "
        f"(budget {config['distill']['budget']})",
        "data": config["data"]["source"],
        "image trunk": header["image_trunk"].replace("|", ", "),
        "scope, space": f"{encoder['scope']}, {encoder['space']}",
        "text trunk": f"{header['text_trunk']['kind']}, a text is {text_shape}",
        "normalisation": f"mean {header['mean']}, std {header['std']}",
        "loss": config["loss"],
        "similarity": ", ".join(f"{k} {v}" for k, v in config["similarity"].items()),
        "protocol": ", ".join(f"{k} {v}" for k, v in config["evaluate"].items()),
        "seed": config["seed"],
        "points to": ", ".join(_places(config)) or "nothing outside",
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
    facts: dict[str, Any] = {"kind": "run directory"}
    facts |= {f"file {f.name}": f"{f.stat().st_size:,} bytes" for f in sorted(path.iterdir())}
    for name, row in saved_results(path).rows.items():
        facts[f"mean recall, {name}"] = str(row.recall.mean)
    return facts
