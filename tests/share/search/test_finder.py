from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import torch

import lors
from lors import Retriever
from lors.config import load_config
from lors.evaluation.recall import recall
from lors.evaluation.references import full_data
from lors.runs.opened import Run
from lors.setting import setting_of
from lors.share.search.finder import Finder, open_run
from lors.share.search.models import FULL_DATA_MODEL, SET_MODEL, full_data_retriever, set_retriever
from lors.system.errors import InputError
from lors.system.progress import Silent
from tests.conftest import FEATURES
from tests.share.search.conftest import picture

T = TypeVar("T")


class Counted(Silent):
    """Knows how many photos were encoded and what was trained."""

    def __init__(self) -> None:
        self.tracked: list[tuple[str, int]] = []

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        self.tracked.append((what, total))
        return iter(items)


def test_a_folder_is_searched_as_its_files_are(retriever: Retriever, hostile: Path) -> None:
    files = [hostile / "plain.webp", *sorted((hostile / "deep" / "er").iterdir())]
    by_file = dict(retriever.search("a red circle", files))
    by_folder = dict(retriever.search("a red circle", hostile, count=99))
    assert len(by_folder) == 6  # not the one that is no image
    for path, cosine in by_file.items():
        assert by_folder[path] == pytest.approx(cosine, abs=1e-5)
    assert sorted(by_folder.values(), reverse=True) == list(by_folder.values())


@pytest.mark.parametrize("kind", ["image", "features"])
def test_a_photo_is_encoded_once(
    run: Run, features_run: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home"))
    distilled = run.distilled if kind == "image" else Run(features_run).distilled
    models = {str(seed): Retriever.train(distilled, seed) for seed in range(2)}
    for number, colour in enumerate(("red", "green", "blue")):
        picture(tmp_path / "photos" / f"{number}.png", colour)
    counted = Counted()
    first = Finder.of_folder(tmp_path / "photos", models, counted).find("a red circle")
    picture(tmp_path / "photos" / "more.png", "white")
    shutil.copy(tmp_path / "photos" / "0.png", tmp_path / "photos" / "copy.png")
    again = Finder.of_folder(tmp_path / "photos", models, counted).find("a red circle")
    encoded = [total for what, total in counted.tracked if what == "encode photos"]
    assert encoded == ([3, 3, 1, 1] if kind == "image" else [3, 1])  # a frozen trunk is shared
    scores = {match.name: match.score for match in again["0"]}
    assert len(scores) == 5
    assert scores["copy.png"] == pytest.approx(scores["0.png"], abs=1e-5)
    for match in first["0"]:
        assert scores[match.name] == pytest.approx(match.score, abs=1e-5)


@pytest.mark.parametrize("settings", [[], FEATURES], ids=["image", "features"])
def test_the_full_data_model_is_the_one_that_is_measured(settings: list[str]) -> None:
    setting = setting_of(load_config("tiny", settings))
    retriever, test = Retriever.of_full_data(setting), setting.pairs.splits["test"]
    images, texts = retriever.embed_pixels(test.images), retriever.embed_texts(test.captions)
    found = recall(images, texts, torch.from_numpy(test.owner))
    assert found.mean == pytest.approx(full_data(setting)[0].chosen.mean, abs=0.5)


def test_models_are_kept_until_the_set_changes(run: Run, tmp_path: Path) -> None:
    for name in ("distilled.safetensors", "config.yaml"):
        shutil.copy(run.folder / name, tmp_path)
    copied, counted = Run(tmp_path), Counted()
    first = [set_retriever(copied, counted), full_data_retriever(copied, counted)]
    again = [set_retriever(copied, counted), full_data_retriever(copied, counted)]
    whats = [what for what, _ in counted.tracked if what.startswith("train on")]
    assert whats == ["train on the set", "train on all real pairs"]
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.embed_texts(["a star"]), other.embed_texts(["a star"]))
    assert isinstance(lors.load(tmp_path / SET_MODEL), Retriever)
    assert lors.load(tmp_path / FULL_DATA_MODEL).made_from == first[1].made_from  # type: ignore[union-attr]
    set_retriever(Run(tmp_path, ["evaluate.epochs=1"]), counted)
    assert [what for what, _ in counted.tracked].count("train on the set") == 2


def test_the_data_of_a_run_is_searched_by_default(run: Run) -> None:
    found = lors.search(run.folder, "a red circle", count=3, progress=False)
    assert len(found) == 3
    assert found[0].name.startswith("scene 2000")  # the test split
    assert found[0].caption


def test_what_cannot_be_searched_says_why(
    embeddings_run: Path, retriever: Retriever, hostile: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="made from embeddings"):
        open_run(embeddings_run)
    with pytest.raises(InputError, match="give a folder"):
        lors.search(retriever, "a star", progress=False)
    with pytest.raises(InputError, match="there is no folder"):
        lors.search(retriever, "a star", tmp_path / "absent", progress=False)
    with pytest.raises(InputError, match="one or more words"):
        lors.search(retriever, " ", hostile, progress=False)
    (tmp_path / "only.png").write_bytes(b"broken")
    with pytest.raises(InputError, match="none of the photos can be read"):
        lors.search(retriever, "a star", tmp_path, progress=False)
