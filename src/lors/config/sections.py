"""Settings by section, with their types, defaults and meanings; see also ``outer_loop``."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from lors.config.names import (
    SELECTIONS,
    SIMILARITIES,
    SOURCES,
    check_text_trunk,
)
from lors.config.types import (
    LARGE,
    Count,
    Epochs,
    HeadName,
    LossName,
    Rate,
    Section,
    Seed,
    SplitName,
    UserPath,
    weights,
)
from lors.system.errors import InputError
from lors.system.registry import OWN

__all__ = [
    "DataConfig",
    "EncoderConfig",
    "ExpertsConfig",
    "SelectionConfig",
    "SimilarityConfig",
    "SplitName",
]


def _own(name: str) -> str:
    """The name of something that was given in Python, whether it is here or not."""
    if not name.startswith(OWN):
        raise InputError(f"{name!r} is no network: give one in Python, as own:NAME")
    return name


class DataConfig(Section):
    """The real pairs and where they come from."""

    source: Annotated[str, AfterValidator(SOURCES.check)] = Field(
        "scenes", description="where pairs come from"
    )
    root: UserPath | None = Field(None, description="folder below which all files of the data lie")
    name: str | None = Field(None, description="huggingface: a dataset of the Hub, if no root")
    annotations: dict[str, str] = Field(
        default_factory=dict,
        max_length=20,
        description="karpathy, table: split -> file; webdataset: split -> pattern of shards; "
        "embeddings: images, texts, owner and captions -> file or pattern of shards",
    )
    image_column: str = Field("image", description="huggingface: which column holds images")
    caption_column: str = Field("caption", description="huggingface: captions, text or a list")
    holdout: float = Field(
        0.1, gt=0, lt=0.5, description="share of train that becomes a val or test split not given"
    )
    pairs: dict[SplitName, Count] = Field(
        default_factory=dict, description="number of pairs per split; default: all there are"
    )
    skip_bad: bool = Field(
        False,
        description="go on without rows that cannot be used, and list them, instead of refusing "
        "the data",
    )
    augment: bool = Field(False, description="random crop, flip and RandAugment on real images")
    clean_captions: bool = Field(
        False,
        description="captions in lower case, most punctuation left out, at most 30 words, as in "
        "the published code",
    )
    captions: Literal["one", "each"] = Field(
        "one", description="an epoch shows one drawn caption per image, or each of its captions"
    )
    seed: Seed = Field(0, description="of the splits that are held out, and of built-in data")

    def title(self) -> str:
        """The dataset by the name its user knows it by."""
        return self.name or (self.root.name if self.root else self.source)


class EncoderConfig(Section):
    """The dual encoder."""

    image: str = Field("nf_resnet_tiny", description="any timm model, or one of the paper's names")
    image_weights: Annotated[str | None, BeforeValidator(weights)] = Field(
        None, description="hub, a local weight file, or null for none"
    )
    image_size: Count | None = Field(None, description="side in pixels; default: the trunk's own")
    normalisation: Literal["trunk", "clip"] = Field(
        "trunk",
        description="mean and deviation of pixels: the image trunk's own, or CLIP's for every "
        "trunk, as in the published code",
    )
    image_outputs: Literal["features", "logits"] = Field(
        "features",
        description="what a timm model gives: pooled features, or the logits of its classifier, as "
        "in the published code for all but NFNet",
    )
    image_head: HeadName = Field("none", description="from image features into the joint space")
    text: Annotated[str, AfterValidator(check_text_trunk)] = Field(
        "lsa", description="lsa, transformers:NAME, open_clip:NAME, bert, …"
    )
    text_weights: Literal["pretrained", "none"] = Field(
        "pretrained", description="none builds the text trunk from its configuration alone"
    )
    text_pooling: Literal["auto", "cls", "mean"] = Field(
        "auto", description="how tokens become one embedding; auto asks the model"
    )
    text_dim: Count = Field(64, description="lsa: dimensions of the embedding")
    text_length: Count = Field(32, description="scope all: tokens per caption")
    text_head: HeadName = Field("linear", description="from text embeddings into the joint space")
    network: Annotated[str, AfterValidator(_own)] | None = Field(
        None,
        description="own:NAME of what trains, given in Python, in the place of heads; in scopes "
        "image and all, also of the image trunk",
    )
    embed_dim: Count | None = Field(
        None, description="of the joint space; default: the image features'"
    )
    temperature: Rate = Field(0.07, description="τ: cosines are divided by it")
    scope: Literal["heads", "image", "all"] = Field("image", description="which parts train")
    trains_from: str | None = Field(
        None,
        description="scopes image and all: the first layer of the image trunk that trains, such as "
        "blocks.5; those before it stay as pretrained, so images go through them once. Default: "
        "all layers train",
    )
    space: Literal["pixels", "features"] = Field(
        "pixels", description="what a synthetic image is; features needs scope heads"
    )
    standardise: bool = Field(
        True, description="centre and scale frozen features and text embeddings by train"
    )

    def trunk(self) -> tuple[str, str | None, int, str, str]:
        """What the image trunk is made from, as ``lors.encoders.image.image_trunk`` takes it."""
        return self.image, self.image_weights, self.size(), self.normalisation, self.image_outputs

    def looks_through_frozen(self) -> bool:
        """Whether images first go through what is frozen: a trunk, or the first part of one."""
        return self.scope == "heads" or self.trains_from is not None

    def size(self) -> int:
        """``image_size``, once ``lors.setting.resolve`` has filled it in."""
        if self.image_size is None:
            raise InputError("encoder.image_size is not resolved: use lors.setting.resolve first")
        return self.image_size


class ExpertsConfig(Section):
    """Training runs on the real data. They also give the full-data reference."""

    count: Count = Field(20, description="how many experts are trained")
    epochs: Epochs = Field(10, description="of each")
    batch_size: Count = Field(128, description="real pairs per step")
    drop_last: bool = Field(
        False, description="leave out the last batch of an epoch if it is not full"
    )
    loss: LossName = Field("nce", description="the contrastive loss on real pairs")
    rate: Rate = Field(0.1, description="learning rate of plain SGD")
    text_rate: Rate | None = Field(
        None, description="of the text side; default: rate. A pretrained image trunk wants less"
    )
    schedule: Literal["constant", "cosine"] = Field(
        "constant",
        description="of the learning rates; cosine falls from epoch to epoch, so that the last is "
        "the best",
    )
    autocast: bool = Field(
        False, description="their networks in bfloat16 where that is safe; θ stays in float32"
    )
    seed: Seed = Field(0, description="of their starts and batches")
    folder: UserPath | None = Field(
        None, description="where they are kept; default: below LORS_HOME"
    )
    compact: bool = Field(
        False,
        description="keep only the snapshots that matching can start from or aim at and the last, "
        "as bfloat16 differences from the start; another matching then needs other experts, and "
        "the full data's best epoch is chosen among those kept",
    )

    def rates(self) -> tuple[float, float]:
        """The learning rates of the image side and the text side."""
        return self.rate, self.text_rate or self.rate

    def pace(self, epoch: int) -> float:
        """What the rates are multiplied by in an epoch, counted from 0.

        >>> ExpertsConfig(epochs=4, schedule="cosine").pace(2)
        0.5
        """
        if self.schedule == "constant":
            return 1.0
        return (1 + math.cos(math.pi * epoch / self.epochs)) / 2


class SimilarityConfig(Section):
    """The ground-truth similarity S."""

    kind: Annotated[str, AfterValidator(SIMILARITIES.check)] = Field(
        "lowrank", description="what S is and what of it is learned"
    )
    rank: Count = Field(10, description="r; at most the number of pairs, however large it is here")
    alpha: float = Field(
        1.0, ge=-LARGE, le=LARGE, allow_inf_nan=False, description="α of S = diag(ω) + (α/r) L Rᵀ"
    )
    omega: Rate = Field(1.0, description="ω at the start: how strongly a pair belongs together")
    share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="lowrank: L and R may hold at most this share of the numbers of a pair; the "
        "rank falls until they do, and α with it. Default: no limit",
    )
    blocks: Count = Field(
        1,
        description="full: learn only so many blocks along the diagonal, and 0 elsewhere; at least "
        "as many as matching.phases, whose parts are never learned together",
    )
    values: UserPath | None = Field(
        None, description="fixed: S as an .npy file of shape (N, N); default: by the scorer"
    )

    def within(self, pair_numbers: int, least: int = 1) -> SimilarityConfig:
        """The same with the rank that ``share`` leaves where a pair holds so many numbers.

        Args:
            pair_numbers: numbers in an image and a text.
            least: the rank is not lowered below this; so many blocks has a full S.

        >>> SimilarityConfig(rank=40, alpha=12, share=0.125).within(32).rank
        2
        """
        if self.kind == "full":
            return self.model_copy(update={"blocks": max(self.blocks, least)})
        if self.share is None:
            return self
        rank = min(self.rank, max(least, int(self.share * pair_numbers / 2)))
        return self.model_copy(update={"rank": rank, "alpha": self.alpha * rank / self.rank})


class SelectionConfig(Section):
    """Choosing real pairs instead of learning synthetic ones."""

    kind: Annotated[str, AfterValidator(SELECTIONS.check)] | None = Field(
        None, description="which real pairs to choose; null: distil"
    )
    similarity: Literal["identity", "teachers"] = Field(
        "identity",
        description="S of the chosen pairs: identity, or teachers: what all experts together think "
        "of them, all N² numbers of it paid for with pairs",
    )

    def kept_similarity(self) -> SimilarityConfig:
        """What S of the chosen pairs is in a set.

        >>> SelectionConfig(kind="random", similarity="teachers").kept_similarity().kind
        'fixed'
        """
        return SimilarityConfig(kind="fixed" if self.similarity == "teachers" else "identity")
