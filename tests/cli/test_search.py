from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from lors.cli import app
from lors.system.errors import InputError
from tests.processes import started_command

runner = CliRunner()


@pytest.fixture(scope="module")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("search") / "run"))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for name, colour in {"[red].png": "red", "blue.png": "blue", "white.png": "white"}.items():
        Image.new("RGB", (40, 30), colour).save(folder / name)
    (folder / "broken.png").write_bytes(b"")
    return folder


def test_search_prints_scores_and_paths(run: Path, photos: Path) -> None:
    result = runner.invoke(app, ["search", str(run), str(photos), "a red star", "--count", "2"])
    assert result.exit_code == 0
    output = "".join(result.output.split()).replace("│", "")
    assert output.count(".png") == 2
    assert "Searched3photos;1couldnotberead." in output


def test_search_prints_json(run: Path, photos: Path) -> None:
    words = ["search", str(run), str(photos), "a red star", "--full", "--json"]
    found = json.loads(runner.invoke(app, words).stdout)
    assert (found["query"], found["photos"], found["unreadable"]) == ("a red star", 3, 1)
    assert list(found["results"]) == ["distilled set", "full data"]
    for matches in found["results"].values():
        assert {Path(match["photo"]) for match in matches} == {
            photos / name for name in ("[red].png", "blue.png", "white.png")
        }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no/such/folder", "a star"], "there is no folder of photos 'no/such/folder'"),
        (["a", "red", "star"], "the words in quotes"),
        ([" "], "one or more words"),
        (["a star", "data.root=/elsewhere", "data.nothing=1"], "data.nothing"),
    ],
)
def test_mistakes_are_sentences(run: Path, words: list[str], sentence: str) -> None:
    result = runner.invoke(app, ["search", str(run), *words])
    assert isinstance(result.exception, InputError)
    assert sentence in str(result.exception)


def test_a_run_that_is_not_there_is_named() -> None:
    for command in (["search", "no/run", "a star"], ["serve", "no/run"]):
        result = runner.invoke(app, command)
        assert "there is no run, set or retriever 'no/run'" in str(result.exception)


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_serve_serves_until_it_is_interrupted(run: Path, photos: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"
    words = ["serve", str(run), str(photos), "--no-browser", "--no-full", "--port", "0"]
    with started_command(said, *words) as process:
        while not (address := re.search(r"at (http://127\.0\.0\.1:\S+)\n", shown(said))):
            assert process.is_alive(), shown(said)
            time.sleep(0.01)
        assert "Searching 3 photos at http://127.0.0.1:" in shown(said)
        with urllib.request.urlopen(address[1]) as page:
            assert b"Search 3 photos" in page.read()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
        process.join()
    assert process.exitcode == 0


def shown(said: Path) -> str:
    return said.read_text() if said.exists() else ""
