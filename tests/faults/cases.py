"""Small runs drawn at random, faults drawn at random, and what must come of both."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import numpy as np

from lors.config import Config, load_config
from lors.config.options import options_of
from lors.experts import experts_of
from lors.files import artifacts
from lors.runs.pipeline import run
from lors.selection import SELECTIONS
from lors.setting import setting_of
from lors.system.errors import LorsError
from tests.faults.disk import Disk, Fault, How, Killed, When

__all__ = [
    "Case",
    "Tally",
    "disturb",
    "draw_case",
    "finish",
    "plain_case",
    "try_chain",
    "write_embeddings",
]

LEFTOVERS_ARE_REMOVED = True
"""Whether temporary files and unfinished experts of a killed process are gone when the run ends."""

MOST_FAULTS = 12
"""In one chain."""

HOW: tuple[How, ...] = ("error", "lasting", "kill", "kill", "power")
WHEN: tuple[When, ...] = ("before", "middle", "after")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EDQUOT)

SMALL = (
    "data.pairs={train: 20, val: 5, test: 5}",
    "encoder.image_size=16",
    "encoder.text_dim=4",
    "experts.count=1",
    "experts.epochs=2",
    "experts.batch_size=10",
    "matching.steps=1",
    "matching.batch_size=3",
    "matching.min_start_epoch=0",
    "matching.max_start_epoch=1",
    "matching.derivative=double",
    "similarity.rank=1",
    "distill.budget=4",
    "evaluate.seeds=1",
    "evaluate.epochs=1",
    "evaluate.checks=1",
    "evaluate.tried_rates=[0.1]",
    "evaluate.tried_losses=[nce]",
)
HEADS = ("encoder.scope=heads", "encoder.image_head=linear", "encoder.embed_dim=4")
FEATURES = (*HEADS, "encoder.space=features")
EMBEDDINGS = (
    *FEATURES,
    "data.source=embeddings",
    "data.annotations={images: images.npy, texts: texts.npy}",
    "data.pairs={}",
)


@dataclass(frozen=True)
class Case:
    """A run that nothing disturbed.

    Args:
        config: of the run.
        experts_only: train experts and stop.
        folder: holds what the run left, ``out`` and ``home``.
        left: what counts of it, by file.
        cold: the kinds of its file operations, in order.
        warm: likewise, once the caches and experts were there.
    """

    config: Config
    experts_only: bool
    folder: Path
    left: dict[str, object]
    cold: list[str]
    warm: list[str]

    def __str__(self) -> str:
        config = self.config
        if self.experts_only:
            return "experts"
        what = config.selection.kind or config.matching.kind
        return f"{config.encoder.space}, {what}"


@dataclass
class Tally:
    """What was tried and what came of it.

    Args:
        faults: by how, by the kind of operation, and by how the disturbed run ended.
        chains: runs that were disturbed until they ended, with the bits of an undisturbed one.
    """

    faults: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    chains: Counter[str] = field(default_factory=Counter)


def write_embeddings(folder: Path) -> None:
    """A dump of embeddings, for runs that need no images."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    common = rng.normal(size=(30, 6))
    for name in ("images", "texts"):
        noise = rng.normal(size=(30, 6))
        np.save(folder / f"{name}.npy", (common + 0.3 * noise).astype(np.float32))


def settings(draw: random.Random, data: Path) -> list[str]:
    """A small configuration; some are refused."""
    source = draw.choice(("embeddings", "embeddings", "scenes", "pixels", "image"))
    if source == "embeddings":
        chosen = [*EMBEDDINGS, f"data.root={data}"]
    else:
        chosen = {"scenes": [*FEATURES], "pixels": [*HEADS], "image": []}[source]
    chosen.append(f"distill.checkpoint_every={draw.choice((1, 2, 3))}")
    if draw.random() < 0.2:
        return [*chosen, f"selection.kind={draw.choice(sorted(SELECTIONS))}"]
    kinds = ["trajectory"] * 3 + ["gradient", "distribution", "hindsight"]
    if source != "image":
        kinds += ["covariance", "joint-distribution", "analytic"]
    kind = draw.choice(kinds)
    similarity = draw.choice(("identity", "diagonal", "lowrank", "full"))
    chosen += [
        f"matching.kind={kind}",
        f"matching.gradient={draw.choice(('exact', 'tesla'))}",
        f"similarity.kind={similarity}",
        f"loss={draw.choice(('wbce', 'ence', 'bce'))}",
        f"distill.optimizer={draw.choice(('sgd', 'adam'))}",
        f"distill.schedule={draw.choice(('constant', 'cosine'))}",
        f"distill.averaging={draw.choice((0, 0.9))}",
        f"distill.iterations={draw.choice((2, 3, 4))}",
        f"distill.evaluate_every={draw.choice((0, 1, 2))}",
        f"distill.trajectories={draw.choice((1, 1, 2))}",
        f"distill.init={draw.choice(('real', 'real', 'noise', 'k-means', 'herding', 'replicas'))}",
        f"distill.retries={draw.choice((0, 3))}",
        f"experts.compact={draw.choice(('true', 'false'))}",
        f"seed={draw.randrange(100)}",
    ]
    if draw.random() < 0.15:  # numbers that explode, so that the run goes back and on
        chosen += ["distill.learning_rates.images=1e30", "distill.retries=8"]
    return chosen


def fitting(overrides: list[str]) -> list[str]:
    """The overrides without options that their matcher does not have."""
    given = dict(override.split("=", 1) for override in overrides)
    options = options_of(given.get("matching.kind", "trajectory")).model_fields
    return [
        f"{name}={value}"
        for name, value in given.items()
        if not name.startswith("matching.") or name.removeprefix("matching.") in options
    ]


