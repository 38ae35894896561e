"""The examples do what docs/guide says, at a small size."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import lors
from lors.runs.folders import saved_results

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

Run = Callable[..., str]


@pytest.fixture
def example(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs an example as its command would, and gives what it printed."""
    monkeypatch.syspath_prepend(EXAMPLES)

    def run(name: str, *arguments: str) -> str:
        import_module(name).main(["--out", str(tmp_path / "out"), *arguments])
        return capsys.readouterr().out

    return run


def test_a_folder_of_photos_becomes_a_model_that_finds_them(example: Run, tmp_path: Path) -> None:
    small = ["encoder.image_size=24", "experts.count=1", "distill.iterations=14"]
    small += ["evaluate.epochs=40", "evaluate.checks=2", "evaluate.seeds=1"]
    small += ["distill.evaluate_every=0", "data.holdout=0.15"]
    printed = example("own_photos", "--scenes", "500", "--set", *small)
    found = re.search(r"held-out photos: ([\d.]+) \(chance: ([\d.]+)\)", printed)
    assert found is not None
    reached, chance = map(float, found.groups())
    assert reached > 1.5 * chance

    listed = re.findall(r"^ +(-?\d\.\d\d)  (\S+\.png)", printed, re.MULTILINE)
    retriever = lors.Retriever.load(tmp_path / "out" / "retriever.safetensors")
    photos = retriever.embed_photos([path for _, path in listed])
    again = retriever.search("a large red circle on a grey background", photos)
    assert [place for place, _ in again] == list(range(5))
    assert [f"{cosine:.2f}" for _, cosine in again] == [cosine for cosine, _ in listed]


def test_an_open_clip_model_continues_on_a_distilled_set(example: Run, tmp_path: Path) -> None:
    pytest.importorskip("open_clip")
    small = ["experts.count=1", "experts.epochs=4", "distill.iterations=6", "evaluate.seeds=1"]
    small += ["evaluate.epochs=20", "distill.evaluate_every=0"]
    printed = example("continue_open_clip", "--scenes", "400", "--set", *small)
    before, after = (
        float(re.findall(rf"([\d.]+)  {when}", printed)[0]) for when in ("before", "after the set")
    )
    assert after > 1.5 * before
    first, last = re.findall(r"loss went from ([\d.]+) to (-?[\d.]+)\.\n", printed)[0]
    assert float(last) < float(first) / 2
    assert (tmp_path / "out" / "continued.safetensors").is_file()


def test_the_page_of_the_demo_is_small_and_needs_nothing_else(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    run = shutil.copytree(tiny_run, tmp_path / "run")
    rows = saved_results(run).rows
    page = import_module("demo_page").write_demo_page(
        run, run, tmp_path / "demo.html", {"a frozen trunk": rows}, 2.1
    )
    text = page.read_text("utf-8")
    assert len(text) < 3_000_000
    assert "synthetic pairs instead of 200 real ones" in text
    assert text.count("data:image/webp") > 40  # the test scenes, and the pairs
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)
