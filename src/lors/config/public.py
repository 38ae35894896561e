"""What of a configuration may be published: nothing that tells of the machine it was run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lors.config import Config, load_config

__all__ = ["public_config", "public_header"]


def public_config(config: Config) -> Config:
    """The configuration without folders of this machine; of local files, the names are kept."""
    values = config.model_dump(mode="json")
    data, encoder = values["data"], values["encoder"]
    data["root"] = values["experts"]["folder"] = None
    data["annotations"] = {key: _local_name(name) for key, name in data["annotations"].items()}
    if encoder["image_weights"] not in (None, "hub"):
        encoder["image_weights"] = Path(encoder["image_weights"]).name
    if values["similarity"]["values"] is not None:
        values["similarity"]["values"] = Path(values["similarity"]["values"]).name
    encoder["text"], values["scorer"] = _model(encoder["text"]), _model(values["scorer"])
    values["trackers"] = []
    return load_config(values)


def public_header(header: dict[str, Any]) -> dict[str, Any]:
    """The header of a distilled set with its configuration, and the name of its text trunk, so."""
    config = public_config(load_config(header["config"])).model_dump(mode="json")
    trunk = dict(header["text_trunk"])
    if "name" in trunk:
        trunk["name"] = _model(f"{trunk['kind']}:{trunk['name']}").partition(":")[2]
    return {**header, "config": config, "text_trunk": trunk}


def _local_name(name: str) -> str:
    return Path(name).name if Path(name).is_absolute() else name


def _model(name: str) -> str:
    """``kind:NAME``, where NAME may be a folder here, or end in the path of a file here.

    >>> _model("transformers:/home/me/bert")
    'transformers:bert'
    >>> _model("open_clip:ViT-B-32//home/me/weights.pt")
    'open_clip:ViT-B-32/weights.pt'
    >>> _model("transformers:openai/clip-vit-base-patch32")
    'transformers:openai/clip-vit-base-patch32'
    """
    kind, colon, rest = name.partition(":")
    architecture, slash, tag = rest.partition("/")
    if _is_here(rest):
        rest = Path(rest).name
    elif kind == "open_clip" and _is_here(tag):
        rest = f"{architecture}{slash}{Path(tag).name}"
    return f"{kind}{colon}{rest}"


def _is_here(path: str) -> bool:
    return bool(path) and (Path(path).is_absolute() or Path(path).expanduser().exists())
