"""A set as a plain folder that needs no lors to read.

Its layout is that of Hugging Face's imagefolder: PNG images and a ``metadata.jsonl``.
See https://huggingface.co/docs/datasets/image_dataset.
"""

from __future__ import annotations

import csv
import glob
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from PIL import Image

from lors.config import load_config
from lors.config.public import public_config, public_header
from lors.files import artifacts
from lors.files.arrays import write_array
from lors.runs.card import card
from lors.runs.folders import CARD, SET
from lors.runs.opened import Run
from lors.sets.distilled import KIND
from lors.setting.neighbours import nearest_captions
from lors.system.errors import InputError

__all__ = ["export"]

CSV_PAIRS = 1000
"""A similarity of more pairs is written as an array: as text it would have tens of megabytes."""


def export(run: Run, out: Path) -> None:
    """Write a set to a new folder, with a card. Nothing in it tells of this machine.

    Synthetic images become PNG files. A set of features has none: its features are written, and
    the nearest real images are not, as their licence may not allow it.

    Args:
        run: the run or set; its real data is read for the nearest captions.
        out: must not exist, or be empty.

    Raises:
        InputError: the folder is taken, or the real data cannot be read.
    """
    with _new_folder(out) as folder:
        files = {**_write_pairs(run, folder), **_write_similarity(run, folder)}
        texts = {"texts": run.distilled.texts.cpu().contiguous()}
        artifacts.write_tensors(folder / "texts.safetensors", texts)
        files["texts.safetensors"] = "the texts, as embeddings of the text encoder"
        header, tensors = artifacts.load(run.set_path, KIND)
        artifacts.save(folder / SET, KIND, public_header(header), tensors)
        files[SET] = "the set itself, for `lors`: all of this in full precision"
        (folder / "config.yaml").write_text(_configuration(run), "utf-8")
        files["config.yaml"] = "the configuration it was made with"
        about = card(run.distilled, run.results.rows, header["versions"], files)
        (folder / CARD).write_text(about, "utf-8")


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """A folder that takes its name only if the block succeeds."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{str(out)!r} is there already: choose another --out, or delete it")
    out.parent.mkdir(parents=True, exist_ok=True)
    begun = f".{out.name}.export-{platform.node()}-"
    for left in out.parent.glob(f"{glob.escape(begun)}*"):
        process = left.name.removeprefix(begun)
        if process.isdigit() and not psutil.pid_exists(int(process)):
            shutil.rmtree(left, ignore_errors=True)  # of a process that was killed
    folder = out.with_name(f"{begun}{os.getpid()}")
    folder.mkdir()
    try:
        yield folder
        os.replace(folder, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _configuration(run: Run) -> str:
    beside = run.folder / "config.yaml"
    return public_config(load_config(beside) if beside.is_file() else run.config).yaml()


def _write_pairs(run: Run, folder: Path) -> dict[str, str]:
    """The images or features, and a line of JSON for each pair."""
    rows = _pairs(run)
    if run.distilled.config.encoder.space == "features":
        features = {"images": run.distilled.images.cpu().contiguous()}
        artifacts.write_tensors(folder / "features.safetensors", features)
        _write_lines(folder / "pairs.jsonl", rows)
        return {
            "features.safetensors": "the images, as features of the image encoder",
            "pairs.jsonl": _columns(rows),
        }
    (folder / "images").mkdir()
    digits = len(str(len(rows) - 1))
    for row, pixels in zip(rows, run.distilled.pixels().cpu(), strict=True):
        row["file_name"] = f"images/{row['index']:0{digits}}.png"
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(folder / row["file_name"])
    _write_lines(folder / "metadata.jsonl", rows)
    return {"images/": "the images, rounded to 8 bits", "metadata.jsonl": _columns(rows)}


def _pairs(run: Run) -> list[dict[str, Any]]:
    """Of each pair: s_ii, and the nearest real caption now and at the start."""
    captions = run.setting.pairs.splits["train"].captions
    s = run.distilled.pairs.similarity.matrix().diagonal().tolist()
    rows: list[dict[str, Any]] = [{"index": i, "s_ii": value} for i, value in enumerate(s)]
    for prefix, pairs in (("", run.distilled.pairs), ("start_", run.start)):
        found = nearest_captions(run.setting, pairs.texts)
        for row, index, cosine in zip(rows, found.index[:, 0], found.cosine[:, 0], strict=True):
            if captions:
                row[f"{prefix}text"] = captions[index]
            else:
                row[f"{prefix}text_index"] = int(index)
            row[f"{prefix}cosine"] = float(cosine)
    return rows


def _columns(rows: list[dict[str, Any]]) -> str:
    nearest = "`text`: the nearest caption"
    if "text" not in rows[0]:
        nearest = "`text_index`: the row of the nearest of the given texts"
    return (
        f"one line per pair. {nearest} of the training split, with its `cosine`; `start_…`: the "
        "same before distillation; `s_ii`: the similarity of the pair's image and text"
    )


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), "utf-8")


def _write_similarity(run: Run, folder: Path) -> dict[str, str]:
    values = run.distilled.pairs.similarity.matrix().detach().float().cpu().numpy()
    what = "the similarity S: a row per image, a column per text"
    if len(values) > CSV_PAIRS:
        write_array(folder / "similarity.npy", values)
        return {"similarity.npy": what}
    with (folder / "similarity.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("image", *(f"text {i}" for i in range(len(values)))))
        for i, row in enumerate(values):
            table.writerow((i, *(f"{value:.9g}" for value in row)))
    return {"similarity.csv": what}
