"""What cannot be used is refused in one sentence, before any work starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.attention import SDPBackend, sdpa_kernel

from lors.config import load_config
from lors.encoders.own import Encoder, own_network
from lors.encoders.own_by_name import text_trunk
from lors.encoders.own_parts import OWN_IMAGES
from lors.encoders.own_text import OWN_TEXTS
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, resolve, setting_of
from lors.share.retriever import Retriever
from lors.system.errors import InputError
from tests.encoders.own_modules import Convolutions, Reader, drawn, tokenize


class Forward(nn.Module):
    """An image module whose forward a test chooses; it has weights of 3 x 4."""

    def __init__(self, forward: Callable[[Tensor, nn.Linear], Any]) -> None:
        super().__init__()
        self.layer, self.chosen = nn.Linear(3, 4), forward

    def forward(self, images: Tensor) -> Any:
        return self.chosen(images.mean((2, 3)), self.layer)


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


def in_place(x: Tensor, layer: nn.Linear) -> Tensor:
    y = layer(x).exp()
    y += 1
    return y


def of_the_input(x: Tensor, layer: nn.Linear) -> Tensor:
    with torch.no_grad():
        x = x * 2
    return layer(x)


def flash(x: Tensor, layer: nn.Linear) -> Tensor:
    y = layer(x)[:, None, None, :].expand(-1, 1, 4, 4)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(y, y, y).mean((1, 2))


def without_gradient(x: Tensor, layer: nn.Linear) -> Tensor:
    with torch.no_grad():
        return layer(x)


@pytest.mark.parametrize(
    ("forward", "sentence"),
    [
        (in_place, r"changes a tensor in place .* write x = x \+ y"),
        (lambda x, layer: layer(x).detach(), "no gradient reaches the parameters"),
        (without_gradient, r"no gradient reaches the parameters .* torch\.no_grad"),
        (of_the_input, "no gradient goes through .* to its inputs"),
        (lambda x, layer: Once.apply(layer(x)), "second derivatives, such as a fused attention"),
        (flash, r"use torch\.nn\.functional\.scaled_dot_product_attention as it is"),
        (lambda x, layer: (layer(x), x), r"returns a tuple, not features of shape \(batch, feat"),
        (lambda x, layer: layer(x)[:, None], r"returns a tensor of shape \(2, 1, 4\)"),
        (lambda x, layer: layer(x).argmax(1, keepdim=True), r"torch\.int64, not features"),
        (lambda x, layer: layer(x).mean(0, keepdim=True), "return one row for each"),
        (lambda x, layer: F.dropout(layer(x)), "gives other features each time"),
        (lambda x, layer: layer(x) / 0, "not finite on noise"),
        (lambda x, layer: layer(x.T), r"fails on inputs of shape \(2, 3, 16, 16\) \(RuntimeError"),
    ],
)
def test_an_image_module_that_cannot_be_matched(
    forward: Callable[[Tensor, nn.Linear], Any], sentence: str
) -> None:
    settings = Encoder(image=Forward(forward), scope="image").settings()
    with pytest.raises(InputError, match=rf"the image trunk own:\w+.*{sentence}|{sentence}"):
        resolve(load_config("tiny", settings))


def test_a_frozen_trunk_may_have_no_second_derivative_but_needs_the_first() -> None:
    def resolved(forward: Callable[[Tensor, nn.Linear], Any], space: str) -> None:
        encoder = Encoder(image=Forward(forward), scope="heads", space=space, image_head="linear")
        resolve(load_config("tiny", encoder.settings()))

    resolved(lambda x, layer: Once.apply(layer(x)), "pixels")
    resolved(without_gradient, "features")
    with pytest.raises(InputError, match="no gradient goes through"):
        resolved(without_gradient, "pixels")


def test_a_frozen_module_cannot_train() -> None:
    module = drawn(Convolutions).requires_grad_(False)
    settings = Encoder(image=module, scope="image").settings()
    with pytest.raises(InputError, match=r"cannot train: set encoder\.scope=heads"):
        resolve(load_config("tiny", settings))


HEADS = {"encoder.scope": "heads", "encoder.space": "features"}


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (lambda: (nn.Linear(128, 4), nn.Linear(16, 5)), "gives 5 numbers, and the other side 4"),
        (lambda: (nn.Linear(9, 4), nn.Linear(16, 4)), r"image module .* shape \(2, 128\)"),
        (lambda: (nn.Linear(128, 4), nn.Identity()), "nothing can train in the text module"),
    ],
)
def test_a_network_that_does_not_fit(
    factory: Callable[[], tuple[nn.Module, nn.Module]], sentence: str
) -> None:
    config = load_config("tiny", {**HEADS, "encoder.network": own_network(factory)})
    with pytest.raises(InputError, match=sentence):
        setting_of(config)


shared = nn.Linear(4, 4)
numpy_draws = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (lambda: nn.Linear(3, 3), "must return two modules, .* not a Linear"),
        (lambda: (nn.Linear(3, 3), 7), "the text module must be an nn.Module, not a int"),
        (lambda: (shared, shared), "share parameters"),
        (nn.Linear(3, 3), "a model is given as a function without arguments"),
        (lambda x: x, "cannot be called without arguments"),
        (lambda: (nn.Linear(2, 2), Noisy()), r"another each time .* with torch alone"),
    ],
)
def test_what_is_no_network(factory: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        own_network(factory)


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(numpy_draws.normal(size=3)))


@pytest.mark.parametrize(
    ("encoder", "sentence"),
    [
        (Encoder(image=nn.Flatten(), image_weights="hub"), "image_weights is for names"),
        (Encoder(image="resnet18", mean=(0, 0, 0)), "mean and std are for an image module"),
        (Encoder(image=nn.Flatten(), mean=(0.5,)), "3 channels, not 1"),
        (Encoder(image=nn.Flatten(), std=(1, 0, 1)), "std must be positive"),
        (Encoder(image=7), "an image trunk is a name, an nn.Module or a function"),  # type: ignore[arg-type]
        (Encoder(image=lambda: 7), "the image trunk must be an nn.Module"),  # type: ignore
        (Encoder(text=Reader()), "a text module needs its tokenizer"),
        (Encoder(text="lsa", tokenize=tokenize), "tokenize is for a text module"),
        (Encoder(text={}), "the table of text embeddings is empty"),
        (Encoder(text=3), "a text trunk is a name, a function of captions, a table"),  # type: ignore[arg-type]
        (Encoder(text=Reader), "Reader is a class"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_encoder(encoder: Encoder, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        encoder.settings()


class SeesIds(Reader):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens) + tokens.argmax(1)[:, None]


class TwoTables(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.more = nn.Embedding(40, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens) + self.more(tokens).mean(1)


class NoTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layer(tokens[:, :1].float())


@pytest.mark.parametrize(
    ("module", "tokens", "sentence"),
    [
        (SeesIds(), tokenize, "uses its token ids outside of its nn.Embedding"),
        (TwoTables(), tokenize, r"it has several: look ids up once, or set encoder\.scope=image"),
        (NoTable(), tokenize, "it has none"),
        (Reader(), lambda captions: [[{}[c]] for c in captions], "failed on .* tokenize must"),
        (Reader(), lambda captions: torch.ones(len(captions)), "must return integers of shape"),
        (nn.Embedding(40, 3), tokenize, "not features of shape"),
    ],
)
def test_a_text_module_that_cannot_train(module: nn.Module, tokens: Any, sentence: str) -> None:
    encoder = Encoder(text=module, tokenize=tokens, scope="all", text_length=8)
    with pytest.raises(InputError, match=sentence):
        resolve(load_config("tiny", encoder.settings()))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (lambda captions: [{}[c] for c in captions], r"failed on .* must embed any caption"),
        (lambda captions: np.ones(len(captions)), r"shape \(2,\) .* numbers of shape \(2, size\)"),
        (lambda captions: np.full((len(captions), 2), np.nan), "NaN or infinity"),
        (lambda captions: np.array([[c] for c in captions]), "numbers of shape"),
    ],
)
def test_a_function_that_embeds_nothing(text: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        resolve(load_config("tiny", Encoder(text=text).settings()))


def test_embeddings_cannot_train() -> None:
    settings = Encoder(text=lambda captions: np.ones((len(captions), 2)), scope="all").settings()
    with pytest.raises(InputError, match=r"gives embeddings and cannot train: .* tokenize="):
        resolve(load_config("tiny", settings))


def test_a_table_without_a_caption_says_which() -> None:
    with pytest.raises(InputError, match="a table without the caption 'a"):
        setting_of(load_config("tiny", Encoder(text={"one": [1.0, 2.0]}).settings())).texts("train")


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("encoder.image=own:gone", "the image trunk 'own:gone'"),
        ("encoder.text=own:gone", "the text trunk 'own:gone'"),
        ("encoder.network=own:gone", "the network 'own:gone'"),
    ],
)
def test_what_was_given_in_another_process_loads_but_cannot_be_used(
    setting: str, what: str
) -> None:
    config = load_config("tiny", [setting])
    with pytest.raises(InputError, match=f"{what} was given in Python: give it again"):
        resolve(config)


def test_a_network_is_named_own() -> None:
    with pytest.raises(InputError, match="'mine' is no network: give one in Python, as own:NAME"):
        load_config("tiny", ["encoder.network=mine"])


def made_set(setting: Setting, path: Path) -> DistilledSet:
    pairs = setting.plain_pairs(np.arange(3), np.arange(3))
    setting.distilled(pairs).save(path)
    return DistilledSet.load(path)


def test_a_set_loads_where_its_encoder_is_not_and_says_what_to_give(tmp_path: Path) -> None:
    text_trunk("short")(lambda captions: np.array([[len(c), 1.0] for c in captions]))
    encoder = Encoder(image=drawn(Convolutions), text="own:short", scope="heads")
    settings = {**encoder.settings(), "encoder.image_head": "linear"}
    setting = setting_of(load_config("tiny", {**settings, "similarity.kind": "identity"}))
    path = tmp_path / "set.safetensors"
    made_set(setting, path)
    text_trunk("short")(lambda captions: np.array([[len(c), 2.0] for c in captions]))
    with pytest.raises(InputError, match="own:short is not the one that this was made with"):
        DistilledSet.load(path).embed(["a star"])
    OWN_TEXTS.remove("own:short")
    OWN_IMAGES.remove(settings["encoder.image"])
    there = DistilledSet.load(path)
    assert there.texts.shape == (3, 2)
    with pytest.raises(InputError, match="the text trunk 'own:short' was given in Python"):
        there.embed(["a star"])
    with pytest.raises(InputError, match=r"the image trunk 'own:\w+' was given in Python"):
        Retriever.train(there)
