"""Modules of the caller's own in all three scopes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from lors.config import load_config
from lors.data import Pairs
from lors.encoders import DualEncoder
from lors.encoders.image import image_trunk as named_trunk
from lors.encoders.own import Encoder, own_network
from lors.encoders.own_by_name import image_trunk, network, text_trunk
from lors.experts import expert_origin, experts_of
from lors.matching import matcher_of
from lors.runs.folders import CARD
from lors.runs.opened import Run
from lors.runs.pipeline import run
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.share.export import export
from lors.share.retriever import Retriever
from lors.starts import start_pairs
from lors.system.seeding import generator
from tests.encoders.own_modules import Convolutions, Reader, drawn, tokenize

HEADS = {"encoder.scope": "heads", "encoder.image_head": "linear"}
QUICK = {
    "distill.iterations": 2,
    "distill.evaluate_every": 0,
    "evaluate.epochs": 3,
    "evaluate.seeds": 1,
}


def made(encoder: Encoder, **more: Any) -> Setting:
    settings = {**encoder.settings(), **{k.replace("__", "."): v for k, v in more.items()}}
    return setting_of(load_config("tiny", settings))


def gradients(setting: Setting) -> SyntheticPairs:
    """Synthetic pairs with the gradients of one matching step."""
    pairs = start_pairs(setting)
    matcher_of(setting).backward(pairs, generator(0))
    return pairs


@pytest.mark.parametrize("name", ["nf_resnet_tiny", "test_resnet"])
def test_an_own_frozen_trunk_gives_the_features_of_the_name_that_it_wraps(
    name: str, tmp_path: Path
) -> None:
    module, path = named_trunk(name, None, 16), tmp_path / "weights.safetensors"
    save_file(module.state_dict(), path)
    settings = {**HEADS, "encoder.image": name, "encoder.image_weights": str(path)}
    named = setting_of(load_config("tiny", settings))
    own = made(Encoder(image=module, scope="heads", image_head="linear"))
    assert own.flat.model.mean == named.flat.model.mean
    assert np.array_equal(own.features("train")[:], named.features("train")[:])
    assert own.image_trunk != named.image_trunk


@pytest.mark.parametrize("space", ["pixels", "features"])
def test_own_linear_sides_are_matched_bit_by_bit_as_linear_heads(space: str) -> None:
    theirs = gradients(setting_of(load_config("tiny", {**HEADS, "encoder.space": space})))
    name = own_network(lambda: (nn.Linear(128, 128), nn.Linear(16, 128)))
    ours = gradients(
        setting_of(load_config("tiny", {**HEADS, "encoder.space": space, "encoder.network": name}))
    )
    for ours_part, part in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(ours_part, part)
        assert ours_part.grad is not None
        assert part.grad is not None
        assert torch.equal(ours_part.grad, part.grad)


def test_a_network_of_arrays_is_distilled() -> None:
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(80, 4))
    images, texts = (cause @ rng.normal(size=(4, d)) for d in (7, 5))
    pairs = Pairs.arrays(images, texts)

    def mlp() -> tuple[nn.Module, nn.Module]:
        image = nn.Sequential(nn.Linear(7, 6), nn.GELU(), nn.Linear(6, 3))
        return image, nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))

    settings = {**HEADS, **{f"data.{k}": v for k, v in pairs.settings.items()}, "data.pairs": {}}
    settings |= {"encoder.space": "features", "encoder.network": own_network(mlp)}
    setting = setting_of(load_config("tiny", settings), pairs=pairs)
    assert isinstance(setting.flat.model.image, nn.Sequential)
    assert gradients(setting).images.grad is not None


def test_a_network_sees_pixels_in_scope_image() -> None:
    def both() -> tuple[nn.Module, nn.Module]:
        return Convolutions(), nn.Linear(16, 6)

    setting = made(Encoder(network=both, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2), scope="image"))
    model = setting.flat.model
    assert model.mean == (0.5, 0.4, 0.3)
    assert {n.split(".")[0] for n, _ in model.named_parameters()} == {"image", "text"}
    pairs = gradients(setting)
    assert pairs.images.shape[1:] == (3, 16, 16)
    assert pairs.images.grad is not None
    assert pairs.images.grad.abs().sum() > 0
    first, again, other = (setting.model(seed) for seed in (0, 0, 1))
    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))


@pytest.mark.parametrize(
    "kind", ["gradient", "distribution", "covariance", "joint-distribution", "hindsight"]
)
def test_every_matcher_takes_a_network(kind: str) -> None:
    def both() -> tuple[nn.Module, nn.Module]:
        return Convolutions(), nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 6))

    options: dict[str, Any] = {"kind": kind}
    if kind == "joint-distribution":
        options |= {"min_start_epoch": 0, "max_start_epoch": 1}
    setting = made(Encoder(network=both, scope="image"), matching=options)
    pairs = gradients(setting)
    assert pairs.images.grad is not None
    assert pairs.images.grad.abs().sum() > 0


def weights(model: DualEncoder) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.image.parameters()])


def test_a_module_keeps_its_weights_and_a_function_draws_them() -> None:
    module = drawn(Convolutions)
    given = made(Encoder(image=module, scope="image"))
    with torch.no_grad():
        next(module.parameters()).add_(1.0)  # what is done later changes nothing
    assert torch.equal(weights(given.model(0)), weights(given.model(1)))
    fresh = made(Encoder(image=Convolutions, scope="image"))
    assert torch.equal(weights(fresh.model(0)), weights(fresh.model(0)))
    assert not torch.equal(weights(fresh.model(0)), weights(fresh.model(1)))


def test_an_own_image_module_trains_and_is_matched() -> None:
    setting = made(Encoder(image=Convolutions, scope="image"))
    store = experts_of(setting)
    start, end = store.snapshots(0, [0, 3])
    assert not torch.equal(start[: setting.flat.sides[0]], end[: setting.flat.sides[0]])
    pairs = gradients(setting)
    assert pairs.images.grad is not None
    assert pairs.images.grad.abs().sum() > 0


def test_in_scope_all_a_text_module_trains_and_texts_are_learned_as_vectors() -> None:
    reader = drawn(Reader)
    encoder = Encoder(text=reader, tokenize=tokenize, text_length=12, scope="all")
    setting = made(encoder)
    start, end = experts_of(setting).snapshots(0, [0, 3])
    image = setting.flat.sides[0]
    assert not torch.equal(start[image:], end[image:])
    pairs = gradients(setting)
    assert pairs.texts.shape[1:] == (12, 8)
    assert pairs.texts.grad is not None
    assert pairs.texts.grad.abs().sum() > 0
    model = setting.flat.model
    tokens = setting.real["train"].captions(np.arange(5), model)
    tower = model.text[0]  # type: ignore[index]
    torch.testing.assert_close(tower(tokens), tower(tower.embed_tokens(tokens)))
    torch.testing.assert_close(tower(tokens), reader.eval()(tokens))


def test_a_frozen_text_module_embeds_what_it_embeds_alone() -> None:
    reader = drawn(Reader).eval()
    setting = made(Encoder(text=reader, tokenize=tokenize, scope="image"))
    captions = setting.pairs.splits["val"].captions[:5]
    with torch.no_grad():
        expected = torch.cat([reader(tokenize([caption])) for caption in captions])
    np.testing.assert_allclose(setting.texts("val")[:5], expected, rtol=1e-4, atol=1e-6)


def lengths(captions: list[str]) -> np.ndarray:
    return np.array([[len(c), c.count("e"), c.count("a")] for c in captions], float)


def test_a_function_and_a_table_of_the_same_embeddings_are_the_same_texts() -> None:
    by_function = made(Encoder(text=lengths))
    every = [c for split in by_function.pairs.splits.values() for c in split.captions]
    table = {caption: lengths([caption])[0] for caption in every}
    by_table = made(Encoder(text=table))
    assert by_function.text_trunk.dim == by_table.text_trunk.dim == 3
    assert np.array_equal(by_function.texts("train")[:], by_table.texts("train")[:])


def test_the_same_object_has_the_same_name_and_another_one_another() -> None:
    def name(module: nn.Module, **pixels: Any) -> str:
        return str(Encoder(image=module, **pixels).settings()["encoder.image"])

    first = name(drawn(Convolutions, 0))
    assert first == name(drawn(Convolutions, 0).train())
    others = [
        name(drawn(Convolutions, 1)),
        name(drawn(Convolutions, 0), mean=(0.5, 0.5, 0.5)),
        name(nn.Sequential(*drawn(Convolutions, 0).children())),
    ]
    assert len({first, *others}) == 4

    def network_of(size: int) -> str:
        return own_network(lambda: (nn.Linear(3, size), nn.Linear(3, size)))

    assert network_of(2) == network_of(2) != network_of(4)


def test_experts_of_other_content_under_the_same_name_are_others() -> None:
    from lors.config.names import HEADS as REGISTRY

    def origins(bias: bool) -> list[Any]:
        network("mine")(lambda: (nn.Linear(128, 4), nn.Linear(16, 4, bias=bias)))
        image_trunk("mine")(lambda: Convolutions(6 if bias else 5))
        text_trunk("mine")(lambda captions: lengths(captions)[:, : 2 + bias])
        REGISTRY.register("mine")(lambda i, o: nn.Linear(i, o, bias=bias))
        changes = [
            {**HEADS, "encoder.network": "own:mine"},
            {"encoder.image": "own:mine"},
            {"encoder.text": "own:mine"},
            {"encoder.text_head": "mine"},
        ]
        settings = [setting_of(load_config("tiny", change)) for change in changes]
        found = [expert_origin(setting) for setting in settings]
        return [{**origin, "parameters": None} for origin in found]

    try:
        for one, same, other in zip(origins(True), origins(True), origins(False), strict=True):
            assert one == same
            assert one != other
    finally:
        REGISTRY.remove("mine")


def test_settings_without_own_parts_have_the_experts_that_they_had() -> None:
    origin = expert_origin(setting_of(load_config("tiny")))
    assert "network" not in origin["encoder"]


@pytest.mark.parametrize("scope", ["heads", "image", "all"])
def test_a_set_is_saved_loaded_evaluated_and_searched_with(scope: str, tmp_path: Path) -> None:
    encoder = Encoder(
        image=drawn(Convolutions),
        text=drawn(Reader),
        tokenize=tokenize,
        text_length=12,
        scope=scope,
        image_head="linear",
        embed_dim=8,
    )
    config = load_config("tiny", {**encoder.settings(), **QUICK})
    run(config, tmp_path / "run", references=False)
    export(Run(tmp_path / "run"), tmp_path / "export")
    card = (tmp_path / "export" / CARD).read_text("utf-8")
    assert "an encoder given in Python" in card
    distilled = DistilledSet.load(tmp_path / "run" / "distilled.safetensors")
    retriever = Retriever.train(distilled)
    retriever.save(tmp_path / "retriever.safetensors")
    again = Retriever.load(tmp_path / "retriever.safetensors")
    words = ["a red star", "a blue ring"]
    assert torch.equal(again.embed_texts(words), retriever.embed_texts(words))
    pixels = np.zeros((2, 3, 16, 16), np.uint8)
    assert torch.equal(again.embed_pixels(pixels), retriever.embed_pixels(pixels))
