"""The three scopes and the two spaces, end to end, and one architecture's set in another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lors import DistilledSet, Workbench, evaluate_set, load_config, run
from lors.distill import Distillation
from lors.errors import InputError
from lors.matching import TrajectoryMatcher
from lors.seeding import generator

SMALL = ["distill.iterations=2", "distill.evaluate_every=0", "evaluate.epochs=2"]
HEADS = ["encoder.scope=heads", "encoder.image_head=mlp", "encoder.text_head=mlp"]


def test_features_are_the_standardised_features_of_real_images(tmp_path: Path) -> None:
    bench = Workbench(load_config("tiny", [*HEADS, "encoder.space=features"]))
    assert bench.flat.model.trunk is None
    pairs = bench.random_pairs(0, 0.1)
    assert pairs.images.shape == (8, 128)
    real = bench.real["train"].images
    assert real.shape == (200, 128)
    standard = bench.frozen.image_standard
    assert standard is not None
    rows = {tuple(row) for row in standard(torch.from_numpy(real.copy())).numpy().round(4).tolist()}
    assert all(tuple(row) in rows for row in pairs.images.detach().numpy().round(4).tolist())


def test_heads_on_pixels_and_on_features_see_the_same_data() -> None:
    """A pixel set's frozen features are what the features space would have held."""
    pixels = Workbench(load_config("tiny", HEADS))
    features = Workbench(load_config("tiny", [*HEADS, "encoder.space=features"]))
    frozen = pixels.flat.model.freeze(pixels.random_pairs(0, 0.1).images)
    torch.testing.assert_close(frozen, features.random_pairs(0, 0.1).images, rtol=1e-3, atol=1e-3)
    assert pixels.origin() == features.origin()  # so they share experts


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
    run(config, tmp_path / "run", references=False)
    path = tmp_path / "run" / "distilled.safetensors"
    distilled = DistilledSet.load(path)
    # A text is 12 input embeddings of 16 numbers, and its storage counts them.
    assert distilled.pairs.texts.shape[1:] == (12, 16)
    assert distilled.pairs.pair_numbers() == 3 * 16 * 16 + 12 * 16
    assert 0 <= evaluate_set(path)["recall"]["last"]["mean"]["mean"] <= 100


def test_scope_all_moves_the_transformer_and_not_its_words(tiny_bert: Path) -> None:
    settings = ["encoder.scope=all", f"encoder.text=transformers:{tiny_bert}"]
    bench = Workbench(load_config("tiny", settings))
    _, text = bench.model(0).sides()
    tower = bench.frozen.text_tower
    assert tower is not None
    trained = sum(p.numel() for p in tower(0).parameters() if p.requires_grad)
    assert sum(p.numel() for p in text) == trained + 16 * 128 + 128
    pairs = bench.start()
    TrajectoryMatcher(bench.setting()).backward(pairs, generator(0))
    assert pairs.texts.grad is not None
    assert pairs.texts.grad.abs().sum() > 0


def test_scope_all_needs_a_text_trunk_that_can_train() -> None:
    with pytest.raises(InputError, match=r"encoder\.text=transformers"):
        Workbench(load_config("tiny", ["encoder.scope=all"]))


@pytest.mark.parametrize("name", ["nfnet", "nf_resnet50", "nf_regnet", "resnet50", "regnet", "vit"])
def test_every_trunk_of_the_paper_builds_embeds_and_matches(name: str, tmp_path: Path) -> None:
    settings = [
        f"encoder.image={name}",
        "data.pairs={train: 12, val: 12, test: 12}",
        "encoder.image_size=32",
        "encoder.text_dim=4",
        "experts={count: 1, epochs: 1, batch_size: 6}",
        "matching={steps: 1, batch_size: 2, max_start_epoch: 1}",
        "distill.budget=3",
        "similarity.rank=1",
        f"experts.folder={tmp_path}",
    ]
    bench = Workbench(load_config("tiny", settings))
    run = Distillation(bench.start(), bench.config.distill, 0)
    before = run.synthetic.images.detach().clone()
    loss = run.step(TrajectoryMatcher(bench.setting()))
    assert loss > 0
    assert not torch.equal(run.synthetic.images, before)


@pytest.fixture(scope="module")
def pixel_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pixels") / "run"
    run(load_config("tiny", SMALL), out, references=False)
    return out / "distilled.safetensors"


def test_a_pixel_set_trains_another_trunk_in_its_own_normalisation(pixel_set: Path) -> None:
    change = ["encoder.image=resnet10t", "evaluate.epochs=1"]
    assert evaluate_set(pixel_set, change)["networks"] == 2
    distilled = DistilledSet.load(pixel_set)
    other = Workbench(load_config(distilled.config.model_dump(mode="json"), change))
    model = other.flat.model
    assert model.mean != distilled.mean
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (model.mean, model.std))
    pixels = (255 * (distilled.images_for(model) * std + mean)).round().clamp(0, 255)
    assert torch.equal(pixels.to(torch.uint8), distilled.pixels())


def test_a_feature_set_refuses_another_trunk(tmp_path: Path) -> None:
    config = load_config("tiny", [*HEADS, *SMALL, "encoder.space=features"])
    run(config, tmp_path / "run", references=False)
    with pytest.raises(InputError, match="features of 'nf_resnet_tiny'"):
        evaluate_set(tmp_path / "run" / "distilled.safetensors", ["encoder.image=resnet10t"])


def test_batch_norm_is_announced_and_stays_frozen() -> None:
    said: list[str] = []

    class Listener:
        def track(self, items, what, total):  # type: ignore[no-untyped-def]
            return iter(items)

        def note(self, **facts: object) -> None: ...

        def say(self, text: str) -> None:
            said.append(text)

    bench = Workbench(load_config("tiny", ["encoder.image=resnet10t"]), Listener())
    assert not bench.flat.model.training
    assert any("batch norm" in text for text in said)
