"""The workbench: real pairs, encoders and experts of one configuration, each made once."""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lors.artifacts import home
from lors.config import Config
from lors.data import SOURCES, load_pairs
from lors.distilled import DistilledSet
from lors.encoders import (
    DualEncoder,
    EncodedSplit,
    FlatModel,
    Frozen,
    Standard,
    build_dual_encoder,
    build_text_trunk,
    embed_once,
)
from lors.encoders.features import cached_features
from lors.encoders.given_text import GivenText
from lors.encoders.heads import HEADS
from lors.encoders.image import (
    check_image_trunk,
    has_batch_norm,
    image_trunk,
    native_size,
    trunk_key,
)
from lors.encoders.text import check_text_trunk
from lors.encoders.transformers_text import TransformersText
from lors.errors import InputError, choose
from lors.experts import TrajectoryStore, train_expert
from lors.losses import LOSSES
from lors.matching import MATCHERS, Setting
from lors.matching.meta_gradient import META_GRADIENTS
from lors.progress import Progress, Silent
from lors.seeding import derive_seed, generator, global_seed
from lors.similarity import build_similarity
from lors.synthetic import SyntheticPairs, pairs_within

__all__ = ["Workbench", "find_device", "resolve"]


def resolve(config: Config) -> Config:
    """Fill in what depends on names, and refuse what cannot be, before any work starts.

    Raises:
        InputError: an unknown name or device, or a rank beyond the number of pairs.
    """
    choose(SOURCES, config.data.source, "data source")
    choose(HEADS, config.encoder.image_head, "head")
    choose(HEADS, config.encoder.text_head, "head")
    choose(LOSSES, config.loss, "loss")
    choose(MATCHERS, config.matching.kind, "matcher")
    choose(META_GRADIENTS, config.matching.gradient, "meta-gradient")
    check_text_trunk(config.encoder.text)
    check_image_trunk(config.encoder.image, config.encoder.image_weights)
    find_device(config.device)
    if config.similarity.kind != "fixed":  # whose size is checked when the number of pairs is known
        build_similarity(config.similarity, config.distill.budget)
    if config.data.source == "embeddings" and config.encoder.space != "features":
        raise InputError("embeddings have no pixels: start from the preset 'features'")
    size = config.encoder.image_size or native_size(config.encoder.image)
    encoder = config.encoder.model_copy(update={"image_size": size})
    return config.model_copy(update={"encoder": encoder})


