"""One thing of each kind, as a user writes them: no part of lors, and of no package."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image
from pydantic import Field
from torch import Tensor, nn

from lors.config import DataConfig, EncoderConfig, MatchingOptions, SimilarityConfig
from lors.config.registering import loss, matcher, register
from lors.data.pairs import Item
from lors.matching.matcher import add_gradients, whole_set
from lors.selection import Choice, Pool
from lors.selection.candidates import check_count
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.similarity import Similarity
from lors.starts import Material, Start
from lors.system.progress import Progress
from lors.system.seeding import draw_seed


@loss("toy-loss")
def squared(logits: Tensor, similarity: Tensor) -> Tensor:
    """Cosines should be the similarity."""
    return (0.07 * logits - similarity).square().sum() / len(logits)


@register("similarity", "toy-similarity")
class OneWeight(Similarity):
    """S = w I with one weight for all pairs."""

    def __init__(self, pairs: int) -> None:
        super().__init__(pairs)
        self.weight = nn.Parameter(torch.ones(()))

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return 1

    def forward(self, index: Tensor) -> Tensor:
        return self.weight * torch.eye(len(index)).to(self.weight)


@matcher("mine", loss="toy-loss", similarity="toy-similarity", label="Mine", about="A toy.")
class ToyMatcher:
    """Mean embeddings of fresh networks should be alike, and S should not grow."""

    class Options(MatchingOptions):
        """A toy's."""

        strength: float = Field(1.0, gt=0, description="of the weight of S")

    def __init__(self, setting: Setting, options: Options) -> None:
        self.setting, self.options, self.state = setting, options, dict[str, Tensor]()

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        model = self.setting.model(draw_seed(generator)).requires_grad_(False)
        inputs, texts = self.setting.real_batch(generator, 30)
        batch = whole_set(synthetic, model)
        u = model.embed_images(inputs).mean(0) - model.embed_images(batch.inputs).mean(0)
        v = model.embed_texts(texts).mean(0) - model.embed_texts(batch.texts).mean(0)
        weight = self.options.strength * batch.similarity.square().mean()
        objective = u.square().sum() + v.square().sum() + weight
        add_gradients(objective, synthetic)
        return objective.item()


@register("start", "toy-start")
def last(material: Material) -> Start:
    """The last of the drawn pairs."""
    images, captions = (part[-material.count :] for part in material.drawn)
    return material.start(images, captions)


@register("selection", "toy-selection")
def every_other(pool: Pool, count: int) -> Choice:
    """Every other pair, then the rest."""
    check_count(count, len(pool))
    order = np.argsort(np.arange(len(pool)) % 2, kind="stable")
    return order[:count], np.zeros(count)


@register("head", "toy-head")
def two_layers(inputs: int, outputs: int) -> nn.Module:
    """Without the shortcut of the MLP head."""
    return nn.Sequential(nn.Linear(inputs, 12), nn.Tanh(), nn.Linear(12, outputs))


@register("text trunk", "toy-words")
class Words:
    """Counts of the words that the training captions have: fitted."""

    fitted: ClassVar[bool] = True
    trains: ClassVar[bool] = False

    def __init__(self, words: list[str]) -> None:
        self.words, self.dim = words, len(words)
        self.fingerprint = hashlib.sha256(repr(words).encode()).hexdigest()

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> Words:
        return cls(sorted({word for caption in captions for word in caption.split()}))

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> Words:
        return cls([str(word) for word in header["words"]])

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"words": self.words}, {}

    def embed(self, captions: Sequence[str], progress: Progress) -> np.ndarray:
        counts = [[caption.split().count(word) for word in self.words] for caption in captions]
        return np.array(counts, np.float32)


@register("text trunk", "toy-letters")
class Letters:
    """Counts of letters, of an alphabet by name: pretrained."""

    fitted: ClassVar[bool] = False
    trains: ClassVar[bool] = False

    def __init__(self, alphabet: str) -> None:
        self.alphabet, self.dim, self.fingerprint = alphabet, len(alphabet), f"letters {alphabet}"

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> Letters:
        return cls({"latin": "abcdefghijklmnopqrstuvwxyz", "vowels": "aeiou"}[name])

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> Letters:
        return cls(str(header["alphabet"]))

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"alphabet": self.alphabet}, {}

    def embed(self, captions: Sequence[str], progress: Progress) -> np.ndarray:
        counts = [[caption.count(letter) for letter in self.alphabet] for caption in captions]
        return np.array(counts, np.float32)


COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200), "grey": (90, 90, 90)}
SIZES = {"small": 4, "large": 12}


@register("source", "toy-source")
def coloured_squares(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """Squares in a corner; a plain function is a source."""
    kinds = [(colour, size, x) for colour in COLOURS for size in SIZES for x in range(10)]
    order = np.random.default_rng(config.seed).permutation(len(kinds))
    return {"train": [_item(*kinds[i]) for i in order]}


def _item(colour: str, size: str, x: int) -> Item:
    captions = (f"a {size} {colour} square", f"{colour} and {size} number {x}")
    return Item(f"square|{colour}|{size}|{x}", captions, partial(_draw, colour, size, x))


def _draw(colour: str, size: str, x: int) -> Image.Image:
    image = Image.new("RGB", (24, 24), (255, 255, 255))
    image.paste(COLOURS[colour], (x, 2, x + SIZES[size], 2 + SIZES[size]))
    return image
