"""The three scopes and the two spaces, end to end, and one architecture's set in another."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lors import DistilledSet, evaluate_set, load_config, run
from lors.distillation.loop import Distillation
from lors.encoders.image import image_trunk
from lors.experts import expert_origin, train_expert
from lors.matching import matcher_of
from lors.setting import setting_of
from lors.setting.resolve import resolve
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import generator
from tests.conftest import random_pairs

SMALL = ["distill.iterations=2", "distill.evaluate_every=0", "evaluate.epochs=2"]
HEADS = ["encoder.scope=heads", "encoder.image_head=mlp", "encoder.text_head=mlp"]


def test_features_are_the_standardised_features_of_real_images(tmp_path: Path) -> None:
    setting = setting_of(load_config("tiny", [*HEADS, "encoder.space=features"]))
    assert setting.flat.model.trunk is None
    pairs = random_pairs(setting)
    assert pairs.images.shape == (8, 128)
    real = setting.real["train"].images
    assert real.shape == (200, 128)
    standard = setting.frozen.image_standard
    assert standard is not None
    rows = {
        tuple(row) for row in standard(torch.from_numpy(real[:].copy())).numpy().round(4).tolist()
    }
    assert all(tuple(row) in rows for row in pairs.images.detach().numpy().round(4).tolist())


def test_heads_on_pixels_and_on_features_see_the_same_data() -> None:
    """A pixel set's frozen features are what the features space would have held."""
    pixels = setting_of(load_config("tiny", HEADS))
    features = setting_of(load_config("tiny", [*HEADS, "encoder.space=features"]))
    frozen = pixels.flat.model.freeze(random_pairs(pixels).images)
    torch.testing.assert_close(frozen, random_pairs(features).images, rtol=1e-3, atol=1e-3)
    assert expert_origin(pixels) == expert_origin(features)  # so they share experts


def test_scope_all_trains_the_text_trunk_on_input_embeddings(
    tiny_bert: Path, tmp_path: Path
) -> None:
    settings = [
        "encoder.scope=all",
        f"encoder.text=transformers:{tiny_bert}",
        "encoder.text_length=12",
        *SMALL,
    ]
    config = load_config("tiny", settings)
    results = run(config, tmp_path / "run", references=False)
    path = tmp_path / "run" / "distilled.safetensors"
    distilled = DistilledSet.load(path)
    # A text is 12 input embeddings of 16 numbers, and its storage counts them.
    assert distilled.pairs.texts.shape[1:] == (12, 16)
    assert distilled.pairs.pair_numbers() == 3 * 16 * 16 + 12 * 16
    assert evaluate_set(path) == results.distilled


def test_scope_all_moves_the_transformer_and_not_its_words(tiny_bert: Path) -> None:
    settings = ["encoder.scope=all", f"encoder.text=transformers:{tiny_bert}"]
    setting = setting_of(load_config("tiny", settings))
    _, text = setting.model(0).sides()
    tower = setting.frozen.text_tower
    assert tower is not None
    trained = sum(p.numel() for p in tower().parameters() if p.requires_grad)
    assert sum(p.numel() for p in text) == trained + 16 * 128 + 128
    pairs = start_pairs(setting)
    matcher_of(setting).backward(pairs, generator(0))
    assert pairs.texts.grad is not None
    assert pairs.texts.grad.abs().sum() > 0


def test_scope_all_needs_a_text_trunk_that_can_train() -> None:
    with pytest.raises(InputError, match=r"encoder\.text=transformers"):
        resolve(load_config("tiny", ["encoder.scope=all"]))


def test_in_scope_all_real_texts_mean_the_same_as_input_embeddings(tiny_bert: Path) -> None:
    """Padding does not count, so random pairs are not handicapped."""
    settings = ["encoder.scope=all", f"encoder.text=transformers:{tiny_bert}"]
    setting = setting_of(load_config("tiny", settings))
    model, real = setting.model(0), setting.real["train"]
    index = np.arange(5)
    tokens = real.captions(index, model)
    assert (tokens == 0).any()
    embedded = model.text[0].embed_tokens(tokens)  # type: ignore[index]
    torch.testing.assert_close(model.embed_texts(embedded), model.embed_texts(tokens))


def test_experts_of_other_weights_are_not_reused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"

    def origin(seed: int) -> dict[str, object]:
        torch.manual_seed(seed)
        save_file(image_trunk("nf_resnet_tiny", None, 16).state_dict(), path)
        return expert_origin(setting_of(load_config("tiny", [f"encoder.image_weights={path}"])))

    assert origin(0) == origin(0) != origin(1)


