from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lors.config import load_config
from lors.runs.opened import Run
from lors.runs.pipeline import run
from lors.show.report import map as pair_map
from lors.show.report.album import Album
from lors.show.report.map import map_block, map_words
from lors.system.errors import InputError


def mapped(path: Path, projection: str = "pca") -> dict[str, Any]:
    opened = Run(path)
    return map_block(opened, opened.setting, len(opened.distilled), Album(), projection)


def places(view: dict[str, Any], kind: str) -> np.ndarray:
    return np.array(view[kind]).reshape(-1, 2)


def test_selected_pairs_lie_on_the_real_ones(tmp_path: Path) -> None:
    settings = ["selection.kind=random", "evaluate.seeds=1", "evaluate.epochs=1"]
    run(load_config("tiny", settings), tmp_path / "run", references=False)
    block = mapped(tmp_path / "run")
    images, texts = block["views"]
    real = set(map(tuple, places(images, "real").tolist()))
    assert len(block["index"]) == 200
    assert set(map(tuple, places(images, "after").tolist())) <= real
    assert "before" not in images
    assert 0 < texts["explained"] <= 1


def test_a_map_is_a_small_drawn_sample_with_pictures_and_captions(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_map, "SAMPLE", 50)
    block = mapped(tiny_run)
    assert block == mapped(tiny_run)
    assert len(set(block["index"])) == len(block["captions"]) == 50
    assert block["sprite"]["columns"] == 8
    view = block["views"][0]
    every = np.concatenate([places(view, kind) for kind in ("real", "before", "after")])
    assert every.min() == 0
    assert every.max() == pair_map.GRID
    words = " ".join(map_words(block, Run(tiny_run).setting, "pca"))
    assert "50 drawn at random from the 200" in words


def test_umap_is_an_extra(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(InputError, match=r"pip install 'lors\[map\]'"):
        mapped(tiny_run, "umap")
