"""The whole configuration, and what in it must fit together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, model_validator

from lors.config.matchers import TrajectoryOptions
from lors.config.matching import MatchingOptions
from lors.config.names import PLAIN_LOSSES, TRACKERS
from lors.config.options import matching_options
from lors.config.outer_loop import DistillConfig
from lors.config.protocol import EvaluateConfig
from lors.config.sections import (
    DataConfig,
    EncoderConfig,
    ExpertsConfig,
    SelectionConfig,
    SimilarityConfig,
)
from lors.config.types import LossName, Section, Seed

__all__ = ["Config", "Expected"]


def _names(value: Any) -> Any:
    """A single name stands for a list of one."""
    return [value] if isinstance(value, str) else value


TrackerName = Annotated[str, AfterValidator(TRACKERS.check)]


class Expected(Section):
    """What a published cell reports, for comparison; nothing computes with it."""

    recall: float | None = Field(None, description="mean of IR@1/5/10 and TR@1/5/10, percent")
    full_data: float | None = Field(None, description="the same for the full training data")
    time: str = Field("", description="of the distillation, and on what")
    memory: str = Field("", description="of the distillation, and of what")
    source: str = Field("", description="where the numbers are from")


class Config(Section):
    """Everything a run needs to know."""

    description: str = Field("", description="what the configuration is for, in a line")
    expected: Expected | None = None
    seed: Seed = Field(0, description="of distillation and evaluation")
    device: str = Field(
        "auto", description="auto (CUDA, else MPS, else the CPU), cpu, cuda, cuda:1 or mps"
    )
    dtype: Literal["float32", "float64", "bfloat16"] = Field(
        "float32", description="of networks and synthetic pairs"
    )
    recompute: bool = Field(
        False,
        description="compute activations of trunks again on the way back instead of keeping them: "
        "the same bits, less memory, about a third more time; done by itself where memory runs out",
    )
    compile: bool = Field(
        False,
        description="train experts and evaluated networks with code by torch.compile, as long as "
        "that works on the device: rounded otherwise, and compiled anew in every process",
    )
    loss: LossName = Field("wbce", description="the contrastive loss on synthetic pairs")
    scorer: str = Field(
        "expert",
        description="what scores how well image and caption fit, for CLIP scores and a fixed S: "
        "expert (the first), open_clip:ARCHITECTURE/TAG, or given (embeddings of a joint space)",
    )
    trackers: Annotated[tuple[TrackerName, ...], BeforeValidator(_names)] = Field(
        (), description="where else metrics, images and tables of a run go"
    )
    data: DataConfig = DataConfig()
    encoder: EncoderConfig = EncoderConfig()
    experts: ExpertsConfig = ExpertsConfig()
    similarity: SimilarityConfig = SimilarityConfig()
    selection: SelectionConfig = SelectionConfig()
    matching: Annotated[SerializeAsAny[MatchingOptions], BeforeValidator(matching_options)] = (
        TrajectoryOptions()
    )
    distill: DistillConfig = DistillConfig()
    evaluate: EvaluateConfig = EvaluateConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> Config:
        if self.selection.kind is None:
            self.matching.check(self)
        if self.encoder.space == "features" and self.encoder.scope != "heads":
            raise ValueError(
                "synthetic features bypass the image trunk, so it cannot train: "
                "encoder.space=features needs encoder.scope=heads"
            )
        if self.encoder.trains_from is not None:
            self._check_trains_from()
        if self.distill.init == "centroids" and self.encoder.space != "features":
            raise ValueError(
                "only features can be the mean of others: set distill.init=k-means or "
                "encoder.space=features"
            )
        if self.compile and self.recompute:
            raise ValueError(
                "compiled code keeps what it wants: set compile=false or recompute=false"
            )
        if self.experts.autocast and self.dtype != "float32":
            raise ValueError("experts.autocast=true needs dtype=float32")
        if self.distill.averaging and self.dtype == "bfloat16":
            raise ValueError("distill.averaging needs more digits than dtype=bfloat16 has")
        if self.encoder.space == "features" and (self.data.augment or self.distill.augment_start):
            which = "data.augment" if self.data.augment else "distill.augment_start"
            raise ValueError(f"features cannot be augmented: set {which}=false")
        if self.loss in PLAIN_LOSSES and self.similarity.kind != "identity":
            raise ValueError(
                f"loss {self.loss} knows only the identity similarity: set loss=e{self.loss} or "
                "similarity.kind=identity"
            )
        if self.similarity.kind != "fixed" and self.similarity.values is not None:
            raise ValueError("similarity.values needs similarity.kind=fixed")
        learned = {"images", "texts", "rates"} - set(self.distill.fixed)
        if self.similarity.kind not in ("identity", "fixed"):
            learned |= {"similarity"} - set(self.distill.fixed)
        if not learned:
            raise ValueError("distill.fixed leaves nothing to learn: name fewer parts")
        return self

    def _check_trains_from(self) -> None:
        """Refuse a first layer that trains where there is none."""
        encoder = self.encoder
        if encoder.scope == "heads":
            raise ValueError(
                "encoder.trains_from needs a trunk that trains: set encoder.scope=image"
            )
        if encoder.network is not None:
            raise ValueError("encoder.trains_from is for timm models, not for encoder.network")
        if encoder.image_weights is None:
            raise ValueError(
                "encoder.trains_from keeps the first layers as pretrained: set "
                "encoder.image_weights=hub or a file"
            )

    def expert_snapshots(self) -> list[int]:
        """The epochs of which compact experts keep a snapshot; 0 is the start.

        >>> Config(matching={"max_start_epoch": 2, "expert_epochs": 1}).expert_snapshots()
        [0, 1, 2, 10]
        """
        read = self.matching.snapshots(self.experts.epochs)
        return sorted(e for e in {0, self.experts.epochs} | read if e <= self.experts.epochs)

    def learns_rates(self) -> bool:
        """Whether the set learns its inner rates; if not, they are tuned on val."""
        learns = self.selection.kind is None and self.distill.iterations > 0
        return learns and self.matching.learns_rates

    def similarity_within(self, pair_numbers: int) -> SimilarityConfig:
        """What S is where a pair holds so many numbers: see ``similarity.share``."""
        return self.similarity.within(pair_numbers, self.parts())

    def parts(self) -> int:
        """How many parts of the set are learned apart from each other."""
        if self.selection.kind is not None:
            return 1
        return self.matching.parts(self.distill.budget)

    def most_pairs(self) -> int | None:
        """How many synthetic pairs there may be, whatever the budget; None: as many as it holds."""
        return self.evaluate.batch_size if self.distill.one_batch else None

    def yaml(self) -> str:
        """The configuration as a YAML file that ``load_config`` reads."""
        # In ASCII: written as they are, some characters (U+0085) would be read as line ends.
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)
