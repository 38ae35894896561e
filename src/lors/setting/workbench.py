"""The workbench: real pairs, encoders and experts of one configuration, each made once."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lors.config import Config, SimilarityConfig
from lors.data import find_pairs
from lors.data.cache import cache_errors, cached_array, fingerprint
from lors.data.shards import Features
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
from lors.encoders.encoded import mean_captions
from lors.encoders.features import cached_features
from lors.encoders.folding import folded
from lors.encoders.given_text import GivenText
from lors.encoders.image import frozen_trunk, has_batch_norm, trunk_key
from lors.encoders.scorer import given_embeddings, open_clip_embeddings
from lors.encoders.transformers_text import TransformersText
from lors.experts import Snapshot, TrajectoryStore, train_expert, train_missing
from lors.files.arrays import read_array
from lors.files.artifacts import home
from lors.losses import LOSSES
from lors.matching import MATCHERS, Matcher, Setting
from lors.selection import SELECTIONS, Candidates, Choice, Pool
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs, pairs_within
from lors.setting.resolve import find_device, resolve
from lors.similarity import Fixed, LowRank, Similarity, build_similarity
from lors.starts import INITIALS, Material, Start
from lors.starts.material import Real
from lors.system import ranks
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.seeding import derive_seed, generator

__all__ = ["Workbench"]


class Workbench:
    """Everything a command works with.

    Args:
        config: what to work on.
        progress: who to tell about long work.
        like: a distilled set whose text trunk and standardisation to use, instead of making them
            from the data.
        data_parallel: whether the ranks divide every batch of experts and of matching, instead of
            dividing experts and trajectories.
    """

    def __init__(
        self,
        config: Config,
        progress: Progress | None = None,
        like: DistilledSet | None = None,
        data_parallel: bool = False,
    ) -> None:
        self.config = config = resolve(config)
        self.progress, self.like = progress or Silent(), like
        self._data_parallel = data_parallel
        self.device = find_device(config.device)
        self.dtype: torch.dtype = getattr(torch, config.dtype)
        self.loss = LOSSES[config.loss]
        fitted = config.encoder.text == "lsa" or config.data.source == "embeddings"
        # A mistake in the data or the text trunk shows first.
        decode = find_pairs(config.data, self.progress)
        text_trunk = None if fitted else build_text_trunk(config.encoder, [])
        self.pairs = decode(config.encoder.size())
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
            image_standard = image_standard or Standard.fit(features, "image features")
        if config.standardise:
            text_standard = text_standard or Standard.fit(self._texts("train"), "text embeddings")
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
        return folded(frozen_trunk(config, self.device), config.size())

    def _features(self, name: str) -> Features:
        split = self.pairs.splits[name]
        if self._trunk is None:
            return split.images
        return cached_features(split, self._trunk, self.image_trunk, self.progress)

    def _texts(self, name: str) -> Features:
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
        experts = self.config.experts.model_dump(
            mode="json", exclude={"count", "folder", "compact"}, exclude_none=True
        )
        if self.config.experts.compact:
            experts["epochs_kept"] = self.config.expert_snapshots()
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
        compact = self.config.experts.compact
        store = TrajectoryStore(folder, origin, self.config.expert_snapshots() if compact else None)
        count, epochs = self.config.experts.count, self.config.experts.epochs
        together = self.data_parallel
        with cache_errors(folder):
            train_missing(store, count, epochs, self._snapshots, self.progress, together=together)
        store.tidy()
        return store

    @property
    def data_parallel(self) -> bool:
        """Whether the ranks divide batches now: not where there is one, or each works alone."""
        return self._data_parallel and ranks.size() > 1

    def _snapshots(self, expert: int, begun: Sequence[Snapshot]) -> Iterator[Snapshot]:
        config = self.config
        model = self.model(config.experts.seed, "expert", expert)
        model.divided = self.data_parallel
        real = self.real["train"]
        return train_expert(model, real, config.experts, config.data, expert, begun)

    def setting(self) -> Setting:
        """What matchers build on."""
        real = self.real["train"]
        say = self.progress.say
        return Setting(
            self.config,
            self.flat,
            self.loss,
            real,
            self.experts,
            self.model,
            say,
            self.data_parallel,
        )

    def matcher(self) -> Matcher:
        """What compares synthetic data with real data."""
        if self.data_parallel and self.config.matching.kind != "trajectory":
            raise InputError(
                f"matching.kind={self.config.matching.kind} cannot divide a batch between ranks: "
                "leave out --data-parallel, and the ranks divide the iterations' trajectories"
            )
        return MATCHERS[self.config.matching.kind](self.setting())

    def start(self) -> SyntheticPairs:
        """Synthetic pairs before distillation, as many as the budget holds."""
        config = self.config.distill
        images, texts, real = self._initial
        similarity = self._similarity(len(images), real)
        rates = (config.inner_rate, config.inner_text_rate or config.inner_rate)
        pairs = SyntheticPairs(images.clone(), texts.clone(), similarity, rates)
        return pairs.to(self.device, self.dtype)

    @cached_property
    def _initial(self) -> Start:
        """What the initialiser makes."""
        if self.data_parallel:
            self.experts()  # which some starts need, and alone no rank could train
        with ranks.alone():  # all ranks make the same
            return INITIALS[self.config.distill.init](self._material())

    def _material(self) -> Material:
        """What synthetic pairs may start from."""
        config, real = self.config, self.real["train"]
        rng = np.random.default_rng(derive_seed(config.seed, "start"))
        drawn = rng.choice(len(real), config.distill.budget, replace=False)
        captions = real.draw_captions(drawn, rng)
        one = self._pairs_at(drawn[:1], captions[:1])
        numbers = sum(part.numel() for part in one)

        def candidates() -> tuple[Candidates, np.ndarray]:
            each = real.draw_captions(np.arange(len(real)), rng)
            return Candidates(*self._joint_features, each), each

        def averaged() -> Candidates:
            images, texts = self._joint_features
            if len(texts) > len(real):
                texts = mean_captions(texts[:], real.owner)
            return Candidates(images, texts, np.arange(len(real)))

        def select(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
            (chosen, _), each = self.select(kind, count, "start")
            return chosen, each

        return Material(
            count=pairs_within(
                config.distill.budget, numbers, config.similarity, config.most_pairs()
            ),
            drawn=(drawn, captions),
            features=config.encoder.space == "features",
            frozen=config.encoder.scope == "heads",
            tensors=self._pairs_at,
            encode=self._encoded,
            select=select,
            candidates=candidates,
            averaged=averaged,
            generator=generator(config.seed, "noise"),
        )

    def select(self, kind: str, count: int, *keys: int | str) -> tuple[Choice, np.ndarray]:
        """Choose real pairs, each an image with a drawn one of its captions.

        Args:
            kind: a name in ``SELECTIONS``.
            count: how many.
            keys: seed everything random.

        Returns:
            The images chosen with their scores, and the caption of each. Shape: (count,)
        """
        real = self.real["train"]
        rng = np.random.default_rng(derive_seed(self.config.seed, "selection", *keys))
        captions = real.draw_captions(np.arange(len(real)), rng)
        pool = Pool(
            size=len(real),
            candidates=lambda: Candidates(*self._joint_features, captions),
            learned=self._learned,
            embeddings=lambda: (*self._scorer_embeddings, captions),
            rng=rng,
        )
        chosen, scores = SELECTIONS[kind](pool, count)
        return (chosen, scores), captions[chosen]

    def plain_pairs(self, images: np.ndarray, captions: np.ndarray) -> SyntheticPairs:
        """Real pairs as a set to train on, with the identity similarity."""
        return SyntheticPairs(*self._pairs_at(images, captions)).to(self.device, self.dtype)

    def _learned(self) -> list[np.ndarray]:
        store = self.experts()
        return [store.learned(expert) for expert in range(self.config.experts.count)]

    def _similarity(self, count: int, real: Real | None) -> Similarity:
        """S at the start, for pairs that stand for these real ones."""
        config = self.config.similarity
        if config.kind != "fixed":
            built = build_similarity(config, count, generator(self.config.seed, "similarity"))
            if isinstance(built, LowRank) and self.config.matching.phases:
                built.divide(len(self.config.matching.phases))
            return built
        if config.values is not None:
            return Fixed(count, _read_similarity(config.values))
        if real is None:
            raise InputError(
                f"the scorer compares real pairs, and distill.init={self.config.distill.init} "
                "makes others: set distill.init=real, or give similarity.values"
            )
        u, v = self._scorer_embeddings
        return Fixed(count, _calibrated(_unit(u[real[0]]) @ _unit(v[real[1]]).T))

    @cached_property
    def _joint_features(self) -> tuple[Features, Features]:
        """What selection compares pairs by: frozen features, or embeddings where a trunk trains."""
        if self.config.encoder.scope == "heads":
            return self._features("train"), self._texts("train")
        return self._expert_embeddings

    @cached_property
    def _scorer_embeddings(self) -> tuple[Features, Features]:
        """The training split in the scorer's joint space. Shapes: (M, e), (C, e)"""
        if self.config.scorer == "expert":
            return self._expert_embeddings
        split = self.pairs.splits["train"]
        if self.config.scorer == "given":
            return given_embeddings(split)
        return open_clip_embeddings(self.config.scorer, split, self.device, self.progress)

    @cached_property
    def _expert_embeddings(self) -> tuple[Features, Features]:
        """The training split in the first expert's joint space, from the cache."""
        store, real = self.experts(), self.real["train"]

        def embed() -> np.ndarray:
            model = self.model("scorer")
            theta = store.snapshots(0, [self.config.experts.epochs])[0]
            self.flat.load(theta.to(self.device, self.dtype), model)
            return torch.cat(real.embed(model)).float().cpu().numpy()

        name = fingerprint("expert", json.dumps(store.origin, sort_keys=True))
        both = cached_array(home() / "features" / f"{name}.npy", embed, self.progress)
        return both[: len(real)], both[len(real) :]

    def distilled(
        self,
        pairs: SyntheticPairs,
        loss: str | None = None,
        similarity: SimilarityConfig | None = None,
    ) -> DistilledSet:
        """Pack pairs with what is needed to train on them.

        Args:
            pairs: distilled or selected.
            loss: the one to train with, if not the configuration's.
            similarity: the kind they have, if not the configuration's.
        """
        model, frozen = self.flat.model, self.frozen
        changes = {
            "loss": loss or self.config.loss,
            "similarity": similarity or self.config.similarity,
            "trackers": (),  # who watched is no part of a set
        }
        return DistilledSet(
            pairs,
            self.config.model_copy(update=changes),
            self.text_trunk,
            model.mean,
            model.std,
            self.image_trunk,
            frozen.image_standard,
            frozen.text_standard,
        )

    def _pairs_at(self, images: np.ndarray, captions: np.ndarray) -> tuple[Tensor, Tensor]:
        """Real pairs as synthetic pairs are: pixels or features, and text embeddings."""
        model, real = self.flat.model, self.real["train"]
        pixels = self.config.encoder.space == "pixels"
        split = self.pairs.splits["train"]
        source = EncodedSplit(split.images, real.texts, real.owner) if pixels else real
        texts = source.captions(captions, model)
        if not texts.is_floating_point():
            texts = model.text[0].embed_tokens(texts)  # type: ignore[index]
        return source.normalised(images, model), texts

    def _encoded(self, images: np.ndarray, texts: np.ndarray) -> tuple[Tensor, Tensor]:
        """Features of both frozen trunks as the heads take them."""
        model = self.flat.model
        like = next(model.parameters())
        x, y = (torch.from_numpy(part).to(like) for part in (images, texts))
        return model.image_standard(x), model.text_standard(y)


def _unit(embeddings: np.ndarray) -> Tensor:
    return F.normalize(torch.from_numpy(np.array(embeddings)).float(), dim=1)


def _calibrated(cosines: Tensor) -> Tensor:
    """Cosines shifted and scaled so that pairs average 1 and non-pairs 0, as in S = I.

    A CLIP's cosines of true pairs are about 0.3; as they are, none would count as positive.
    """
    count = len(cosines)
    pairs = cosines.diagonal().mean()
    others = (cosines.sum() - cosines.diagonal().sum()) / max(1, count * (count - 1))
    if not pairs > others:
        raise InputError(
            "the scorer sees pairs no nearer to each other than non-pairs: choose another scorer, "
            "or train experts for longer"
        )
    return (cosines - others) / (pairs - others)


def _read_similarity(path: Path) -> Tensor:
    values = read_array(path)
    real = values.astype(np.float32) if values.dtype.kind in "fiu" else None
    if real is None or not np.isfinite(real).all():
        raise InputError("similarity.values must be an .npy array of finite numbers")
    return torch.from_numpy(real)
