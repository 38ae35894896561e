from __future__ import annotations

from importlib.resources import files
from itertools import chain

import pytest

from lors.config import catalogue, load_config, presets
from lors.config.catalogue import FILES, find_preset, groups, sized
from lors.config.parsing import package_data
from lors.system.errors import InputError


def test_every_file_of_the_folder_is_a_group() -> None:
    folder = files("lors.config") / "presets"
    assert {path.name for path in folder.iterdir()} == {f"{name}.yaml" for name in FILES}
    assert len(groups()) == len(FILES)  # no title twice


def test_no_name_is_given_twice() -> None:
    names = list(chain.from_iterable(groups().values()))
    assert len(names) == len(set(names)) == len(presets())


def test_a_name_of_many_sizes_stands_for_one_preset_each() -> None:
    for pairs in (100, 200, 500):
        preset = find_preset(f"flickr30k-tesla-wbce-{pairs}")
        assert preset["base"] == [f"flickr30k-lors-{pairs}", "tesla-wbce"]
        assert preset["description"].startswith(f"Flickr30k, {pairs} pairs, TESLA")
    assert find_preset("flickr30k-lors-200")["distill"]["budget"] == 200  # a number, not a text
    assert not any("$" in name for name in presets())


def test_a_size_changes_what_all_share() -> None:
    entry = {"a": {"b": 1, "c": "$pairs"}, "pairs": {10: {"a": {"b": 2}}, 20: {}}}
    assert dict(sized("x-$pairs", entry)) == {
        "x-10": {"a": {"b": 2, "c": 10}},
        "x-20": {"a": {"b": 1, "c": 20}},
    }
    listed = {"text": "$pairs pairs", "pairs": [10, 20]}
    assert [each["text"] for _, each in sized("", listed)] == ["10 pairs", "20 pairs"]
    assert dict(sized("y", {"a": 1})) == {"y": {"a": 1}}


def test_each_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(room: str, path: str) -> object:
        reads.append(path)
        return package_data(room, path)

    monkeypatch.setattr(catalogue, "package_data", counted)
    groups.cache_clear()
    catalogue._by_name.cache_clear()
    for name in presets():
        load_config(name)
    assert sorted(reads) == sorted(f"presets/{name}.yaml" for name in FILES)


def test_reading_a_preset_changes_no_other() -> None:
    before = presets()
    load_config("features", ["matching.steps=3"], method="amd")
    assert presets() == before


def test_a_misspelt_preset_has_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'demo'"):
        find_preset("dmo")