def draw_case(draw: random.Random, folder: Path, data: Path) -> Case:
    """A configuration that can be run, and what its run leaves."""
    while True:
        config = load_config("tiny", fitting([*SMALL, *settings(draw, data)]))
        experts_only = draw.random() < 0.1
        try:
            return undisturbed(config, folder, experts_only)
        except LorsError:  # not what can be done, or nothing finite comes of it
            shutil.rmtree(folder, ignore_errors=True)


def plain_case(folder: Path, data: Path) -> Case:
    """LoRS on embeddings, the cheapest run that does everything."""
    chosen = ("distill.iterations=2", "distill.checkpoint_every=1", "distill.evaluate_every=0")
    config = load_config("tiny", [*SMALL, *EMBEDDINGS, f"data.root={data}", *chosen])
    return undisturbed(config, folder)


def undisturbed(config: Config, folder: Path, experts_only: bool = False) -> Case:
    """A run twice, the second time with the caches and experts of the first."""
    cold, warm = Disk(folder), Disk(folder)
    with cold.open():
        _work(config, folder, experts_only)
    left = _left(folder)
    shutil.rmtree(folder / "out", ignore_errors=True)
    with warm.open():
        _work(config, folder, experts_only)
    assert _left(folder) == left
    return Case(config, experts_only, folder, left, cold.operations, warm.operations)


def try_chain(case: Case, draw: random.Random, folder: Path, tally: Tally) -> None:
    """Disturb a run again and again, then let it end; it must leave what the undisturbed one left.

    Args:
        case: the run.
        draw: draws the faults.
        folder: where to; it is not there yet.
        tally: counts.
    """
    folder.mkdir()
    operations = len(case.cold)
    if draw.random() < 0.7 and not case.experts_only and (case.folder / "home").exists():
        shutil.copytree(case.folder / "home", folder / "home")
        operations = len(case.warm)
    faults: list[Fault] = []
    for _ in range(draw.randint(1, MOST_FAULTS)):
        fault = _draw_fault(operations // draw.choice((1, 2, 4)) + 1, draw)
        disk = Disk(folder, fault)
        end = disturb(case, folder, disk, faults)
        if disk.struck is None:
            break
        faults.append(fault)
        tally.faults[fault.how, disk.struck, end] += 1
    finish(case, folder, faults)
    tally.chains[str(case)] += 1


def _draw_fault(operations: int, draw: random.Random) -> Fault:
    how = draw.choice(HOW)
    when = draw.choice(WHEN if how in ("kill", "power") else WHEN[:2])
    return Fault(draw.randrange(operations), how, when, draw.choice(ERRORS))


def disturb(case: Case, folder: Path, disk: Disk, before: Sequence[Fault] = ()) -> str:
    """How a run ends that something happens to."""
    fault = disk.fault
    assert fault is not None
    try:
        with disk.open():
            _work(case.config, folder, case.experts_only)
        if disk.dead:
            raise AssertionError(f"the run outlived {fault} after {before}")
        return "went on to the end"
    except Killed:
        return "killed"
    except (LorsError, OSError) as error:
        if disk.struck is None or disk.dead:
            raise AssertionError(f"{error!r} without a fault, after {before}") from error
        return "a sentence"


def finish(case: Case, folder: Path, before: Sequence[Fault]) -> None:
    """Let a run end; it must leave what the undisturbed one left."""
    try:
        with Disk(folder).open():
            _work(case.config, folder, case.experts_only)
    except (LorsError, OSError) as error:
        raise AssertionError(f"it does not go on: {error!r}, after {before}") from error
    left = _left(folder)
    for name in sorted(case.left.keys() | left.keys()):
        if left.get(name) != case.left.get(name):
            raise AssertionError(
                f"{name} is {left.get(name)!r}, not {case.left.get(name)!r}, after {before}"
            )


def _work(config: Config, folder: Path, experts_only: bool) -> None:
    known = mock.patch.object(artifacts, "version", _version)  # a third of the time of such a run
    with _home(folder / "home"), known:
        if experts_only:
            experts_of(setting_of(config))
        else:
            run(config, folder / "out", references=False)


_version = cache(version)


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    before = os.environ.get("LORS_HOME")
    os.environ["LORS_HOME"] = str(folder)
    try:
        yield
    finally:
        del os.environ["LORS_HOME"]
        if before is not None:
            os.environ["LORS_HOME"] = before


def _left(folder: Path) -> dict[str, object]:
    """What counts of all that a run left, by file."""
    return {
        str(path.relative_to(folder)): _content(path)
        for path in sorted(folder.rglob("*"))
        if _counts(path)
    }


def _counts(path: Path) -> bool:
    leftover = path.name.endswith(".tmp") or "unfinished-" in str(path)
    if path.is_dir() or leftover:
        return leftover and LEFTOVERS_ARE_REMOVED
    only_saves_time = path.parent.name == "digests" or path.name.endswith((".lock", ".holder"))
    return not only_saves_time and path.name != "checkpoint-previous.safetensors"


def _content(path: Path) -> object:
    """The content of a file, without what time it took."""
    if path.is_dir():
        return "a folder"
    if path.name == "results.json":
        return json.loads(path.read_text("utf-8"))["rows"]
    if path.name == "metrics.jsonl":
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return [{k: v for k, v in record.items() if k != "seconds"} for record in records]
    return hashlib.sha256(path.read_bytes()).hexdigest()
