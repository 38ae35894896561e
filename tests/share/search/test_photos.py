from __future__ import annotations

import os
from pathlib import Path

import pytest

from lors.config import load_config
from lors.data.bad_row import BadRowError
from lors.share.search.photos import folder_photos, run_photos
from lors.system.errors import InputError
from lors.system.progress import Silent
from tests.share.search.conftest import LONG, SCRIPT, picture


class Told(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def test_photos_are_what_lies_in_the_folder(hostile: Path) -> None:
    told = Told()
    names = {item.name for item in folder_photos(hostile, told)}
    plain = {SCRIPT, LONG, "two\nlines.PNG", "deep/er/re..d.png", "plain.webp", "within.png"}
    assert names == {*plain, "broken.jpg"}
    assert len(told.said) == 1
    assert told.said[0].startswith("Left out 2 files")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="not available on Windows")
def test_what_would_block_a_reader_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(InputError, match="there are no photos below"):
        folder_photos(tmp_path, Silent())


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    folder, secret = tmp_path / "photos", tmp_path / "secret.png"
    picture(folder / "a.png", "red")
    picture(secret, "blue")
    (photo,) = folder_photos(folder, Silent())
    (folder / "a.png").unlink()
    (folder / "a.png").symlink_to(secret)
    with pytest.raises(BadRowError, match="no longer a file below"):
        photo.load()


def test_photos_of_a_run_have_captions_and_a_split() -> None:
    photos = run_photos(load_config("tiny").data, "val", Silent())
    assert len(photos) == 40
    assert photos[0].name == "scene 1000000"
    assert photos[0].captions
    with pytest.raises(InputError, match="unknown split 'all'; known: train, val, test"):
        run_photos(load_config("tiny").data, "all", Silent())
