from __future__ import annotations

import os
import re
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lors.cli import app, main
from lors.runs.folders import RESULTS, SET
from lors.show.report import REPORT, end_with_report, write_report
from lors.system.errors import InputError, LorsError
from lors.system.progress import Silent
from tests.show.report.reading import content_of


@pytest.fixture
def copied(tiny_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_run, tmp_path / "tiny")


def test_the_command_writes_one_file_where_it_is_told(copied: Path, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "tiny.html"
    result = CliRunner().invoke(app, ["report", str(copied), "--out", str(page)])
    assert result.exit_code == 0, result.output
    assert content_of(page)["title"] == "tiny"
    assert not (copied / REPORT).exists()


def test_a_run_and_a_set_have_places_of_their_own(copied: Path) -> None:
    assert write_report(copied) == copied / REPORT
    assert write_report(copied / SET) == (copied / SET).with_suffix(".html")


def test_a_run_ends_with_a_report_and_does_not_repeat_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["distill", "tiny", "distill.iterations=1", "--no-references", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert REPORT in result.output
    (out / REPORT).write_text("mine")
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert (out / REPORT).read_text() == "mine"


def test_new_results_make_a_new_report(copied: Path) -> None:
    (copied / REPORT).write_text("old")
    os.utime(copied / REPORT, (0, 0))
    assert end_with_report(copied, Silent()) == copied / REPORT
    assert content_of(copied / REPORT)["title"] == "tiny"


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Refuse to write larger files, as a disk does that fills up."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run_command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command as a shell would and give its exit code."""
    monkeypatch.setattr(sys, "argv", ["lors", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_a_run_without_its_report_shows_its_results_and_ends_with_an_error(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["distill", "tiny", "--out", str(copied)]
    with largest_file(5000):
        assert run_command(command, monkeypatch) == 1
    shown = capsys.readouterr()
    assert "IR@10" in shown.out
    assert f"The set is {copied / SET}" in shown.out
    assert "The report is" not in shown.out
    assert "File too large" in shown.err
    assert "Traceback" not in shown.err
    assert not (copied / REPORT).exists()
    (advice,) = re.findall("'lors (report .*)' writes it", shown.err)
    assert run_command(advice.split(), monkeypatch) == 0
    assert content_of(copied / REPORT)["title"] == "tiny"
    assert run_command(command, monkeypatch) == 0
    assert f"The report is {copied / REPORT}" in capsys.readouterr().out


def test_any_failure_of_a_report_is_an_error(copied: Path) -> None:
    (copied / RESULTS).write_text("{")
    with pytest.raises(LorsError, match=r"the report is not written .*damaged"):
        end_with_report(copied, Silent())


def test_what_cannot_be_written_is_said(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LorsError, match="cannot write the report"):
        write_report(tiny_run, out=tmp_path / "file" / "page.html")


@pytest.mark.parametrize(
    "command", [["report"], ["export"], ["figure", "similarity"], ["analyze", "spectrum"]]
)
def test_a_full_disk_is_never_success(
    command: list[str],
    tiny_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / ("out.csv" if command[0] == "analyze" else "out")
    with largest_file(100):
        assert run_command([*command, str(tiny_run), "--out", str(out)], monkeypatch) == 1
    assert "File too large" in capsys.readouterr().err


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert isinstance(result.exception, InputError)
