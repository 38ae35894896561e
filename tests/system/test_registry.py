from __future__ import annotations

import subprocess
import sys

import pytest

from lors.config import names
from lors.system.errors import InputError
from lors.system.registry import Registry

EVERY = [value for value in vars(names).values() if isinstance(value, Registry)]


def shapes() -> Registry[object]:
    places = {"path": "pathlib:PurePath", "absent": "no_such_module:thing"}
    return Registry("shape", places)


@pytest.mark.parametrize("registry", EVERY, ids=lambda registry: registry.what.replace(" ", "-"))
def test_everything_that_the_package_names_is_where_it_says(registry: Registry[object]) -> None:
    assert len(registry) == len(list(registry)) > 0
    for name in registry:
        assert registry[name] is registry.choose(name) is not None


def test_names_are_known_before_anything_is_imported() -> None:
    """Otherwise a misspelt name would take seconds to refuse."""
    code = (
        "import sys; from lors.config import load_config\n"
        "load_config('tiny', ['loss=ence', 'matching.kind=gradient', 'distill.init=k-means'])\n"
        "print('torch' in sys.modules, 'lors.matching' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_a_name_is_refused_with_the_nearest_one_and_without_importing_any() -> None:
    with pytest.raises(InputError, match=r"unknown shape 'paht'; did you mean 'path'\?"):
        shapes().choose("paht")
    with pytest.raises(InputError, match="known: absent, path"):
        shapes().check("zzz")
    assert shapes().check("absent") == "absent"  # which cannot be imported
    with pytest.raises(KeyError):
        shapes()["zzz"]


def test_ones_own_things_have_names_like_those_of_the_package() -> None:
    registry = shapes()

    @registry.register("mine")
    class Mine:
        pass

    assert registry["mine"] is registry.choose("mine") is Mine
    assert list(registry) == ["path", "absent", "mine"]
    assert "mine" in registry
    assert len(registry) == 3
    with pytest.raises(InputError, match="did you mean 'mine'"):
        registry.choose("mien")


def test_a_name_can_be_given_again_and_taken_back() -> None:
    registry = shapes()
    registry.register("mine")(1)
    registry.register("mine")(2)  # a notebook's cell, run twice
    assert registry["mine"] == 2
    assert len(registry) == 3
    registry.remove("mine")
    registry.remove("mine")
    assert "mine" not in registry


def test_names_of_the_package_stay_its_own() -> None:
    registry = shapes()
    with pytest.raises(InputError, match="'path' exists in lors: choose another name"):
        registry.register("path")
    registry.remove("path")
    assert "path" in registry


@pytest.mark.parametrize("name", ["", "Mine", "a b", "a:b", "-a", "a-", "a.b", "é", "a/b", "a\n"])
def test_what_a_setting_could_not_say_is_no_name(name: str) -> None:
    with pytest.raises(InputError, match="lower-case letters"):
        shapes().register(name)
