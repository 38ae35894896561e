from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lors import load_config
from lors.config import Config
from lors.files.artifacts import load
from lors.runs.folders import SET, check_folder
from lors.runs.opened import Run
from lors.sets.distilled import KIND
from lors.setting import Setting, setting_of
from lors.setting.resolve import resolve
from lors.trackers import Tracker
from lors.trackers.tracker import Cell
from lors.trackers.watch import Watch
from tests.conftest import random_pairs


class Listener(Tracker):
    """Remembers what it was told."""

    def __init__(
        self, out: Path = Path(), config: Config | None = None, iteration: int = 0
    ) -> None:
        self.heard: list[tuple[int, str]] = []

    def end(self, failed: bool) -> None:
        pass

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.heard += [(step, name) for name in values]

    def picture(self, step: int, name: str, pixels: np.ndarray) -> None:
        assert pixels.dtype == np.uint8
        self.heard.append((step, name))

    def table(
        self, step: int, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]
    ) -> None:
        assert all(len(row) == len(columns) for row in rows)
        self.heard.append((step, name))


def test_a_watched_run_makes_the_same_set(tracked: Path, tiny_run: Path) -> None:
    (header, tensors), (plain_header, plain) = (load(r / SET, KIND) for r in (tracked, tiny_run))
    assert header == plain_header
    assert tensors.keys() == plain.keys()
    assert all(torch.equal(tensors[name], plain[name]) for name in plain)


def test_trackers_are_no_reason_to_refuse_a_folder(tracked: Path, tiny: Config) -> None:
    check_folder(tracked, resolve(tiny))
    assert load_config(tracked / "config.yaml").trackers == ("tensorboard", "wandb")
    assert Run(tracked).config.trackers == ()


def test_pictures_come_with_recall(setting: Setting) -> None:
    listener, pairs = Listener(), random_pairs(setting)
    watch = Watch(setting, [listener])
    watch.record({"iteration": 1, "loss": 0.9}, pairs)
    assert listener.heard == [(1, "loss")]
    watch.record({"iteration": 2, "loss": 0.8, "recall": 10.0}, pairs)
    assert listener.heard[3:] == [(2, "similarity"), (2, "synthetic images")]
    assert pairs.images.requires_grad


@pytest.mark.parametrize(("overrides", "step"), [([], 7), (["selection.kind=random"], 1)])
def test_the_end_is_the_step_after_the_last(
    overrides: list[str], step: int, tiny_run: Path
) -> None:
    run, listener = Run(tiny_run, overrides), Listener()
    Watch(run.setting, [listener]).end(run.distilled, run.results.rows)
    names = ["similarity", "synthetic images", "pairs", "results"]
    assert listener.heard == [(step, name) for name in names]


def test_features_have_no_images_to_show(tiny_run: Path) -> None:
    features = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
    setting = setting_of(load_config("tiny", features))
    listener = Listener()
    pairs = random_pairs(setting)
    Watch(setting, [listener]).record({"iteration": 3, "recall": 1.0}, pairs)
    assert listener.heard == [(3, "recall"), (3, "similarity")]


def test_without_trackers_nothing_is_computed(setting: Setting) -> None:
    unused: Any = None
    Watch(setting, []).end(unused, {})
