"""One thing of each kind from outside the package, used wherever lors works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lors.cli import main
from lors.sets.distilled import DistilledSet
from lors.system.errors import InputError
from tests.processes import started_command

TOYS = Path(__file__).parent / "outside" / "toys.py"
QUICK = [
    "distill.iterations=2",
    "distill.evaluate_every=0",
    "evaluate.seeds=1",
    "evaluate.epochs=2",
]
QUICK += ["evaluate.tried_rates=[0.1]", "experts.count=1", "experts.epochs=2"]
SMALL = [*QUICK, "data.pairs={train: 40, val: 10, test: 10}", "encoder.image_head=linear"]
SMALL += ["encoder.scope=heads", "encoder.space=features"]
OWN_DATA = ["data.source=toy-source", "data.pairs={}"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a user works: a module of theirs, and nothing else."""
    made = tmp_path_factory.mktemp("user")
    (made / "toys.py").write_text(TOYS.read_text("utf-8"))
    return made


def lors(
    folder: Path, *words: str, code: int = 0, launch: tuple[str, ...] = (), path: str = ""
) -> str:
    """What a command prints, without the current folder among those that Python imports from."""
    script = "import sys; sys.path[:] = [p for p in sys.path if p]; import lors.cli as c; c.main()"
    command = [sys.executable, *(launch or ("-c", script)), *words]
    paths = [p for p in (path, os.environ.get("PYTHONPATH", "")) if p]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert found.returncode == code, found.stdout + found.stderr
    return found.stdout + found.stderr


def quickly(folder: Path, *words: str) -> str:
    """What a command prints, likewise, in a process that has PyTorch imported."""
    said = folder / "said"
    with started_command(said, *words, folder=folder) as process:
        process.join()
    assert process.exitcode == 0, said.read_text()
    return said.read_text()


@pytest.fixture(scope="module")
def made(folder: Path) -> Path:
    """A run with a loss, similarity, matcher, start, head, fitted text trunk and source."""
    own = ["loss=toy-loss", "similarity.kind=toy-similarity", "distill.init=toy-start"]
    own += ["encoder.image_head=toy-head", "encoder.text=toy-words", "encoder.embed_dim=8"]
    own += ["matching.kind=mine", "matching.strength=2", *OWN_DATA]
    quickly(folder, "distill", "tiny", *own, *QUICK, "--no-references", "--plugin", "toys")
    return folder / "runs" / "tiny"


def test_a_run_uses_things_of_every_kind(made: Path) -> None:
    results = json.loads((made / "results.json").read_text())
    assert results["rows"]["distilled set"]["recall"]
    assert "strength: 2.0" in (made / "config.yaml").read_text()
    assert (made / "report.html").is_file()


def test_a_selection_and_a_pretrained_text_trunk_from_outside(folder: Path) -> None:
    text = "encoder.text=toy-letters:latin"
    words = ["select", "toy-selection", "tiny", text, *SMALL, "--no-references"]
    quickly(folder, "--plugin", "toys", *words)
    chosen = (folder / "runs" / "tiny-toy-selection" / "selection.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in chosen[1:4]] == ["0", "2", "4"]


def test_a_comparison_has_them_in_its_worker_processes(folder: Path) -> None:
    words = ["--methods", "mine,lors-wbce", "--jobs", "2", "--seeds", "1", "--plugin", "toys"]
    shown = lors(folder, "compare", "tiny", *SMALL, "matching.strength=3", *words)
    assert "Mine" in shown
    results = json.loads((folder / "runs" / "compare-tiny" / "results.json").read_text())
    assert not [record for record in results["records"] if record["failed"]]


def test_ranks_have_them(folder: Path) -> None:
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "lors")
    words = ["--plugin", "toys", "distill", "tiny", "matching.kind=mine", *SMALL, "--no-references"]
    shown = lors(folder, *words, "--out", "two", launch=launch)
    assert "The set is two" in shown
    assert "trajectories: 2" in (folder / "two" / "config.yaml").read_text()


def test_a_report_needs_the_plugin_and_says_so(
    made: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = quickly(folder, "report", str(made), "--plugin=toys", "--out", "page.html")
    assert "The report is page.html" in shown
    monkeypatch.setattr(sys, "argv", ["lors", "report", str(made)])
    with pytest.raises(SystemExit, match="2"):
        main()
    said = capsys.readouterr().err
    assert "unknown loss 'toy-loss'; known: bce, bce-published, ence" in said
    assert said.endswith("(from a plugin? give --plugin MODULE)\n")
    assert said.count("\n") == 1


def test_a_set_imports_nothing(made: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the module that it needs lies there to be imported."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    for _ in range(2):
        with pytest.raises(InputError, match=r"unknown .* 'toy.*--plugin MODULE"):
            DistilledSet.load(made / "distilled.safetensors")
    assert {name for name in set(sys.modules) - before if not name.startswith("lors.")} == set()
    assert "toys" not in sys.modules


def package(folder: Path, name: str, points: str, code: str) -> None:
    """An installed package, as far as Python can tell."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    (folder / f"{name}.py").write_text(code)


MATCHER = """
class Installed:
    def __init__(self, setting, options): self.state = {}
    def backward(self, synthetic, generator): return 0.0
def loss(logits, similarity): return logits.sum()
"""


def test_installed_packages_offer_things_by_entry_points(tmp_path: Path) -> None:
    points = "[lors.matchers]\ninstalled = good:Installed\n[lors.losses]\ntotal = good:loss\n"
    package(tmp_path, "good", points, MATCHER)
    package(tmp_path, "whole", "[lors.matchers]\nany = whole\n", REGISTERS)
    package(tmp_path, "broken", "[lors.heads]\nbroken = broken:head\n", "1 / 0")
    package(tmp_path, "wrong", "[lors.matchers]\nwrong = wrong:loss\n", "def loss(a, b): ...")
    shown = lors(tmp_path, "compare", "--methods", "list", path=str(tmp_path))
    assert "installed, in tables installed" in shown
    assert "by-itself, in tables By itself" in shown
    assert "warning: the package 'broken' offers lors heads, but broken:head cannot be" in shown
    assert "ZeroDivisionError" in shown
    assert "the package 'wrong' offers lors matchers" in shown
    assert "must be a class with the method 'backward'" in shown
    shown = lors(tmp_path, "settings", "loss", path=str(tmp_path))
    assert "| wbce-published | total" in shown


REGISTERS = """
from lors.config.registering import matcher
@matcher("by-itself", label="By itself")
class ByItself:
    def __init__(self, setting, options): self.state = {}
    def backward(self, synthetic, generator): return 0.0
"""