def test_image_size_defaults_to_the_trunks_own() -> None:
    config = load_config("features", ["data.source=scenes", "encoder.image=resnet10t"])
    assert resolve(config).encoder.image_size == 176


@pytest.mark.parametrize("name", ["nfnet", "nf_resnet50", "nf_regnet", "resnet50", "regnet", "vit"])
def test_every_trunk_of_the_paper_builds_embeds_and_matches(name: str, tmp_path: Path) -> None:
    settings = [
        f"encoder.image={name}",
        "data.pairs={train: 12, val: 12, test: 12}",
        "encoder.image_size=32",
        "encoder.text_dim=4",
        "experts={count: 1, epochs: 1, batch_size: 6}",
        "matching={steps: 1, batch_size: 2, max_start_epoch: 1, derivative: double}",
        "distill.budget=3",
        "similarity.rank=1",
        f"experts.folder={tmp_path}",
    ]
    setting = setting_of(load_config("tiny", settings))
    run = Distillation(start_pairs(setting), setting.config.distill, 0)
    before = run.synthetic.images.detach().clone()
    loss = run.step(matcher_of(setting))
    assert loss > 0
    assert not torch.equal(run.synthetic.images, before)


@pytest.fixture(scope="module")
def pixel_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pixels") / "run"
    run(load_config("tiny", SMALL), out, references=False)
    return out / "distilled.safetensors"


def test_a_pixel_set_trains_another_trunk_in_its_own_normalisation(pixel_set: Path) -> None:
    change = ["encoder.image=resnet10t", "evaluate.epochs=1"]
    assert evaluate_set(pixel_set, change).networks == 2
    distilled = DistilledSet.load(pixel_set)
    other = setting_of(load_config(distilled.config.model_dump(mode="json"), change))
    model = other.flat.model
    assert model.mean != distilled.mean
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (model.mean, model.std))
    pixels = (255 * (distilled.images_for(model) * std + mean)).round().clamp(0, 255)
    assert torch.equal(pixels.to(torch.uint8), distilled.pixels())


def test_a_feature_set_refuses_another_trunk(tmp_path: Path) -> None:
    config = load_config("tiny", [*HEADS, *SMALL, "encoder.space=features"])
    run(config, tmp_path / "run", references=False)
    path = tmp_path / "run" / "distilled.safetensors"
    for change in ("encoder.image=resnet10t", "encoder.image_size=24"):
        with pytest.raises(InputError, match="features of 'nf_resnet_tiny'"):
            evaluate_set(path, [change])
    with pytest.raises(InputError, match=r"encoder\.space cannot be changed"):
        evaluate_set(path, ["encoder.space=pixels"])


def test_a_set_brings_its_standardisation_to_other_data(tmp_path: Path) -> None:
    config = load_config("tiny", [*HEADS, *SMALL])
    run(config, tmp_path / "run", references=False)
    distilled = DistilledSet.load(tmp_path / "run" / "distilled.safetensors")
    elsewhere = load_config(config.model_dump(mode="json"), ["data.seed=5"])
    setting = setting_of(elsewhere, like=distilled)
    for ours, theirs in (
        (setting.frozen.text_standard, distilled.text_standard),
        (setting.frozen.image_standard, distilled.image_standard),
    ):
        assert ours is not None
        assert theirs is not None
        assert torch.equal(ours.mean, theirs.mean)


def test_a_set_loads_where_its_text_trunk_is_not(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bert"
    shutil.copytree(tiny_bert, folder)
    settings = [f"encoder.text=transformers:{folder}", *SMALL]
    run(load_config("tiny", settings), tmp_path / "run", references=False)
    folder.rename(tmp_path / "moved")
    path = tmp_path / "run" / "distilled.safetensors"
    assert len(DistilledSet.load(path)) == 7  # the eighth pays for the similarity
    with pytest.raises(InputError, match="cannot load the text trunk"):
        evaluate_set(path)
    moved = f"encoder.text=transformers:{tmp_path / 'moved'}"
    assert evaluate_set(path, [moved]).networks == 2
    with pytest.raises(InputError, match="another text trunk"):
        evaluate_set(path, [moved, "encoder.text_pooling=mean"])


def test_batch_norm_stays_frozen() -> None:
    config = load_config("tiny", ["encoder.image=resnet10t", "experts.epochs=2"])
    setting = setting_of(config)
    assert not setting.flat.model.training
    model = setting.model(0)
    list(train_expert(model, setting.real["train"], config.experts, config.data, 0))
    before = setting.model(0).state_dict()
    moved = [k for k, t in model.state_dict().items() if not torch.equal(t, before[k])]
    assert moved
    assert not [name for name in moved if "running" in name]
