from __future__ import annotations

import json
from pathlib import Path

import pytest

from lors import load_config
from lors.config.public import public_config, public_header


def test_no_folder_of_this_machine_is_published(tmp_path: Path) -> None:
    home = str(tmp_path)
    config = load_config(
        "tiny",
        [
            f"data.root={home}",
            f"data.annotations.train={home}/train.json",
            "data.annotations.val=lists/val.json",
            f"encoder.image_weights={home}/weights.safetensors",
            f"encoder.text=transformers:{home}/bert",
            f"experts.folder={home}/experts",
            f"scorer=open_clip:ViT-B-32/{home}/clip.pt",
            "similarity.kind=fixed",
            f"similarity.values={home}/S.npy",
            "trackers=wandb",
        ],
    )
    public = public_config(config)
    assert home not in public.yaml()
    assert public.data.root is None
    assert public.data.annotations == {"train": "train.json", "val": "lists/val.json"}
    assert public.encoder.image_weights == "weights.safetensors"
    assert public.encoder.text == "transformers:bert"
    assert public.scorer == "open_clip:ViT-B-32/clip.pt"
    assert str(public.similarity.values) == "S.npy"


@pytest.mark.parametrize(
    "name", ["lsa", "bert", "transformers:openai/clip-vit", "open_clip:ViT-B-32/openai"]
)
def test_names_of_the_hub_stay(name: str) -> None:
    config = load_config("tiny", [f"encoder.text={name}", "encoder.image_weights=hub"])
    assert public_config(config) == config


def test_a_relative_folder_that_is_here_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client" / "bert").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    config = load_config("tiny", ["encoder.text=transformers:client/bert"])
    assert public_config(config).encoder.text == "transformers:bert"


def test_the_header_of_a_set_names_its_text_trunk_without_its_folder(tmp_path: Path) -> None:
    config = load_config("tiny", [f"encoder.text=transformers:{tmp_path}/bert"])
    trunk = {"kind": "transformers", "name": f"{tmp_path}/bert", "dim": 16}
    header = public_header({"config": config.model_dump(mode="json"), "text_trunk": trunk})
    assert header["text_trunk"] == {"kind": "transformers", "name": "bert", "dim": 16}
    assert str(tmp_path) not in json.dumps(header)
