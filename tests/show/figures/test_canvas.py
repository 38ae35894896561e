from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from PIL import Image

from lors.show.figures.canvas import Drawing, new_figure, save, style, wrapped
from lors.system.errors import InputError


def drawing(title: str) -> Drawing:
    with style():
        figure = new_figure(3, 2)
        figure.subplots().set_title(title)
    return Drawing(figure, [{"value": 1 / 3}])


def write(title: str, folder: Path) -> list[bytes]:
    with style():
        return [path.read_bytes() for path in save(drawing(title), "one", folder)]


def test_the_same_drawing_gives_the_same_bytes(tmp_path: Path) -> None:
    assert write("a", tmp_path / "1") == write("a", tmp_path / "2")
    assert (tmp_path / "1" / "one.csv").read_text() == "value\n0.333333\n"
    with Image.open(tmp_path / "1" / "one.png") as image:
        assert image.width > 300


@pytest.mark.parametrize("title", ["$\\frac{", "100 $ and 5 $ more", "<b> & -- %s {x}", "日本 \\"])
def test_odd_captions_are_text(title: str, tmp_path: Path) -> None:
    write(wrapped(title, 30), tmp_path)
    ElementTree.parse(tmp_path / "one.svg")


def test_wrapping_keeps_words_and_drops_what_cannot_be_printed() -> None:
    assert wrapped("a dog\x00runs\n fast", 5) == "a dog\nruns\nfast"
    assert wrapped("one two three four five", 7, lines=2) == "one two\nthree…"
    assert wrapped("", 5) == ""


def test_the_look_is_left_outside() -> None:
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    with style():
        assert matplotlib.rcParams["font.size"] != before
    assert matplotlib.rcParams["font.size"] == before


def test_a_missing_matplotlib_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'lors\[figures\]'"), style():
        pass
