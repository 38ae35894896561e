from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lors import load_config
from lors.distilled import DistilledSet
from lors.folders import CARD, SET
from lors.pipeline import run
from lors.runs import Run
from lors.sharing.card import card


def training(text: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return str(code)


def test_a_run_ends_with_a_card(tiny_run: Path) -> None:
    text = (tiny_run / CARD).read_text("utf-8")
    mean = Run(tiny_run).results["rows"]["distilled set"]["recall"]["chosen"]["mean"]
    assert "7 synthetic pairs that stand for the 200 real ones of `scenes`" in text
    assert f"| {mean['mean']:.1f} ± {mean['std']:.1f} |" in text
    assert "| random pairs | 8 |" in text
    assert "`lors distill config.yaml`" in text
    assert "not photos" in text


def test_the_licence_is_left_open(tiny_run: Path) -> None:
    _, front, _ = (tiny_run / CARD).read_text("utf-8").split("---\n", 2)
    assert "# license: to be filled in" in front
    about = yaml.safe_load(front)
    assert "license" not in about
    assert about["size_categories"] == ["n<1K"]


@pytest.mark.parametrize("which", ["tiny_run", "features_run", "embeddings_run"])
def test_its_code_trains_on_the_set(
    which: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = request.getfixturevalue(which)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    exec(compile(training((folder / CARD).read_text("utf-8")), CARD, "exec"), names)
    assert float(names["loss"].detach()) >= 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("scope", "uses"), [("heads", "distilled.image_standard"), ("all", "text_trunk.tower()")]
)
def test_its_code_fits_every_scope(
    scope: str, uses: str, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = ["distill.iterations=1", "distill.evaluate_every=0", "evaluate.epochs=2"]
    text = [f"encoder.text=transformers:{tiny_bert}", "encoder.text_length=8"]
    heads = [f"encoder.scope={scope}", "encoder.image_head=linear", "evaluate.seeds=1"]
    run(load_config("tiny", [*quick, *heads, *text]), tmp_path, references=False)
    card_text = (tmp_path / CARD).read_text("utf-8")
    assert str(tiny_bert.parent) not in card_text
    monkeypatch.chdir(tmp_path)
    assert uses in training(card_text)
    exec(compile(training(card_text), CARD, "exec"), {})


def test_selected_pairs_are_not_called_synthetic(tiny_run: Path) -> None:
    made = DistilledSet.load(tiny_run / SET)
    config = load_config(made.config.model_dump(mode="json"), ["selection.kind=herding"])
    text = card(replace(made, config=config), {}, {})
    assert "7 image-text pairs selected from scenes" in text
    assert "The pairs are not synthetic" in text
    assert "`lors select herding config.yaml`" in text
    assert "What it is worth" not in text


def test_it_does_not_say_where_the_data_lies(embeddings_run: Path) -> None:
    text = (embeddings_run / CARD).read_text("utf-8")
    assert str(Run(embeddings_run).config.data.root) not in text
    assert "`lors distill config.yaml data.root=FOLDER`" in text
