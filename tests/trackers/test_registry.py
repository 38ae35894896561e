from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lors import load_config
from lors.runs.pipeline import run
from lors.system.errors import InputError
from lors.trackers import TRACKERS, check_trackers


def test_one_name_stands_for_a_list() -> None:
    assert load_config("tiny", ["trackers=wandb"]).trackers == ("wandb",)
    assert load_config("tiny", ["trackers=[tensorboard]"]).trackers == ("tensorboard",)


def test_an_unknown_tracker_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'tensorboard'"):
        run(load_config("tiny", ["trackers=tensorbord"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=rf"pip install 'lors\[{name}\]'"):
        check_trackers([name])


def test_a_folder_of_that_name_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W&B leaves a folder ``wandb`` where it was run."""
    (tmp_path / "wandb").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(InputError, match="needs the package wandb"):
        check_trackers(["wandb"])
