from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import lors
from lors import DistilledSet, Retriever, Setting
from lors.config import Config, load_config
from lors.encoders.given_text import GivenText
from lors.evaluation.recall import recall
from lors.files import artifacts
from lors.runs.info import describe
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from tests.conftest import random_pairs

HEADS = ["encoder.scope=heads", "encoder.image_head=linear", "encoder.embed_dim=16"]
KINDS = {"image": [], "heads": HEADS, "features": [*HEADS, "encoder.space=features"]}


def real_set(config: Config) -> tuple[Setting, DistilledSet]:
    """Some real pairs as a set, which needs no distillation."""
    setting = setting_of(config)
    plain = load_config("tiny", ["similarity.kind=identity"]).similarity
    return setting, setting.distilled(random_pairs(setting), similarity=plain)


@pytest.mark.parametrize("kind", KINDS)
def test_it_retrieves_from_pixels_what_the_protocol_measures(kind: str, tmp_path: Path) -> None:
    setting, distilled = real_set(load_config("tiny", KINDS[kind]))
    Retriever.train(distilled).save(tmp_path / "some.safetensors")
    retriever, test = Retriever.load(tmp_path / "some.safetensors"), setting.pairs.splits["test"]
    images, texts = retriever.embed_pixels(test.images), retriever.embed_texts(test.captions)
    again = recall(images, texts, torch.from_numpy(test.owner))
    keys = (0, "retriever")
    model, protocol = setting.model(*keys), setting.config.evaluate
    lors.train_on(distilled.pairs, model, distilled.loss, protocol, *keys)
    assert again == lors.measure(model, setting.real["test"])


def test_it_keeps_a_frozen_trunk_with_its_batch_norms(tmp_path: Path) -> None:
    config = load_config("tiny", [*HEADS, "encoder.image=resnet10t", "encoder.image_size=32"])
    _, distilled = real_set(config)
    retriever = Retriever.train(distilled)
    retriever.save(tmp_path / "some.safetensors")
    again = Retriever.load(tmp_path / "some.safetensors")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3, 32, 32), dtype=np.uint8)
    torch.testing.assert_close(again.embed_pixels(pixels), retriever.embed_pixels(pixels))


def test_it_keeps_a_text_tower_that_was_trained(tiny_bert: Path, tmp_path: Path) -> None:
    text = [f"encoder.text=transformers:{tiny_bert}", "encoder.scope=all", "encoder.text_length=8"]
    _, distilled = real_set(load_config("tiny", text))
    retriever = Retriever.train(distilled)
    retriever.save(tmp_path / "some.safetensors")
    again = Retriever.load(tmp_path / "some.safetensors")
    words = ["a red circle", "a blue star"]
    assert torch.equal(again.embed_texts(words), retriever.embed_texts(words))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("retriever") / "some.safetensors"
    Retriever.train(real_set(load_config("tiny"))[1]).save(path)
    return path


def test_photos_are_found_best_first(saved: Path, tmp_path: Path) -> None:
    retriever, files = Retriever.load(saved), []
    for number, colour in enumerate(("red", "green", "blue")):
        files.append(tmp_path / f"{number}.png")
        Image.new("RGB", (40, 30), colour).save(files[-1])
    photos = retriever.embed_photos(files)
    found = retriever.search("a red circle", photos, count=2)
    cosines = (photos @ retriever.embed_texts(["a red circle"])[0]).tolist()
    assert [cosine for _, cosine in found] == sorted(cosines, reverse=True)[:2]
    assert [cosines[place] for place, _ in found] == [cosine for _, cosine in found]
    assert len(retriever.search("a red circle", photos, count=9)) == 3


def test_what_cannot_be_embedded_is_refused(saved: Path, tmp_path: Path) -> None:
    retriever = Retriever.load(saved)
    with pytest.raises(InputError, match="there is no photo"):
        retriever.embed_photos([tmp_path / "absent.png"])
    with pytest.raises(InputError, match="one or more photos"):
        retriever.embed_photos([])
    with pytest.raises(InputError, match="one or more texts"):
        retriever.embed_texts("a text, not a list")


def test_sets_without_trunks_are_refused(setting: Setting) -> None:
    made = setting.distilled(start_pairs(setting))
    given = GivenText(setting.text_trunk.dim, "some")
    distilled = DistilledSet(made.pairs, made.config, given, made.mean, made.std, "given|8")
    with pytest.raises(InputError, match="given embeddings"):
        Retriever.train(distilled)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("embed_dim", 10**9), ("image", "vit_giant_patch14_clip_224"), ("image_head", "linear")],
)
def test_a_file_that_claims_another_network_is_refused(
    saved: Path, tmp_path: Path, setting: str, value: object
) -> None:
    header, tensors = artifacts.load(saved, "retriever")
    header["encoder"][setting] = value
    artifacts.save(tmp_path / "other.safetensors", "retriever", header, tensors)
    with pytest.raises(InputError, match=r"other\.safetensors"):
        Retriever.load(tmp_path / "other.safetensors")


def test_a_set_made_on_another_device_trains_here(setting: Setting) -> None:
    plain = load_config("tiny", ["similarity.kind=identity"]).similarity
    distilled = setting.distilled(random_pairs(setting), similarity=plain)
    there = distilled.config.model_copy(update={"device": "cuda:7"})
    Retriever.train(replace(distilled, config=there))
    with pytest.raises(InputError, match="device 'quantum'"):
        Retriever.train(distilled, device="quantum")


def test_it_can_be_described(saved: Path) -> None:
    facts = describe(saved)
    assert facts["kind"] == "retriever"
    assert "nf_resnet_tiny" in facts["image trunk"]
    assert facts["text trunk"] == "lsa"


def test_the_file_names_no_other_file(saved: Path) -> None:
    header, _ = artifacts.load(saved, "retriever")
    assert header["encoder"]["image_weights"] is None


def test_pixels_may_be_more_than_a_batch(saved: Path) -> None:
    retriever = Retriever.load(saved)
    pixels = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 16), dtype=np.uint8)
    whole, parts = retriever.embed_pixels(pixels), retriever.embed_pixels(pixels, batch=2)
    torch.testing.assert_close(whole, parts)
