from __future__ import annotations

import re
from pathlib import Path

import pytest

from lors.config import Method, find_method, load_config, methods
from lors.system.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("method", methods().values(), ids=lambda method: method.name)
def test_a_method_says_what_it_does_and_where_from(method: Method) -> None:
    assert method.about.endswith(".")
    assert len(method.about) <= 110
    assert method.label
    if method.paper.startswith("docs/"):
        assert (ROOT / method.paper).exists()
    else:
        assert re.fullmatch(r"(https://\S+)?", method.paper)


def test_labels_are_distinct() -> None:
    labels = [method.label for method in methods().values()]
    assert len(labels) == len(set(labels))


def test_a_base_gives_its_settings_and_its_paper() -> None:
    lors, r5 = methods()["lors-wbce"], methods()["lors-r5"]
    assert r5.settings == {**lors.settings, "similarity.rank": 5}
    assert r5.paper == lors.paper
    assert r5.about != lors.about


@pytest.mark.parametrize("name", ["lors-wbce", "mtt-vl", "hindsight", "covmatch", "random"])
def test_a_method_is_the_same_as_a_base_and_as_an_argument(name: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"base: [flickr8k-heads-100, {name}]")
    assert load_config(mine) == load_config("flickr8k-heads-100", method=name)


def test_a_misspelt_method_has_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'hindsight'"):
        find_method("hindsite")
