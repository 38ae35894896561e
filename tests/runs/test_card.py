from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import nn

from lors import load_config
from lors.encoders.dual import Side
from lors.encoders.own import Encoder, own_network
from lors.evaluation.evaluate import evaluate_set
from lors.runs.card import card
from lors.runs.folders import CARD, SET
from lors.runs.opened import Run
from lors.runs.pipeline import run
from lors.sets.distilled import DistilledSet
from lors.setting import setting_of
from lors.share.export import export
from tests.encoders.own_modules import Convolutions, Reader, drawn, tokenize


def blocks(text: str) -> tuple[str, str]:
    """The code of a card that trains, and the code that tests."""
    training, testing = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return training, testing


def test_a_run_ends_with_a_card(tiny_run: Path) -> None:
    text = (tiny_run / CARD).read_text("utf-8")
    mean = Run(tiny_run).results.distilled.recall.mean
    assert "7 synthetic pairs that stand for the 200 real ones of `scenes`" in text
    assert f"| {mean} |" in text
    assert "| random pairs | 8 |" in text
    assert "`lors distill config.yaml`" in text
    assert "not photos" in text


def test_the_licence_is_left_open(tiny_run: Path) -> None:
    _, front, _ = (tiny_run / CARD).read_text("utf-8").split("---\n", 2)
    assert "# license: to be filled in" in front
    about = yaml.safe_load(front)
    assert "license" not in about
    assert about["size_categories"] == ["n<1K"]


def recall_by_its_code(folder: Path) -> float:
    """The mean recall after running the code of a card, from the weights that evaluation draws.

    It is tested on the test split as a user has it: pixels and captions, or embeddings.
    """
    training, testing = blocks((folder / CARD).read_text("utf-8"))
    networks, rest = training.split("image_rate, text_rate", 1)
    names: dict[str, Any] = {}
    exec(compile(networks, CARD, "exec"), names)
    distilled = names["distilled"]
    config = distilled.config
    setting = setting_of(config, like=distilled)
    drawn = setting.model(config.seed, "evaluation network", 0)
    for side, ours in ((names["image"], drawn.image), (names["text"], drawn.text)):
        ours.requires_grad_(False)
        into = side if isinstance(ours, Side) else side[-1]
        into.load_state_dict(ours.state_dict())
    exec(compile(f"image_rate, text_rate{rest}", CARD, "exec"), names)
    split, real = setting.pairs.splits["test"], setting.real["test"]
    names["owner"] = torch.from_numpy(split.owner)
    if config.encoder.space == "features":
        names["images"] = torch.from_numpy(np.array(real.images[:]))
    else:
        names["images"] = distilled.normalise(torch.from_numpy(np.array(split.images)))
    if config.data.source == "embeddings":
        names["texts"] = torch.from_numpy(np.array(real.texts[:]))
    elif config.encoder.scope == "all":
        tokens = distilled.text_trunk.tokens(split.captions, config.encoder.text_length)
        names["texts"] = torch.from_numpy(tokens).long()
    else:
        names["texts"] = distilled.embed(split.captions)
    exec(compile(testing.replace("print(", "found = (", 1), CARD, "exec"), names)
    return float(names["found"].mean)


QUICK = [
    "distill.iterations=2",
    "distill.evaluate_every=0",
    "evaluate.epochs=30",
    "evaluate.seeds=1",
    "experts.count=1",
]


def clip_like(root: Path) -> list[str]:
    """Settings for embeddings of length 1 with a gap between images and texts."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(400, 12))
    for side in ("images", "texts"):
        rows = 4 * rng.normal(size=32) + cause @ rng.normal(size=(12, 32))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        np.save(root / f"{side}.npy", rows.astype(np.float32))
    files = "data.annotations={images: images.npy, texts: texts.npy}"
    sizes = ["data.pairs={}", "distill.budget=60"]
    return ["data.source=embeddings", f"data.root={root}", files, *sizes, *FEATURES, *HEADS]


FEATURES = ["encoder.scope=heads", "encoder.space=features"]
HEADS = ["encoder.image_head=mlp", "encoder.text_head=mlp", "encoder.embed_dim=16"]


def own_settings() -> dict[str, list[str]]:
    """Settings that name modules of the caller's own."""
    every = Encoder(image=Convolutions, text=drawn(Reader), tokenize=tokenize).settings()
    trunks = [f"{name}={value}" for name, value in every.items()]
    pixels = own_network(lambda: (Convolutions(), nn.Linear(16, 6)))
    heads = own_network(lambda: (nn.Sequential(nn.Linear(128, 8), nn.Tanh()), nn.Linear(16, 8)))
    return {
        "own": [*trunks, "encoder.scope=all", "encoder.text_length=12"],
        "own frozen": [*trunks, "encoder.scope=heads", "encoder.image_head=linear"],
        "network": [f"encoder.network={pixels}", "encoder.scope=image"],
        "network of features": [f"encoder.network={heads}", *FEATURES],
    }


KINDS = ["embeddings", "features", "frozen", "image", "all"]
OWN_KINDS = ["own", "own frozen", "network", "network of features"]


@pytest.mark.parametrize("kind", KINDS + OWN_KINDS)
def test_its_code_reaches_what_evaluation_reports(
    kind: str, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "features": [*FEATURES, "encoder.image_head=linear"],
        "frozen": ["encoder.scope=heads", "encoder.image_head=linear"],
        "image": ["encoder.scope=image"],
        "all": ["encoder.scope=all", f"encoder.text=transformers:{tiny_bert}"],
    }
    settings["all"].append("encoder.text_length=8")
    settings |= own_settings()
    asked = clip_like(tmp_path) if kind == "embeddings" else settings[kind]
    out = tmp_path / "run"
    run(load_config("tiny", [*QUICK, *asked]), out, references=False)
    text = (out / CARD).read_text("utf-8")
    assert str(tiny_bert.parent) not in text
    monkeypatch.chdir(out)
    last = evaluate_set(out / SET).readings.last
    assert last is not None
    expected = last.mean.mean
    chance = 100 * 16 / 3 / (40 if kind == "embeddings" else 50)
    assert kind != "embeddings" or expected > 3 * chance
    assert recall_by_its_code(out) == pytest.approx(expected, abs=0.5)


def test_a_set_is_in_the_units_of_its_data(tmp_path: Path) -> None:
    """Selected pairs are real ones, so all that a set gives must be rows of the user's arrays."""
    settings = [*QUICK, *clip_like(tmp_path), "selection.kind=random"]
    run(load_config("tiny", settings), tmp_path / "run", references=False)
    export(Run(tmp_path / "run"), tmp_path / "export")
    distilled = DistilledSet.load(tmp_path / "run" / SET)
    batches = list(distilled.batches(16))
    given = {
        "images": [
            distilled.images,
            torch.cat([batch.inputs for batch in batches]),
            load_file(tmp_path / "export" / "features.safetensors")["images"],
        ],
        "texts": [
            distilled.texts,
            torch.cat([batch.texts for batch in batches]),
            load_file(tmp_path / "export" / "texts.safetensors")["texts"],
        ],
    }
    for side, found in given.items():
        real = torch.from_numpy(np.load(tmp_path / f"{side}.npy"))
        for rows in found:
            assert len(rows) == 60
            assert torch.cdist(rows.double(), real.double()).min(1).values.max() < 1e-5


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
