from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from lors.config import Config
from lors.runs.folders import saved_results
from lors.trackers.tensorboard import TensorBoard, _text

READERS = "tensorboard.backend.event_processing"


def read(run: Path) -> Any:
    """What TensorBoard itself reads."""
    accumulator = pytest.importorskip(f"{READERS}.event_accumulator")
    return accumulator.EventAccumulator(str(run / "tensorboard")).Reload()


@pytest.fixture(scope="module")
def events(tracked: Path) -> Any:
    return read(tracked)


def test_it_shows_every_record_once_though_the_run_was_resumed(tracked: Path, events: Any) -> None:
    records = [json.loads(line) for line in (tracked / "metrics.jsonl").open()]
    for name in ("loss", "rate_image", "rate_text", "recall", "seconds"):
        logged = [(r["iteration"], r[name]) for r in records if name in r]
        shown = [(event.step, event.value) for event in events.Scalars(name)]
        assert [step for step, _ in shown] == [step for step, _ in logged]
        assert [value for _, value in shown] == pytest.approx([value for _, value in logged])


def test_it_shows_pictures_where_recall_was_measured_and_at_the_end(events: Any) -> None:
    for name in ("synthetic images", "similarity"):
        pictures = events.Images(name)
        assert [picture.step for picture in pictures] == [3, 6, 7]
        assert all(p.encoded_image_string.startswith(b"\x89PNG") for p in pictures)


def test_it_shows_the_configuration_and_the_tables(tracked: Path, events: Any) -> None:
    def text(name: str) -> str:
        return events.Tensors(f"{name}/text_summary")[-1].tensor_proto.string_val[0].decode()

    assert f"| {saved_results(tracked).distilled.mean:.4g} |" in text("results")
    assert text("pairs").count("\n") == 1 + 7
    assert "budget: 8" in text("config")


def test_a_prolonged_run_replaces_its_end(tmp_path: Path, tiny: Config) -> None:
    pytest.importorskip("tensorboard")
    for first, last in ((0, 2), (2, 4)):
        with TensorBoard(tmp_path, tiny, first) as tracker:
            for step in range(first + 1, last + 1):
                tracker.metrics(step, {"loss": 0.5})
            tracker.table(last + 1, "results", ["set"], [["mine"]])
    reader = importlib.import_module(f"{READERS}.plugin_event_accumulator")  # the pages' own
    found = reader.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in found.Tensors("loss")] == [1, 2, 3, 4]
    assert [event.step for event in found.Tensors("results/text_summary")] == [5]


def test_a_caption_stays_in_its_cell() -> None:
    assert _text("a | b\nc") == "a \\| b c"
    assert _text(0.123456) == "0.1235"
