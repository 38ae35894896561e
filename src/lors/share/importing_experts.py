"""Experts that other projects publish, read into ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lors.config import load_config
from lors.experts import TrajectoryStore, store_of
from lors.files.published import IMAGES, TEXTS, published_experts
from lors.setting import setting_of
from lors.share.importing import Changes, inputs_of
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent

__all__ = ["buffers", "holds_experts", "import_experts"]


def import_experts(
    source: str | Path | Sequence[str | Path],
    like: str | Path | Mapping[str, Any],
    out: str | Path,
    overrides: Changes = (),
    *,
    progress: Progress | None = None,
) -> TrajectoryStore:
    """Experts of another project, into a folder that ``experts.folder`` can name.

    The published files are pickles, and are opened as those of ``import_set``. They do not say what
    they were trained on, or how: that it was as the configuration says is yours to know.

    >>> import torch
    >>> plain = ["encoder.standardise=false", "encoder.normalisation=clip", "experts.epochs=2"]
    >>> model = setting_of(lors.load_config("tiny", plain)).model("any")
    >>> for side, part in zip(("img", "txt"), model.sides()):
    ...     epochs = [[p.detach() + epoch for p in part] for epoch in range(3)]
    ...     torch.save([epochs], f"{side}_replay_buffer_0.pt")
    >>> store = import_experts("img_replay_buffer_0.pt", "tiny", "experts", plain)
    >>> store.kept(0)
    [0, 1, 2]

    Args:
        source: ``img_replay_buffer_K.pt``, whose partner ``txt_replay_buffer_K.pt`` lies beside it;
            several of them; or their folder.
        like: a preset, a YAML file or settings that they were trained with.
        out: the folder to write; it must hold no experts yet.
        overrides: changes to it, as ``"section.key=value"`` or by dotted name.
        progress: reports long-running work.

    Raises:
        InputError: a file is none, its parameters are not those of the configuration's network, or
            snapshots of an expert are the same.
    """
    progress, out = progress or Silent(), Path(out)
    files = buffers(source)
    given = load_config(like, overrides)
    found = {**inputs_of(given, overrides), "experts.folder": str(out)}
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{str(out)!r} is there already: choose another --out, or delete it")
    setting = setting_of(load_config(given.model_dump(mode="json"), found), progress)
    store, sides = store_of(setting), setting.flat.model.sides()
    shapes = [[tuple(p.shape) for p in side] for side in sides]
    number = 0
    for file in progress.track(files, "import experts", len(files)):
        for theta in published_experts(file, (shapes[0], shapes[1]), setting.config.experts.epochs):
            kept = theta if store.epochs is None else theta[list(store.epochs)]
            store.write(number, kept, None)
            number += 1
    return store


def holds_experts(path: Path) -> bool:
    """Whether a path is of published experts rather than of a set."""
    if path.is_dir():
        return any(path.glob(f"{IMAGES}_*.pt"))
    return path.name.startswith((IMAGES, TEXTS))


def buffers(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files of the image side that are meant, in the order of their numbers."""
    given = [source] if isinstance(source, (str, Path)) else list(source)
    if not given:
        raise InputError("give experts to import")
    files: list[Path] = []
    for path in map(Path, given):
        files += path.glob(f"{IMAGES}_*.pt") if path.is_dir() else [path]
    if not files:
        raise InputError(f"{str(given[0])!r} holds no {IMAGES}_K.pt")

    def number(path: Path) -> tuple[int, str]:
        digits = path.stem.rpartition("_")[2]
        return (int(digits) if digits.isdecimal() else 0, path.name)

    return sorted(files, key=number)
