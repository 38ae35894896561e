"""A model to search with, and a folder that someone hostile has filled."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from PIL import Image

from lors import Retriever
from lors.runs.opened import Run
from lors.share.search.finder import Finder
from lors.share.search.server import Server, site_of

SCRIPT = "<img src=x onerror=alert(1)>.png"
LONG = "x" * 200 + ".png"


@pytest.fixture(scope="session")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run in a folder of its own, as models are kept beside it."""
    return Run(shutil.copytree(tiny_run, tmp_path_factory.mktemp("search") / "run"))


@pytest.fixture(scope="session")
def retriever(run: Run) -> Retriever:
    return Retriever.train(run.distilled)


def picture(path: Path, colour: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), colour).save(path, "PNG")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos with names that are markup, long, or several lines; links that lead out."""
    folder, outside = tmp_path_factory.mktemp("photos"), tmp_path_factory.mktemp("outside")
    names = (SCRIPT, LONG, "two\nlines.PNG", "..png", "deep/er/re..d.png", "plain.webp")
    for name, colour in zip(names, ("red", "green", "blue", "white", "red", "black"), strict=True):
        picture(folder / name, colour)
    (folder / "broken.jpg").write_bytes(b"no image")
    (folder / "notes.txt").write_text("no photo")
    picture(folder / ".hidden" / "thumbnail.png", "red")
    picture(outside / "secret.png", "red")
    (folder / "link.png").symlink_to(outside / "secret.png")
    (folder / "folder").symlink_to(outside, target_is_directory=True)
    (folder / "within.png").symlink_to(folder / "plain.webp")
    (folder / "circle.png").symlink_to(folder / "circle.png")
    return folder


@pytest.fixture(scope="session")
def server(run: Run, hostile: Path) -> Iterator[Server]:
    """The page of the hostile folder, with both models."""
    finder = Finder.of_run(run, hostile, full=True)
    with Server(site_of(finder, run), port=0) as server:
        thread = Thread(target=server.run)
        thread.start()
        yield server
        server.stop()
        thread.join()
