"""The workbench: real pairs, encoders and experts of one configuration, each made once."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any

import numpy as np
import torch

from lors.artifacts import home
from lors.config import Config
from lors.data import SOURCES, load_pairs
from lors.distilled import DistilledSet
from lors.encoders import DualEncoder, FlatModel, TextTrunk, build_dual_encoder, fit_once
from lors.encoders.encoded import EncodedSplit, encode_split
from lors.encoders.heads import HEADS
from lors.encoders.image import check_image_trunk
from lors.encoders.text import TEXT_TRUNKS
from lors.errors import InputError, choose
from lors.experts import TrajectoryStore, train_expert
from lors.losses import LOSSES
from lors.matching import MATCHERS, Setting
from lors.matching.meta_gradient import META_GRADIENTS
from lors.progress import Progress, Silent
from lors.seeding import derive_seed, generator
from lors.similarity import build_similarity
from lors.synthetic import SyntheticPairs, pairs_within

__all__ = ["Workbench", "check"]


def check(config: Config) -> None:
    """Refuse names and devices that do not exist, before any work starts."""
    choose(SOURCES, config.data.source, "data source")
    choose(TEXT_TRUNKS, config.encoder.text, "text trunk")
    choose(HEADS, config.encoder.image_head, "head")
    choose(HEADS, config.encoder.text_head, "head")
    choose(LOSSES, config.loss, "loss")
    choose(MATCHERS, config.matching.kind, "matcher")
    choose(META_GRADIENTS, config.matching.gradient, "meta-gradient")
    check_image_trunk(config.encoder.image, config.encoder.image_weights)
    _device(config.device)
    build_similarity(config.similarity, _pair_count(config))


class Workbench:
    """Everything a command works with.

    Args:
        config: what to work on.
        progress: who to tell about long work.
        text_trunk: use this one, e.g. a distilled set's, instead of fitting one.
    """

    def __init__(
        self,
        config: Config,
        progress: Progress | None = None,
        text_trunk: TextTrunk | None = None,
    ) -> None:
        check(config)
        self.config, self.progress = config, progress or Silent()
        self.device = _device(config.device)
        self.dtype: torch.dtype = getattr(torch, config.dtype)
        self.loss = LOSSES[config.loss]
        self.pairs = load_pairs(config.data, config.encoder.image_size, self.progress)
        train = self.pairs.splits["train"]
        if len(train) < config.distill.budget:
            raise InputError(
                f"the training split has {len(train)} pairs, fewer than distill.budget "
                f"({config.distill.budget}): lower the budget"
            )
        self.text_trunk = text_trunk or fit_once(config.encoder, train.captions)

    def model(self, *keys: int | str) -> DualEncoder:
        """A dual encoder with initial weights drawn by the keys."""
        model = build_dual_encoder(self.config.encoder, self.text_trunk.dim, derive_seed(*keys))
        return model.to(self.device, self.dtype)

    @cached_property
    def flat(self) -> FlatModel:
        """The dual encoder as a function of its parameters."""
        return FlatModel(self.model("flat"))

    @cached_property
    def real(self) -> dict[str, EncodedSplit]:
        """The real splits as the dual encoder takes them."""
        trains_trunk = self.config.encoder.scope != "heads"
        return {
            name: encode_split(
                split,
                self.text_trunk,
                self.flat.model,
                trains_trunk or (self.config.data.augment and name == "train"),
                self.progress,
            )
            for name, split in self.pairs.splits.items()
        }

    def origin(self) -> dict[str, Any]:
        """What experts depend on: another value of any of these gives other experts."""
        encoder = self.config.encoder.model_dump(mode="json")
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
        for expert in self.progress.track(todo, "train experts", len(todo)):
            model = self.model(self.config.experts.seed, "expert", expert)
            store.add(
                expert,
                train_expert(
                    model, self.real["train"], self.config.experts, self.config.data, expert
                ),
            )
        return store

    def setting(self) -> Setting:
        """What matchers build on."""
        return Setting(self.config, self.flat, self.loss, self.real["train"], self.experts)

    def start(self) -> SyntheticPairs:
        """Synthetic pairs before distillation, as many as the budget holds."""
        config = self.config
        count = _pair_count(config)
        draw = generator(config.seed, "similarity")
        similarity = build_similarity(config.similarity, count, draw)
        images, texts = self._real_pairs(count, "start")
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
        model = self.flat.model
        return DistilledSet(pairs, self.config, self.text_trunk, model.mean, model.std)

    def _real_pairs(self, count: int, *keys: int | str) -> tuple[torch.Tensor, torch.Tensor]:
        split = self.pairs.splits["train"]
        pixels = EncodedSplit(split.images, self.real["train"].texts, split.owner)
        rng = np.random.default_rng(derive_seed(self.config.seed, *keys))
        chosen = rng.choice(len(split), count, replace=False)
        captions = pixels.draw_captions(chosen, rng)
        model = self.flat.model
        return pixels.normalised(chosen, model), pixels.captions(captions, model)


def _pair_count(config: Config) -> int:
    numbers = 3 * config.encoder.image_size**2 + config.encoder.text_dim
    return pairs_within(config.distill.budget, numbers, config.similarity)


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(
            f"device {name!r} is not available here: set device=auto or device=cpu"
        ) from None
