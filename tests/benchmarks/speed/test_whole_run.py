from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.speed import whole_run
from benchmarks.speed.published import RESULT, distil, experts
from benchmarks.speed.whole_run import KARPATHY, write_scenes
from lors.config import load_config
from lors.setting import setting_of

FEW = (
    "data.pairs={train: 24, val: 6, test: 6}",
    "experts={count: 1, epochs: 1}",
    "matching={gradient: tesla, steps: 1, batch_size: 5, max_start_epoch: 1, expert_epochs: 1}",
    "distill.iterations=1",
    "distill.evaluate_every=1",
    "evaluate={seeds: 2, epochs: 2, checks: 2}",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_scenes(tmp_path, {"train": 24, "val": 6, "test": 6})
    config = load_config("tiny", [*KARPATHY, f"data.root={tmp_path}", *FEW])
    (tmp_path / "config.yaml").write_text(config.yaml(), "utf-8")
    return tmp_path


def test_the_published_steps_end_with_a_recall_of_each_network(folder: Path) -> None:
    experts(folder)
    distil(folder)
    found = json.loads((folder / RESULT).read_text("utf-8"))
    assert found["pairs"] == 7
    assert len(found["mean"]) == 2
    assert all(0 < mean <= 100 for mean in found["mean"])


def test_both_read_the_same_pairs(folder: Path) -> None:
    setting = setting_of(load_config(folder / "config.yaml"))
    for name, split in setting.pairs.splits.items():
        rows = json.loads((folder / f"{name}.json").read_text("utf-8"))
        assert list(split.captions) == [caption for row in rows for caption in row["caption"]]


def test_a_line_has_the_times_and_the_recalls_of_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = whole_run.Case("few", "tiny", FEW, {"train": 24, "val": 6, "test": 6}, write_scenes)
    asked: list[str] = []

    def run(root: Path, number: int) -> None:
        asked.append("ours")
        from lors.runs.pipeline import run

        run(load_config(root / "config.yaml"), root / f"run-{number}", references=False)

    def published(root: Path, number: int) -> None:
        asked.append("published")
        (root / RESULT).write_text(json.dumps({"mean": [10.0, 20.0]}), "utf-8")

    monkeypatch.setattr(whole_run, "_ours", run)
    monkeypatch.setattr(whole_run, "_published", published)
    monkeypatch.setattr(whole_run, "_timed", lambda step: (step(), (1.0, 2.0))[1])
    (line,) = whole_run.ratios(2, [case])
    assert asked == ["published", "ours", "ours", "published"]
    assert line.more["published recall"] == 15
    assert line.more["recall"] > 0
