from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.cli.test_commands import call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty images, a table, and two bad rows in it."""
    for i in range(20):
        Image.new("RGB", (9, 7), (i,) * 3).save(tmp_path / f"{i}.png")
    rows = [f"{i}.png,a grey {i}" for i in range(20)]
    rows[4], rows[8] = "none.png,a cat", "8.png,"
    (tmp_path / "table.csv").write_text("\n".join(["image,caption", *rows]))
    return tmp_path


def test_a_check_lists_all_problems_and_ends_with_code_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "12.png").write_text("no image")
    settings = ["data.source=table", f"data.root={folder}", "data.pairs={}"]
    out = str(folder / "problems.csv")
    assert call("check", "tiny", *settings, "--out", out, monkeypatch=monkeypatch) == 2
    captured = capfd.readouterr()
    assert "image sizes" in captured.out
    first, *lines = captured.err.splitlines()
    assert first.startswith("error: 3 problems in 20 rows")
    assert [line.split(":")[0].strip() for line in lines[:2]] == [
        "table.csv row 10",
        "table.csv row 6",
    ]
    assert "table.csv row 14" in lines[2]
    assert len((folder / "problems.csv").read_text().splitlines()) == 4


def test_a_check_of_good_data_ends_with_code_0(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert call("check", "tiny", monkeypatch=monkeypatch) == 0
    printed = capfd.readouterr().out
    assert "No problems." in printed
    assert "captions per image" in printed


def test_a_run_goes_on_without_bad_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = ["data.source=table", f"data.root={folder}", "data.pairs={}", "distill.budget=4"]
    settings += ["similarity.rank=1", "encoder.text_dim=4"]
    monkeypatch.chdir(folder.parent)
    assert call("experts", "tiny", *settings, monkeypatch=monkeypatch) == 2
    assert "2 problems in 20 rows" in capfd.readouterr().err
    assert call("experts", "tiny", *settings, "data.skip_bad=true", monkeypatch=monkeypatch) == 0
    printed = capfd.readouterr().out
    assert "Left out, of 20 rows, those with problems" in printed


@pytest.mark.parametrize(
    "words",
    [
        "distill tiny distill.iteratons=5",
        "distill tinyy",
        "distill tiny loss=wbbce",
        "compare tiny --methods lorz",
        "compare tiny distill.iteratons=5",
        "select magic tiny",
        "experts tinyy",
        "evaluate absent.safetensors",
        "plan tinyy",
        "check tinyy",
        "encode tinyy --out absent",
    ],
)
def test_a_mistake_in_a_name_or_setting_is_found_without_pytorch(words: str) -> None:
    code = (
        "import sys\nfrom lors.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n"
        "    sys.exit(end.code if 'torch' not in sys.modules else 'torch was imported')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
