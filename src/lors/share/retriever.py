"""The retriever: a dual encoder trained on a distilled set, kept to find photos by words."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor, nn

from lors.config import EncoderConfig
from lors.data.decoded import item_pixels
from lors.data.images import decode_image
from lors.data.pairs import Item
from lors.data.shards import Features
from lors.encoders import DualEncoder, Frozen, Standard, TextTrunk, build_dual_encoder
from lors.encoders.given_text import GivenText
from lors.encoders.image import feature_size, frozen_trunk, normalisation
from lors.encoders.text import kind_of, restore_text_trunk, training_text
from lors.evaluation.protocol import train_on
from lors.evaluation.references import full_data_model
from lors.files import artifacts
from lors.files.headers import restoring
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.devices import find_device
from lors.system.errors import InputError
from lors.system.progress import Silent
from lors.system.seeding import derive_seed

__all__ = ["Retriever"]

KIND = "retriever"


@dataclass(frozen=True)
class Retriever:
    """A trained dual encoder with its text trunk: photos and words in one space.

    >>> import tempfile, lors
    >>> from PIL import Image
    >>> colours, folder = ["red", "green", "blue"] * 20, tempfile.TemporaryDirectory()
    >>> walls = [Image.new("RGB", (16, 16), colour) for colour in colours]
    >>> for wall, colour in zip(walls[:3], colours): wall.save(f"{folder.name}/{colour}.png")
    >>> small = lors.distill(walls, [f"a {colour} wall" for colour in colours], pairs=12,
    ...     encoder=lors.Encoder(image="nf_resnet_tiny", image_weights="none", image_size=16,
    ...                          text="lsa"),
    ...     experts={"count": 1, "epochs": 2}, iterations=2, rank=2, text_dim=4, progress=False)
    >>> retriever = Retriever.train(small)
    >>> [(path.name, score > 0) for path, score in retriever.search("green", folder.name, count=1)]
    [('green.png', True)]
    >>> retriever.save(f"{folder.name}/retriever.safetensors")
    >>> folder.cleanup()

    It is made on the CPU; ``retriever.model.to("cuda")`` moves it.

    Args:
        model: takes photos as pixels, also where it was trained on features.
        encoder: how the model is built.
        text_trunk: embeds words for the model's text side.
        made_from: identifies the set or the data that it was trained on, where that is known.
    """

    model: DualEncoder
    encoder: EncoderConfig
    text_trunk: TextTrunk
    made_from: str = ""

    @classmethod
    def train(cls, distilled: DistilledSet, seed: int = 0, device: str = "auto") -> Retriever:
        """Train a network on a set alone, by the protocol that it was made for.

        Args:
            distilled: what to train on.
            seed: draws the initial weights and the order of the pairs.
            device: where to train.

        Raises:
            InputError: the set was made of given embeddings, or its image trunk is not here.
        """
        config, trunk = distilled.config, distilled.text_trunk
        _refuse_given(trunk)
        standards = (distilled.image_standard, distilled.text_standard)
        sees = distilled.frozen_trunk() if config.encoder.looks_through_frozen() else None
        features = config.encoder.space == "features"
        keys = (seed, KIND)
        frozen = _frozen(trunk, config.encoder, sees, *standards)
        model = build_dual_encoder(config.encoder, frozen, derive_seed(*keys))
        if features:
            model.trunk, model.mean, model.std = None, (), ()  # what it trains on has been through
        model.to(where := find_device(device), distilled.pairs.images.dtype)
        old = distilled.pairs
        images, texts = distilled.images_for(model), old.texts.detach()
        pairs = SyntheticPairs(images, texts, copy.deepcopy(old.similarity), old.rates.tolist())
        pairs.to(where)
        train_on(pairs, model, distilled.loss, config.evaluate, *keys)
        if features and sees is not None:
            model.trunk, (model.mean, model.std) = sees, normalisation(sees)
        return cls(model.cpu().float().requires_grad_(False), config.encoder, trunk)

    @classmethod
    def of_full_data(cls, setting: Setting) -> Retriever:
        """A network trained on all real pairs of a setting: its first expert, at its best epoch.

        The epoch is chosen on val. An expert that the cache has is not trained again.

        Raises:
            InputError: the data are given embeddings.
        """
        _refuse_given(setting.text_trunk)
        model, encoder = full_data_model(setting), setting.config.encoder
        if encoder.scope == "heads":
            sees = frozen_trunk(encoder, torch.device("cpu"))
            model.trunk, (model.mean, model.std) = sees, normalisation(sees)
        return cls(model.cpu().float().requires_grad_(False), encoder, setting.text_trunk)

    def embed_photos(self, photos: Sequence[str | Path], batch: int = 64) -> Tensor:
        """Image files in the joint space, normalised. Shape: (M, d)

        Raises:
            InputError: a file is not there, or is no image.
        """
        size, parts = self.encoder.size(), []
        for start in range(0, len(photos), batch):
            pixels = [_pixels(Path(photo), size) for photo in photos[start : start + batch]]
            parts.append(self.embed_pixels(np.stack(pixels)))
        if not parts:
            raise InputError("give one or more photos")
        return torch.cat(parts)

    @torch.no_grad()
    def embed_pixels(self, pixels: Features, batch: int = 64) -> Tensor:
        """Decoded images in the joint space. Shape: (M, 3, size, size), uint8 -> (M, d)"""
        model, device = self.model, self._device
        parts = []
        for start in range(0, len(pixels), batch):
            some = torch.from_numpy(np.array(pixels[start : start + batch])).to(device)
            parts.append(model.embed_images(model.freeze(model.normalise(some))))
        return torch.cat(parts)

    @torch.no_grad()
    def embed_texts(self, texts: Sequence[str]) -> Tensor:
        """Words in the joint space, normalised. Shape: (C, d)"""
        if isinstance(texts, str) or not texts:
            raise InputError("give a list of one or more texts")
        trunk, model = self.text_trunk, self.model
        training = training_text(trunk, self.encoder.scope)
        if training is not None:
            tokens = torch.from_numpy(training.tokens(texts, self.encoder.text_length))
            return model.embed_texts(tokens.to(self._device, torch.long))
        embedded = torch.from_numpy(trunk.embed(texts, Silent())).to(self._device)
        return model.embed_texts(model.text_standard(embedded))

    @overload
    def search(self, query: str, photos: Tensor, count: int = 5) -> list[tuple[int, float]]: ...

    @overload
    def search(
        self, query: str, photos: str | Path | Sequence[str | Path], count: int = 5
    ) -> list[tuple[Path, float]]: ...

    def search(
        self, query: str, photos: Tensor | str | Path | Sequence[str | Path], count: int = 5
    ) -> Any:
        """The photos that fit a query best, with their cosines, best first.

        Args:
            query: in words.
            photos: a folder, at any depth; a list of image files; or embeddings as
                ``embed_photos`` gives them. Shape: (M, d)
            count: how many to find.

        Returns:
            The files, or the rows of the embeddings.

        Raises:
            InputError: there are no photos, or a listed file cannot be read. Of a folder, files
                that cannot be read are skipped.
        """
        if isinstance(photos, Tensor):
            return self._nearest(query, photos, count)
        if isinstance(photos, (str, Path)):
            from lors.share.search.finder import Finder  # which is made of retrievers

            matches = Finder.of_folder(photos, {"": self}).find(query, count)[""]
            return [(Path(photos) / match.name, match.score) for match in matches]
        files = [Path(photo) for photo in photos]
        found = self._nearest(query, self.embed_photos(files), count)
        return [(files[row], cosine) for row, cosine in found]

    def _nearest(self, query: str, photos: Tensor, count: int) -> list[tuple[int, float]]:
        cosines = photos @ self.embed_texts([query])[0]
        best = cosines.topk(min(count, len(cosines)))
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def save(self, path: str | Path) -> None:
        """Write one safetensors file; of a text trunk that has a name, only the name."""
        trunk_header, trunk_tensors = self.text_trunk.state()
        encoder = self.encoder.model_copy(update={"image_weights": None})  # they are in the file
        header = {
            "encoder": encoder.model_dump(mode="json"),
            "text_trunk": {"kind": kind_of(self.text_trunk), **trunk_header},
            "versions": artifacts.versions(),
            "made_from": self.made_from,
        }
        tensors = {f"model.{k}": t.clone() for k, t in self.model.state_dict().items()}
        tensors |= {f"text_trunk.{k}": t for k, t in trunk_tensors.items()}
        artifacts.save(Path(path), KIND, header, tensors)

    @classmethod
    def load(cls, path: str | Path) -> Retriever:
        """Read a retriever.

        Raises:
            InputError: the file is absent, damaged, or of a newer format.
        """
        header, tensors = artifacts.load(Path(path), KIND)
        with restoring(path):
            return cls._restore(header, tensors)

    @classmethod
    def _restore(cls, header: dict[str, Any], tensors: dict[str, Tensor]) -> Retriever:
        encoder, saved = EncoderConfig.model_validate(header["encoder"]), header["text_trunk"]
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "text_trunk": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        weights = parts["model"]
        trunk = restore_text_trunk(saved["kind"], encoder, saved, parts["text_trunk"])
        training = training_text(trunk, encoder.scope)
        blank = trunk if training is None else training.without_weights()  # they are here

        def build() -> DualEncoder:
            sees, dims = None, {"text_standard": trunk.dim}
            if encoder.looks_through_frozen():
                bare = encoder.model_copy(update={"image_weights": None})
                sees = frozen_trunk(bare, torch.empty(0).device)
            if encoder.scope == "heads" and sees is not None:
                dims["image_standard"] = feature_size(sees)
            standards = {
                name: Standard(torch.zeros(dim), torch.ones(()))
                for name, dim in dims.items()
                if f"{name}.mean" in weights
            }
            frozen = _frozen(blank, encoder, sees, **standards)
            return build_dual_encoder(encoder, frozen, seed=0)

        with torch.device("meta"):  # takes no memory for what a header merely claims
            expected = {name: t.shape for name, t in build().state_dict().items()}
        found = {name: t.shape for name, t in weights.items()}
        if found != expected:
            wrong = min(set(found.items()) ^ set(expected.items()))
            raise ValueError(f"the weights do not fit the network: see {wrong[0]!r}")
        model = build()
        model.load_state_dict(weights)
        return cls(model.requires_grad_(False), encoder, trunk, header["made_from"])


def _refuse_given(trunk: TextTrunk) -> None:
    if isinstance(trunk, GivenText):
        raise InputError(
            "a set of given embeddings names no trunks that could embed photos and words: "
            "train on it with lors.train_on"
        )


def _frozen(
    trunk: TextTrunk,
    encoder: EncoderConfig,
    sees: nn.Module | None,
    image_standard: Standard | None = None,
    text_standard: Standard | None = None,
) -> Frozen:
    """What does not train, without any data."""
    training = training_text(trunk, encoder.scope)
    if training is not None:
        return Frozen(training.dim, trunk=sees, text_tower=training.tower)
    dim = None if sees is None or encoder.scope != "heads" else feature_size(sees)
    return Frozen(trunk.dim, dim, sees, image_standard, text_standard)


def _pixels(photo: Path, size: int) -> np.ndarray:
    """A photo as those of the training data are seen. Shape: (3, size, size), uint8"""
    if not photo.is_file():
        raise InputError(f"there is no photo {str(photo)!r}")
    return item_pixels(Item(str(photo), (), partial(decode_image, photo, str(photo))), size)
