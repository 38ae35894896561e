"""Every setting, by section, with its type, its default and what it means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from lors.errors import InputError

__all__ = [
    "Config",
    "DataConfig",
    "DistillConfig",
    "EncoderConfig",
    "EvaluateConfig",
    "Expected",
    "ExpertsConfig",
    "MatchingConfig",
    "SelectionConfig",
    "SimilarityConfig",
    "SplitName",
]

Count = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Literal["images", "texts", "similarity", "rates"]
SplitName = Literal["train", "val", "test"]


def _expanded(path: Path) -> Path:
    """``~`` is the home folder."""
    try:
        return path.expanduser()
    except RuntimeError as error:  # there is no such user
        raise ValueError(str(error)) from None


UserPath = Annotated[Path, AfterValidator(_expanded)]


def _weights(value: Any) -> Any:
    """``none`` is no weights, and ``~`` the home folder."""
    if not isinstance(value, str) or value == "none":
        return None if value == "none" else value
    return value if value == "hub" else str(_expanded(Path(value)))


def _names(value: Any) -> Any:
    """A single name stands for a list of one."""
    return [value] if isinstance(value, str) else value


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DataConfig(Section):
    """The real pairs and where they come from."""

    source: str = Field("scenes", description="where pairs come from: a name in data.SOURCES")
    root: UserPath | None = Field(None, description="folder below which all files of the data lie")
    name: str | None = Field(None, description="huggingface: a dataset of the Hub, if no root")
    annotations: dict[str, str] = Field(
        default_factory=dict,
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
    augment: bool = Field(False, description="random crop, flip and RandAugment on real images")
    captions: Literal["one", "each"] = Field(
        "one", description="an epoch shows one drawn caption per image, or each of its captions"
    )
    seed: int = 0

    def title(self) -> str:
        """The dataset by the name its user knows it by."""
        return self.name or (self.root.name if self.root else self.source)


class EncoderConfig(Section):
    """The dual encoder."""

    image: str = Field("nf_resnet_tiny", description="any timm model, or one of the paper's names")
    image_weights: Annotated[str | None, BeforeValidator(_weights)] = Field(
        None, description="hub, a local weight file, or none"
    )
    image_size: Count | None = Field(None, description="side in pixels; default: the trunk's own")
    image_head: str = Field("none", description="none, linear or mlp")
    text: str = Field("lsa", description="lsa, transformers:NAME, open_clip:NAME, bert, …")
    text_weights: Literal["pretrained", "none"] = Field(
        "pretrained", description="none builds the text trunk from its configuration alone"
    )
    text_pooling: Literal["auto", "cls", "mean"] = Field(
        "auto", description="how tokens become one embedding; auto asks the model"
    )
    text_dim: Count = Field(64, description="lsa: dimensions of the embedding")
    text_length: Count = Field(32, description="scope all: tokens per caption")
    text_head: str = Field("linear", description="linear or mlp")
    embed_dim: Count | None = Field(None, description="joint space; default: the image features'")
    temperature: Rate = 0.07
    scope: Literal["heads", "image", "all"] = Field("image", description="which parts train")
    space: Literal["pixels", "features"] = Field(
        "pixels", description="what a synthetic image is; features needs scope heads"
    )
    standardise: bool = Field(
        True, description="centre and scale frozen features and text embeddings by train"
    )

    def size(self) -> int:
        """``image_size``, once ``lors.resolve`` has filled it in."""
        if self.image_size is None:
            raise InputError("encoder.image_size is not resolved: use lors.resolve first")
        return self.image_size


class ExpertsConfig(Section):
    """Training runs on the real data. They also give the full-data reference."""

    count: Count = 20
    epochs: Count = 10
    batch_size: Count = 128
    rate: Rate = 0.1
    text_rate: Rate | None = Field(
        None, description="of the text side; default: rate. A pretrained image trunk wants less"
    )
    seed: int = 0
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


class SimilarityConfig(Section):
    """The ground-truth similarity S."""

    kind: str = Field("lowrank", description="identity, diagonal, lowrank, full or fixed")
    rank: Count = Field(10, description="r; at most the number of pairs, however large it is here")
    alpha: float = Field(1.0, allow_inf_nan=False)
    omega: Rate = Field(1.0, description="ω at the start: how strongly a pair belongs together")
    values: UserPath | None = Field(
        None, description="fixed: S as an .npy file of shape (N, N); default: by the scorer"
    )


class SelectionConfig(Section):
    """Choosing real pairs instead of learning synthetic ones."""

    kind: str | None = Field(
        None, description="random, herding, k-center, forgetting or clip-score; none distils"
    )


class PhaseConfig(Section):
    """One phase of trajectory matching: where its inner runs start."""

    min_start_epoch: int = Field(0, ge=0)
    max_start_epoch: Count


class MatchingConfig(Section):
    """How synthetic data is compared with real data."""

    kind: str = "trajectory"
    gradient: str = Field("exact", description="exact, tesla or unrolled")
    derivative: str = Field(
        "auto",
        description="second derivatives: auto, double, forward or central (exact and tesla only)",
    )
    autocast: bool = Field(
        False, description="inner steps in bfloat16 where that is safe; θ and λ stay in float32"
    )
    ratio: Literal["merged", "separate"] = Field(
        "merged", description="one ratio over all parameters, or an image plus a text ratio"
    )
    steps: Count = Field(8, description="t: inner steps on synthetic batches")
    batch_size: Count = Field(20, description="m: synthetic pairs per inner step")
    expert_epochs: Count = Field(1, description="k: expert epochs that t steps should match")
    min_start_epoch: int = Field(0, ge=0, description="start epochs are drawn from this on")
    max_start_epoch: Count = Field(2, description="start epochs are drawn below this")
    starts: Literal["joint", "independent"] = Field(
        "joint", description="one start epoch for both sides, or one drawn for each (AMD)"
    )
    shortcut: bool = Field(
        False, description="match straight lines from an expert's start to its end (PTM-ST)"
    )
    phases: tuple[PhaseConfig, ...] = Field(
        (),
        description="ranges of start epochs, one after the other, each for its own part of the set "
        "(PTM-ST); default: one range for all",
    )
    blend: float = Field(
        0.0,
        ge=0,
        description="mix the pairs of an inner step with β ~ Beta(a, a) for this a (RepBlend); "
        "0: do not",
    )

    real_batch_size: Count | None = Field(
        None,
        description="real pairs per iteration where no trajectory is matched; default: experts'",
    )
    teacher_temperature: Rate = Field(
        0.05, description="hindsight: τ of the experts as teachers; less makes them surer"
    )
    noise: float = Field(
        0.0, ge=0, description="hindsight: deviation of normal noise on what real pairs are"
    )
    rho: Rate | None = Field(
        None,
        description="covariance: ρ, how much stronger synthetic pairs should be tied; default: 2 "
        "with a budget of at most 100 pairs, else 1",
    )
    weight: float = Field(
        0.1,
        ge=0,
        description="covariance: λ of the means; joint-distribution: of the kernel distances",
    )
    ridge: Rate = Field(
        10.0, description="analytic: of the closed form, in mean variances of a feature"
    )

    def start_ranges(self) -> list[tuple[int, int]]:
        """The first start epoch and the one beyond the last, of each phase."""
        ranges = self.phases or (self,)
        return [(each.min_start_epoch, each.max_start_epoch) for each in ranges]


class LearningRates(Section):
    """Outer learning rates, one per part."""

    images: Rate = 100.0
    texts: Rate = 100.0
    similarity: Rate = 10.0
    rates: Rate = 0.01


class DistillConfig(Section):
    """The outer loop."""

    budget: Count = Field(100, description="storage, in plain pairs")
    one_batch: bool = Field(
        False,
        description="make no more pairs than evaluate.batch_size, however many the budget holds, "
        "so that every step of the protocol sees the whole set",
    )
    init: str = Field(
        "real",
        description="what pairs start as: drawn real pairs (real), or those of any selection; the "
        "real pairs nearest to the centroids of k-means, or the centroids; the singular vectors of "
        "the cross-covariance; the canonical directions of the two sides (canonical); noise; or "
        "replicas, half as many real pairs, each twice, to see whether false negatives are found",
    )
    iterations: Count = 3000
    trajectories: Count | None = Field(
        None,
        description="whose meta-gradients each iteration averages; ranks divide them. "
        "Default: one for each rank that the run is begun with",
    )
    learning_rates: LearningRates = LearningRates()
    optimizer: Literal["sgd", "adam"] = Field("sgd", description="of the synthetic pairs")
    schedule: Literal["constant", "cosine"] = Field(
        "constant", description="of the outer learning rates; cosine ends at zero"
    )
    momentum: float = Field(0.5, ge=0, lt=1, description="of sgd, or adam's first beta")
    inner_rate: float = Field(
        0.1, ge=1e-4, allow_inf_nan=False, description="where the two learned inner rates start"
    )
    inner_text_rate: float | None = Field(
        None, ge=1e-4, allow_inf_nan=False, description="of the text side; default: inner_rate"
    )
    averaging: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="keep and evaluate an exponential average of the set with this weight on its "
        "past, e.g. 0.99 (PTM-ST); 0: the set itself",
    )
    fixed: tuple[Part, ...] = Field((), description="parts that are not learned")
    retries: int = Field(
        0,
        ge=0,
        description="how often to go back to the last checkpoint and halve the rate that was to "
        "blame, when numbers turn non-finite",
    )
    evaluate_every: int = Field(
        0,
        ge=0,
        description="recall on val every so often; the best set is kept. 0: at the end only",
    )
    checkpoint_every: Count = 50


class EvaluateConfig(Section):
    """The protocol: train fresh networks on a set, measure recall."""

    seeds: Count = 5
    epochs: Count = 100
    batch_size: Count = 128
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0)
    checks: Count = Field(10, description="how many epochs are measured on val")
    legacy: bool = Field(False, description="also report the best epoch on the test split")

    def pace(self, epoch: int) -> float:
        """What the learning rates are multiplied by in an epoch, counted from 0."""
        return 1.0 if epoch < self.epochs // 2 else 0.1


class Expected(Section):
    """What a published cell reports, for comparison; nothing computes with it."""

    recall: float | None = Field(None, description="mean of IR@1/5/10 and TR@1/5/10, percent")
    full_data: float | None = Field(None, description="the same for the full training data")
    time: str = Field("", description="of the distillation, and on what")
    memory: str = ""
    source: str = ""


class Config(Section):
    """Everything a run needs to know."""

    description: str = ""
    expected: Expected | None = None
    seed: int = 0
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps")
    dtype: Literal["float32", "float64", "bfloat16"] = "float32"
    loss: str = Field("wbce", description="nce, ence, bce or wbce")
    scorer: str = Field(
        "expert",
        description="who tells how well an image and a caption fit, for CLIP scores and a fixed S: "
        "the first expert, open_clip:ARCHITECTURE/TAG, or given for embeddings of one joint space",
    )
    trackers: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        (), description="who else is told of metrics, images and tables: tensorboard, wandb"
    )
    data: DataConfig = DataConfig()
    encoder: EncoderConfig = EncoderConfig()
    experts: ExpertsConfig = ExpertsConfig()
    similarity: SimilarityConfig = SimilarityConfig()
    selection: SelectionConfig = SelectionConfig()
    matching: MatchingConfig = MatchingConfig()
    distill: DistillConfig = DistillConfig()
    evaluate: EvaluateConfig = EvaluateConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> Config:
        ranges = self.matching.start_ranges()
        if any(first >= beyond for first, beyond in ranges):
            raise ValueError("matching.min_start_epoch must be below matching.max_start_epoch")
        last = max(beyond for _, beyond in ranges) - 1 + self.matching.expert_epochs
        if last > self.experts.epochs and self.matching.kind != "hindsight":
            raise ValueError(
                f"matching reaches expert epoch {last} (max_start_epoch - 1 + expert_epochs) but "
                f"experts.epochs is {self.experts.epochs}"
            )
        if self.encoder.space == "features" and self.encoder.scope != "heads":
            raise ValueError(
                "synthetic features bypass the image trunk, so it cannot train: "
                "encoder.space=features needs encoder.scope=heads"
            )
        if self.distill.init == "centroids" and self.encoder.space != "features":
            raise ValueError(
                "only features can be the mean of others: set distill.init=k-means or "
                "encoder.space=features"
            )
        if self.matching.blend and self.encoder.scope != "heads":
            raise ValueError("matching.blend mixes frozen features: set encoder.scope=heads")
        if len(self.matching.phases) > self.distill.budget:
            raise ValueError("matching.phases has more phases than distill.budget has pairs")
        lowrank = self.similarity.kind == "lowrank"
        if lowrank and len(self.matching.phases) > self.similarity.rank:
            raise ValueError("matching.phases has more phases than similarity.rank")
        for option in ("blend", "phases", "shortcut"):
            if getattr(self.matching, option) and self.matching.kind != "trajectory":
                raise ValueError(f"matching.{option} needs matching.kind=trajectory")
        if self.matching.starts != "joint" and self.matching.kind != "trajectory":
            raise ValueError("matching.starts=independent needs matching.kind=trajectory")
        if self.distill.averaging and self.dtype == "bfloat16":
            raise ValueError("distill.averaging needs more digits than dtype=bfloat16 has")
        if self.matching.autocast and self.dtype != "float32":
            raise ValueError("matching.autocast=true needs dtype=float32")
        if self.encoder.space == "features" and self.data.augment:
            raise ValueError("features cannot be augmented: set data.augment=false")
        if self.loss == "nce" and self.similarity.kind != "identity":
            raise ValueError(
                "loss nce knows only the identity similarity: set loss=ence or "
                "similarity.kind=identity"
            )
        if self.similarity.kind != "fixed" and self.similarity.values is not None:
            raise ValueError("similarity.values needs similarity.kind=fixed")
        if self.encoder.scope == "all" and self.encoder.text == "lsa":
            raise ValueError(
                "encoder.scope=all trains the text trunk: set encoder.text=transformers:NAME"
            )
        learned = {"images", "texts", "rates"} - set(self.distill.fixed)
        if self.similarity.kind in ("diagonal", "lowrank", "full"):
            learned |= {"similarity"} - set(self.distill.fixed)
        if not learned:
            raise ValueError("distill.fixed leaves nothing to learn: name fewer parts")
        return self

    def expert_snapshots(self) -> list[int]:
        """The epochs of which compact experts keep a snapshot; 0 is the start.

        >>> Config(matching={"max_start_epoch": 2, "expert_epochs": 1}).expert_snapshots()
        [0, 1, 2, 10]
        """
        if self.matching.shortcut or self.matching.kind == "hindsight":
            return list(range(self.experts.epochs + 1))  # the path and the mean need them all
        starts = {epoch for bounds in self.matching.start_ranges() for epoch in range(*bounds)}
        targets = {start + self.matching.expert_epochs for start in starts}
        return sorted({0} | starts | targets | {self.experts.epochs})

    def most_pairs(self) -> int | None:
        """How many synthetic pairs there may be, whatever the budget; None: as many as it holds."""
        return self.evaluate.batch_size if self.distill.one_batch else None

    def yaml(self) -> str:
        """The configuration as a YAML file that ``load_config`` reads."""
        # In ASCII: written as they are, some characters (U+0085) would be read as line ends.
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)