class Workbench:
    """Everything a command works with.

    Args:
        config: what to work on.
        progress: who to tell about long work.
        like: a distilled set whose text trunk and standardisation to use, instead of making them
            from the data.
    """

    def __init__(
        self,
        config: Config,
        progress: Progress | None = None,
        like: DistilledSet | None = None,
    ) -> None:
        self.config = config = resolve(config)
        self.progress, self.like = progress or Silent(), like
        self.device = find_device(config.device)
        self.dtype: torch.dtype = getattr(torch, config.dtype)
        self.loss = LOSSES[config.loss]
        fitted = config.encoder.text == "lsa" or config.data.source == "embeddings"
        text_trunk = None if fitted else build_text_trunk(config.encoder, [])
        self.pairs = load_pairs(config.data, config.encoder.size(), self.progress)
        train = self.pairs.splits["train"]
        if len(train) < config.distill.budget:
            raise InputError(
                f"the training split has {len(train)} pairs, fewer than distill.budget "
                f"({config.distill.budget}): lower the budget"
            )
        if text_trunk is None and like is not None:
            text_trunk = like.text_trunk
        elif text_trunk is None and train.texts is not None:
            text_trunk = GivenText(train.texts.shape[1], self.pairs.fingerprint)
        self.text_trunk = text_trunk or build_text_trunk(config.encoder, train.captions)
        if like is not None and like.text_trunk.fingerprint != self.text_trunk.fingerprint:
            raise InputError(
                "the texts of this set are embeddings of another text trunk: evaluate it with "
                f"the one it was made with, {like.config.encoder.text!r}"
            )

    @cached_property
    def real(self) -> dict[str, EncodedSplit]:
        """The real splits as the dual encoder takes them."""
        splits = {}
        for name, split in self.pairs.splits.items():
            augmented = self.config.data.augment and name == "train"
            encoded = self._trunk is not None and not augmented
            images = self._features(name) if encoded else split.images
            splits[name] = EncodedSplit(images, self._texts(name), split.owner)
        return splits

    @cached_property
    def frozen(self) -> Frozen:
        """What all networks of this configuration share."""
        config = self.config.encoder
        if isinstance(self.text_trunk, TransformersText) and config.scope == "all":
            return Frozen(self.text_trunk.dim, text_tower=self.text_trunk.tower)
        features = self._features("train") if config.scope == "heads" else None
        trunk = self._trunk if config.space == "pixels" else None
        same_trunk = self.like is not None and self.like.image_trunk == self.image_trunk
        image_standard = self.like.image_standard if self.like and same_trunk else None
        text_standard = self.like.text_standard if self.like else None
        if config.standardise and features is not None:
            image_standard = image_standard or Standard.fit(features)
        if config.standardise:
            text_standard = text_standard or Standard.fit(self._texts("train"))
        return Frozen(
            text_dim=self.text_trunk.dim,
            feature_dim=None if features is None else features.shape[1],
            trunk=None if trunk is None else copy.deepcopy(trunk).to(dtype=self.dtype),
            image_standard=image_standard,
            text_standard=text_standard,
        )

    @cached_property
    def image_trunk(self) -> str:
        """Identifies the image trunk with its weights."""
        config = self.config.encoder
        if self.pairs.splits["train"].texts is not None:
            return f"given|{self.pairs.splits['train'].images.shape[1]}"
        return trunk_key(config.image, config.image_weights, config.size())

    @cached_property
    def _trunk(self) -> nn.Module | None:
        """The frozen image trunk, where there is one."""
        config = self.config.encoder
        if config.scope != "heads" or self.pairs.splits["train"].texts is not None:
            return None
        with global_seed(0, "trunk"):
            trunk = image_trunk(config.image, config.image_weights, config.size())
        trunk = trunk.eval().requires_grad_(False)
        return trunk.to(self.device).to(memory_format=torch.channels_last)

    def _features(self, name: str) -> np.ndarray:
        split = self.pairs.splits[name]
        if self._trunk is None:
            return split.images
        return cached_features(split, self._trunk, self.image_trunk, self.progress)

    def _texts(self, name: str) -> np.ndarray:
        split = self.pairs.splits[name]
        if split.texts is not None:
            return split.texts
        if self.config.encoder.scope == "all" and isinstance(self.text_trunk, TransformersText):
            return self.text_trunk.tokens(split.captions, self.config.encoder.text_length)
        return embed_once(self.text_trunk, split.captions, self.progress)

    def model(self, *keys: int | str) -> DualEncoder:
        """A dual encoder with initial weights drawn by the keys."""
        model = build_dual_encoder(self.config.encoder, self.frozen, derive_seed(*keys))
        return model.to(self.device, self.dtype)

    @cached_property
    def flat(self) -> FlatModel:
        """The dual encoder as a function of its parameters."""
        model = self.model("flat")
        if has_batch_norm(model):
            self.progress.say("The image trunk has batch norm: its statistics stay frozen.")
        return FlatModel(model)

    def origin(self) -> dict[str, Any]:
        """What experts depend on: another value of any of these gives other experts."""
        paths = {"space", "image_weights", "text"}
        encoder = self.config.encoder.model_dump(mode="json", exclude=paths)
        encoder["image_trunk"] = self.image_trunk
        experts = self.config.experts.model_dump(mode="json", exclude={"count", "folder"})
        return {
            "data": {
                "fingerprint": self.pairs.fingerprint,
                "augment": self.config.data.augment,
                "captions": self.config.data.captions,
            },
            "encoder": {**encoder, "text_trunk": self.text_trunk.fingerprint},
            "experts": experts,
            "dtype": self.config.dtype,
            "parameters": sum(self.flat.sides),
        }

    def experts(self) -> TrajectoryStore:
        """The experts, after training those that are missing."""
        origin = self.origin()
        digest = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:16]
        folder = self.config.experts.folder or home() / "experts" / digest
        store = TrajectoryStore(folder, origin)
        todo = store.missing(self.config.experts.count)
        real = self.real["train"]
        for expert in self.progress.track(todo, "train experts", len(todo)):
            model = self.model(self.config.experts.seed, "expert", expert)
            store.add(
                expert,
                train_expert(model, real, self.config.experts, self.config.data, expert),
            )
        return store

    def setting(self) -> Setting:
        """What matchers build on."""
        return Setting(self.config, self.flat, self.loss, self.real["train"], self.experts)

    def start(self) -> SyntheticPairs:
        """Synthetic pairs before distillation, as many as the budget holds."""
        config = self.config
        images, texts = self._real_pairs(config.distill.budget, "start")
        numbers = images[0].numel() + texts[0].numel()
        count = pairs_within(config.distill.budget, numbers, config.similarity)
        images, texts = images[:count], texts[:count]
        draw = generator(config.seed, "similarity")
        similarity = build_similarity(config.similarity, count, draw)
        if config.distill.init == "noise":
            draw = generator(config.seed, "noise")
            images = torch.randn(images.shape, generator=draw).to(images)
            texts = torch.randn(texts.shape, generator=draw).to(texts)
        rates = (config.distill.inner_rate, config.distill.inner_rate)
        pairs = SyntheticPairs(images, texts, similarity, rates)
        return pairs.to(self.device, self.dtype)

    def random_pairs(self, draw: int, rate: float) -> SyntheticPairs:
        """As many real pairs as the budget holds, with the identity similarity."""
        images, texts = self._real_pairs(self.config.distill.budget, "random pairs", draw)
        return SyntheticPairs(images, texts, rates=(rate, rate)).to(self.device, self.dtype)

    def distilled(self, pairs: SyntheticPairs) -> DistilledSet:
        """Pack synthetic pairs with what is needed to train on them."""
        model, frozen = self.flat.model, self.frozen
        return DistilledSet(
            pairs,
            self.config,
            self.text_trunk,
            model.mean,
            model.std,
            self.image_trunk,
            frozen.image_standard,
            frozen.text_standard,
        )

    def _real_pairs(self, count: int, *keys: int | str) -> tuple[Tensor, Tensor]:
        """Drawn real pairs, as synthetic pairs are: pixels or features, embeddings."""
        model, real = self.flat.model, self.real["train"]
        pixels = self.config.encoder.space == "pixels"
        split = self.pairs.splits["train"]
        source = EncodedSplit(split.images, real.texts, real.owner) if pixels else real
        rng = np.random.default_rng(derive_seed(self.config.seed, *keys))
        chosen = rng.choice(len(real), count, replace=False)
        texts = source.captions(source.draw_captions(chosen, rng), model)
        if not texts.is_floating_point():
            texts = model.text[0].embed_tokens(texts)  # type: ignore[index]
        return source.normalised(chosen, model), texts


def find_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is a GPU if there is one.

    Raises:
        InputError: it is not available here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(
            f"device {name!r} is not available here: set device=auto or device=cpu"
        ) from None
