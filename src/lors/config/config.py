"""The whole configuration, and what in it must fit together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, model_validator

from lors.config.sections import (
    DataConfig,
    DistillConfig,
    EncoderConfig,
    EvaluateConfig,
    Expected,
    ExpertsConfig,
    MatchingConfig,
    Section,
    Seed,
    SelectionConfig,
    SimilarityConfig,
)

__all__ = ["Config"]


def _names(value: Any) -> Any:
    """A single name stands for a list of one."""
    return [value] if isinstance(value, str) else value


class Config(Section):
    """Everything a run needs to know."""

    description: str = ""
    expected: Expected | None = None
    seed: Seed = 0
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
        if self.encoder.scope == "all" and self.encoder.text.startswith(("lsa", "open_clip:")):
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
            return list(range(self.experts.epochs + 1))
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
