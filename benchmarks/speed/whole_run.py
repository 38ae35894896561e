"""A whole run, from photos to an evaluated set: ``lors distill`` against the published steps."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from benchmarks.speed.published import RESULT
from benchmarks.speed.ratio import Ratio, ratio
from lors.config import load_config
from lors.data.scenes import describe, draw, make_scene
from lors.files.artifacts import write_text
from lors.runs.folders import saved_results

__all__ = ["Case", "cases", "ratios"]

SHARED = Path(__file__).parents[3] / "shared"
SPLITS = ("train", "val", "test")
KARPATHY = ("data.source=karpathy", *(f"data.annotations.{name}={name}.json" for name in SPLITS))


@dataclass(frozen=True)
class Case:
    """A run that both do.

    Args:
        title: what it is, with its sizes.
        preset: whose settings it has,
        settings: but for these.
        photos: how many of each split.
        write: writes so many photos and their captions into a folder.
    """

    title: str
    preset: str
    settings: Sequence[str]
    photos: Mapping[str, int]
    write: Callable[[Path, Mapping[str, int]], None]


def write_scenes(folder: Path, photos: Mapping[str, int]) -> None:
    """The built-in scenes as files."""
    for place, name in enumerate(SPLITS):
        rows = []
        for index in range(place * 1_000_000, place * 1_000_000 + photos[name]):
            scene = make_scene(0, index)
            draw(scene, 0, index).save(folder / f"{index}.jpg", quality=95)
            captions = describe(scene, random.Random(index))
            rows.append({"image": f"{index}.jpg", "caption": list(captions)})
        _write(folder / f"{name}.json", rows)


def write_flickr(folder: Path, photos: Mapping[str, int]) -> None:
    """The first photos of Flickr8k; the last of its training split are for validation."""
    root = SHARED / "data" / "flickr8k"
    train, test = (
        json.loads((root / f"flickr8k_{name}.json").read_text("utf-8")) for name in ("train", "val")
    )
    chosen = {"train": train[: photos["train"]], "val": train[-photos["val"] :]}
    chosen["test"] = test[: photos["test"]]
    (folder / "images").mkdir()
    for name, rows in chosen.items():
        for row in rows:
            copyfile(root / row["image"], folder / row["image"])
        _write(folder / f"{name}.json", rows)


def cases() -> list[Case]:
    """Scenes; and photos of Flickr8k, where they are at hand."""
    scenes = Case(
        "scenes, nf_resnet_tiny 32 px",
        "demo",
        ("matching.gradient=tesla",),
        {"train": 2000, "val": 250, "test": 250},
        write_scenes,
    )
    weights = SHARED / "weights"
    flickr = Case(
        "Flickr8k, MobileNetV2 64 px",
        "flickr8k-image-lite0",
        (
            "encoder.image=mobilenetv2_100",
            f"encoder.image_weights={weights}/mobilenetv2_100/model.safetensors",
            f"encoder.text=transformers:{weights}/minilm_l6_v2",
            "experts.count=2",
            "matching.gradient=tesla",
            "distill.budget=20",
            "distill.iterations=40",
            "distill.evaluate_every=20",
            "distill.learning_rates.rates=0.000001",
            "evaluate={seeds: 2, epochs: 100, checks: 5}",
        ),
        {"train": 500, "val": 100, "test": 200},
        write_flickr,
    )
    return [scenes, flickr] if (SHARED / "data" / "flickr8k").is_dir() else [scenes]


def ratios(rounds: int, chosen: Sequence[Case] | None = None) -> list[Ratio]:
    """Each side starts as a user would start it, with empty caches: as processes of one thread.

    Ours is one command, which also measures val and writes a report; the published steps are two,
    experts and distillation. A run is long, so at most two rounds are timed. ``cpu`` is the ratio
    of CPU times; the recalls are means of six on test, at the last epoch, each with its deviation
    between networks.
    """
    return [_line(case, min(rounds, 2)) for case in (cases() if chosen is None else chosen)]


def _line(case: Case, rounds: int) -> Ratio:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        case.write(root, case.photos)
        config = load_config(case.preset, [*KARPATHY, f"data.root={root}", *case.settings])
        write_text(root / "config.yaml", config.yaml())
        ours: list[tuple[float, float]] = []
        theirs: list[tuple[float, float]] = []
        for number in range(rounds):
            turns = [(ours, _ours), (theirs, _published)]
            for times, run in turns if number % 2 else turns[::-1]:
                times.append(_timed(partial(run, root, number)))
        last = saved_results(root / "run-0").distilled.readings.last
        assert last is not None
        published = json.loads((root / RESULT).read_text("utf-8"))["mean"]
    more = {
        "cpu": statistics.median(t[1] / o[1] for o, t in zip(ours, theirs, strict=True)),
        "recall": last.mean.mean,
        "deviation": last.mean.std,
        "published recall": statistics.fmean(published),
        "its deviation": statistics.stdev(published) if len(published) > 1 else 0.0,
    }
    clock = [wall for wall, _ in ours], [wall for wall, _ in theirs]
    return ratio(case.title, clock[0], clock[1], more=more)


def _ours(root: Path, number: int) -> None:
    out = str(root / f"run-{number}")
    arguments = ["distill", str(root / "config.yaml"), "--no-references", "--out", out]
    _python(root, "lors", *arguments, home=root / f"home-{number}")


def _published(root: Path, number: int) -> None:
    (root / "texts.npz").unlink(missing_ok=True)
    for step in ("experts", "distil"):
        _python(root, "benchmarks.speed.published", step, str(root), home=root / f"home-{number}")


def _python(root: Path, module: str, *arguments: str, home: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "LORS_HOME": str(home), "PYTHONPATH": path}
    environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


def _timed(run: Callable[[], None]) -> tuple[float, float]:
    """Seconds of a clock, and of the CPU in child processes."""
    begun, before = time.perf_counter(), os.times()
    run()
    after = os.times()
    spent = after.children_user + after.children_system
    return time.perf_counter() - begun, spent - before.children_user - before.children_system


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text(json.dumps(rows), "utf-8")
