"""The setting: what one configuration works on, each part made once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from lors.config import Config, SimilarityConfig
from lors.data import SOURCES, Decoded, Pairs
from lors.data.captions import worded
from lors.data.shards import Features
from lors.encoders import (
    DualEncoder,
    EncodedSplit,
    FlatModel,
    Frozen,
    Standard,
    TextTrunk,
    build_dual_encoder,
    build_text_trunk,
    embed_once,
)
from lors.encoders.downloads import announce_downloads
from lors.encoders.features import cached_features
from lors.encoders.folding import folded
from lors.encoders.given_text import GivenText
from lors.encoders.image import feature_size, frozen_trunk, given_key, trunk_key
from lors.encoders.own import check_network, network_key
from lors.encoders.text import text_trunk_class, training_text
from lors.files.artifacts import home
from lors.files.cache import cached_array
from lors.losses import LOSSES
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting.memory import Networks
from lors.setting.resolve import NO_PIXELS, OTHER_TEXTS, resolve, small_budget
from lors.system import ranks
from lors.system.devices import find_device
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.seeding import derive_seed, draw_seed, global_seed

__all__ = ["Setting", "setting_of"]


def setting_of(
    config: Config,
    progress: Progress | None = None,
    like: DistilledSet | None = None,
    data_parallel: bool = False,
    pairs: Pairs | Decoded | None = None,
) -> Setting:
    """The setting of a configuration that was not resolved yet; see ``Setting``."""
    return Setting(resolve(config), progress, like, data_parallel, pairs)


class Setting:
    """Real pairs, encoders and networks of one configuration. Matchers of your own work with it.

    >>> setting = setting_of(lors.load_config("tiny"))
    >>> setting.model("mine")(*setting.real_batch(torch.Generator(), 32)).shape  # logits
    torch.Size([32, 32])

    Args:
        config: what to work on, as ``resolve`` gives it.
        progress: reports long-running work.
        like: a distilled set whose text trunk and standardisation to use, not those of the data.
        data_parallel: whether the ranks divide every batch, instead of experts and trajectories.
        pairs: work on these, not on those that the configuration names: what a caller has in
            memory, or decoded. Where texts are given, there is no text trunk.
    """

    def __init__(
        self,
        config: Config,
        progress: Progress | None = None,
        like: DistilledSet | None = None,
        data_parallel: bool = False,
        pairs: Pairs | Decoded | None = None,
    ) -> None:
        self.config, self.progress, self.like = config, progress or Silent(), like
        self._data_parallel = data_parallel
        self.device = find_device(config.device, config.dtype)
        self.networks = Networks(config, self.progress.say)
        self.dtype: torch.dtype = getattr(torch, config.dtype)
        self.loss = LOSSES[config.loss]
        text_trunk: TextTrunk | None = None
        if isinstance(pairs, Decoded):
            self.pairs = pairs
        else:
            self.pairs, text_trunk = self._read(pairs or Pairs({}))
        train = self.pairs.splits["train"]
        if like is None and len(train) < config.distill.budget:
            raise InputError(
                f"the training split has {len(train)} pairs, fewer than distill.budget ("
                f"{config.distill.budget}): try distill.budget={small_budget(len(train))}"
            )
        if self.given and config.encoder.space != "features":
            raise InputError(NO_PIXELS)
        self.text_trunk: TextTrunk = text_trunk or self._text_trunk_of_data()
        if like is not None and like.text_trunk.fingerprint != self.text_trunk.fingerprint:
            raise InputError(OTHER_TEXTS.format(like.config.encoder.text))
        if config.encoder.network is not None:
            check_network(config.encoder, self._taken_features(), self.text_trunk.dim)

    def _read(self, pairs: Pairs) -> tuple[Decoded, TextTrunk | None]:
        """The decoded pairs, and the text trunk if that is not made from them.

        A mistake in either shows before images are decoded, which is slow.
        """
        config = self.config
        decode = pairs.find(config.data, self.progress)
        given = SOURCES[config.data.source].features
        of_data = given or text_trunk_class(config.encoder.text)[0].fitted
        if not given:
            announce_downloads(config.encoder, self.progress)
        text_trunk = None if of_data else build_text_trunk(config.encoder, [])
        return decode(config.encoder.size()), text_trunk

    @property
    def given(self) -> bool:
        """Whether the images came as features, so that there is no image trunk."""
        return self.pairs.features

    def _text_trunk_of_data(self) -> TextTrunk:
        train = self.pairs.splits["train"]
        if self.like is not None:
            return self.like.text_trunk
        if train.texts is not None:
            return GivenText(train.texts.shape[1], self.pairs.fingerprint)
        return build_text_trunk(self.config.encoder, worded(train.captions, self.config.data))

    def _taken_features(self) -> int | None:
        """How many features what trains of the image side takes; None: it takes pixels."""
        if self.given:
            return self.pairs.splits["train"].images.shape[1]
        return None if self._trunk is None else feature_size(self._trunk)

    @property
    def data_parallel(self) -> bool:
        """Whether the ranks divide batches now: not where there is one, or each works alone."""
        return self._data_parallel and ranks.size() > 1

    @cached_property
    def real(self) -> dict[str, EncodedSplit]:
        """The real splits as the dual encoder takes them."""
        splits = {}
        for name, split in self.pairs.splits.items():
            augmented = self.config.data.augment and name == "train"
            encoded = self._trunk is not None and not augmented
            images = self.features(name) if encoded else split.images
            splits[name] = EncodedSplit(images, self.texts(name), split.owner)
        return splits

    @cached_property
    def frozen(self) -> Frozen:
        """What all networks of this configuration share."""
        config = self.config.encoder
        trunk = self._trunk if config.space == "pixels" else None
        trunk = None if trunk is None else copy.deepcopy(trunk).to(dtype=self.dtype)
        training = training_text(self.text_trunk, config.scope)
        if training is not None:
            return Frozen(training.dim, trunk=trunk, text_tower=training.tower)
        features = self.features("train") if config.scope == "heads" else None
        same_trunk = self.like is not None and self.like.image_trunk == self.image_trunk
        image_standard = self.like.image_standard if self.like and same_trunk else None
        text_standard = self.like.text_standard if self.like else None
        if config.standardise and features is not None:
            image_standard = image_standard or Standard.fit(features, "image features")
        if config.standardise:
            text_standard = text_standard or Standard.fit(self.texts("train"), "text embeddings")
        return Frozen(
            text_dim=self.text_trunk.dim,
            feature_dim=None if features is None else features.shape[1],
            trunk=trunk,
            image_standard=image_standard,
            text_standard=text_standard,
        )

    @cached_property
    def image_trunk(self) -> str:
        """Identifies the image trunk with its weights."""
        config = self.config.encoder
        if self.given:
            return given_key(self.pairs.splits["train"].images.shape[1])
        if config.network is not None and config.scope != "heads":
            return network_key(config.network, config.size())
        return trunk_key(*config.trunk(), config.trains_from)

    @cached_property
    def _trunk(self) -> nn.Module | None:
        """The frozen image trunk, or its frozen first part, where there is one."""
        config = self.config.encoder
        if not config.looks_through_frozen() or self.given:
            return None
        return folded(frozen_trunk(config, self.device), config.size())

    def features(self, name: str) -> Features:
        """The images of a split as the frozen trunk sees them, or as they came. Shape: (M, f)"""
        split = self.pairs.splits[name]
        if self._trunk is None:
            return split.images
        return cached_features(split, self._trunk, self.image_trunk, self.progress)

    def seen_by(self, network: DualEncoder, name: str) -> Features:
        """The training images as a network of that name embeds them, cached. Shape: (M, d)"""
        path = home() / "features" / f"{name}.npy"
        images = self.real["train"].embed_images
        return cached_array(path, lambda: images(network).float().cpu().numpy(), self.progress)

    def texts(self, name: str) -> Features:
        """The captions of a split as embeddings, or as tokens where the text trunk trains."""
        split = self.pairs.splits[name]
        if split.texts is not None:
            return split.texts
        words = worded(split.captions, self.config.data)
        training = training_text(self.text_trunk, self.config.encoder.scope)
        if training is not None:
            return training.tokens(words, self.config.encoder.text_length)
        return embed_once(self.text_trunk, words, self.progress)

    def model(self, *keys: int | str) -> DualEncoder:
        """A dual encoder with initial weights drawn by the keys."""
        model = build_dual_encoder(self.config.encoder, self.frozen, derive_seed(*keys))
        self.networks.add(model)
        return model.to(self.device, self.dtype)

    @cached_property
    def flat(self) -> FlatModel:
        """The dual encoder as a function of its parameters."""
        return FlatModel(self.model("flat"))

    def real_batch(self, generator: torch.Generator, size: int | None) -> tuple[Tensor, Tensor]:
        """Drawn real pairs, each with one drawn caption, as both sides take them.

        By default, as many as experts see at a time. Shapes: (m, …), (m, …)
        """
        _, captions, inputs = self.drawn_real(generator, size)
        return inputs, self.real["train"].captions(captions, self.flat.model)

    def drawn_real(
        self, generator: torch.Generator, size: int | None
    ) -> tuple[np.ndarray, np.ndarray, Tensor]:
        """The same pairs by number: images, captions, and what the image side takes of them."""
        real, seed = self.real["train"], draw_seed(generator)
        rng = np.random.default_rng(seed)
        size = min(size or self.config.experts.batch_size, len(real))
        images = rng.choice(len(real), size, replace=False)
        captions = real.draw_captions(images, rng)
        with global_seed(seed), torch.no_grad():
            inputs = real.inputs(images, self.flat.model, self.config.data.augment)
        return images, captions, inputs

    def tensors_of(self, images: np.ndarray, captions: np.ndarray) -> tuple[Tensor, Tensor]:
        """Real pairs as synthetic pairs are: pixels or features, and text embeddings."""
        model, real = self.flat.model, self.real["train"]
        split = self.pairs.splits["train"]
        pixels = self.config.encoder.space == "pixels"
        source = EncodedSplit(split.images, real.texts, real.owner) if pixels else real
        texts = source.captions(captions, model)
        if not texts.is_floating_point():
            texts = model.text[0].embed_tokens(texts)  # type: ignore[index]
        return source.normalised(images, model), texts

    def plain_pairs(self, images: np.ndarray, captions: np.ndarray) -> SyntheticPairs:
        """Real pairs as a set to train on, with the identity similarity."""
        return SyntheticPairs(*self.tensors_of(images, captions)).to(self.device, self.dtype)

    def distilled(
        self,
        pairs: SyntheticPairs,
        loss: str | None = None,
        similarity: SimilarityConfig | None = None,
        captions: Sequence[str] = (),
    ) -> DistilledSet:
        """Pack pairs, perhaps with another loss or similarity, and their nearest real captions."""
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
            tuple(captions),
        )
