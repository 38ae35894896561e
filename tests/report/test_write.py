from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lors.cli import app
from lors.errors import InputError
from lors.folders import RESULTS, SET
from lors.progress import Silent
from lors.report import REPORT, end_with_report, write_report
from tests.report.reading import content_of


class Listener(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


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


def test_a_report_that_fails_does_not_fail_the_run(copied: Path) -> None:
    (copied / RESULTS).write_text("{")
    listener = Listener()
    assert end_with_report(copied, listener) is None
    assert "No report was written" in listener.said[0]


def test_what_cannot_be_written_is_said(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write the report"):
        write_report(tiny_run, out=tmp_path / "file" / "page.html")


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert isinstance(result.exception, InputError)
