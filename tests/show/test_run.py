from __future__ import annotations

from pathlib import Path

import lors
from lors.system.progress import Silent

QUICK = ["distill.iterations=1", "evaluate.seeds=1", "evaluate.epochs=1", "experts.epochs=2"]


class Said(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def test_a_run_from_python_ends_with_a_report_and_a_finished_one_says_so(tmp_path: Path) -> None:
    config, said = lors.load_config("tiny", [*QUICK, "matching.max_start_epoch=1"]), Said()
    results = lors.run(config, tmp_path, said, references=False)
    assert "<html" in (tmp_path / "report.html").read_text("utf-8")[:200]
    assert not [line for line in said.lines if "finished" in line or "erivative" in line]
    assert results.distilled.chance is not None
    assert f"where chance is {results.distilled.chance.mean:.1f}." in str(results)
    assert "| chance |" in (tmp_path / "README.md").read_text("utf-8")
    before = (tmp_path / "report.html").stat().st_mtime_ns
    assert lors.run(config, tmp_path, said, references=False) == results
    assert said.lines[-1].startswith("Nothing to do: the run in")
    assert (tmp_path / "report.html").stat().st_mtime_ns == before


def test_arrays_in_memory_have_a_report_too(tmp_path: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    pairs = lors.Pairs.arrays(rng.normal(size=(60, 6)), rng.normal(size=(60, 5)))
    quick = [*QUICK, "experts.count=1", "distill.budget=8", "similarity.rank=2"]
    config = lors.load_config("features", quick)
    lors.run(config, tmp_path, False, references=False, pairs=pairs)
    assert (tmp_path / "report.html").is_file()
