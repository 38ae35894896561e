"""The settings of the outer loop."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from lors.config.names import SELECTIONS, STARTS
from lors.config.types import LARGE, Count, Number, OuterRate, Part, Section
from lors.system.errors import InputError, suggestion
from lors.system.registry import FROM_PLUGIN

__all__ = ["DistillConfig", "LearningRates"]


def _start(name: str) -> str:
    """The name of a start, or of a selection, whose pairs are one."""
    if name not in (known := [*STARTS, *SELECTIONS]):
        raise InputError(f"unknown start {name!r}{suggestion(name, known)}{FROM_PLUGIN}")
    return name


class LearningRates(Section):
    """Outer learning rates, one per part; auto: by the part's length, steps of about 1 % of it."""

    images: OuterRate = Field(100.0, description="of the synthetic images")
    texts: OuterRate = Field(100.0, description="of the synthetic texts")
    similarity: OuterRate = Field(10.0, description="of ω, L and R, or of S")
    rates: OuterRate = Field(0.01, description="of the two inner learning rates")

    @model_validator(mode="before")
    @classmethod
    def _auto(cls, values: Any) -> Any:
        """``auto`` for all."""
        return dict.fromkeys(cls.model_fields, values) if values == "auto" else values


class DistillConfig(Section):
    """The outer loop."""

    budget: Count = Field(100, description="storage, in plain pairs")
    one_batch: bool = Field(
        False,
        description="make no more pairs than evaluate.batch_size, however many the budget holds, "
        "so that every step of the protocol sees the whole set",
    )
    init: Annotated[str, AfterValidator(_start)] = Field(
        "real",
        description="what pairs start as: drawn real pairs (real), or those of any selection; the "
        "real pairs nearest to the centroids of k-means, or the centroids; the singular vectors of "
        "the cross-covariance; the canonical directions of the two sides (canonical); drawn "
        "photos with the texts that fit them (fitted); the means of "
        "clusters of images and captions that share most pairs (prototypes); noise; or "
        "replicas, half as many real pairs, each twice, to see whether false negatives are found",
    )
    augment_start: bool = Field(
        False, description="augment the real photos that pairs start as, as the published code does"
    )
    iterations: Number = Field(
        3000,
        description="steps of the outer optimiser; 0: the start as it is, with rates tuned on val",
    )
    trajectories: Count | None = Field(
        None,
        description="how many meta-gradients each iteration averages; ranks divide them. "
        "Default: one for each rank that the run is begun with",
    )
    learning_rates: LearningRates = LearningRates()
    optimizer: Literal["sgd", "adam"] = Field("sgd", description="of the synthetic pairs")
    schedule: Literal["constant", "cosine"] = Field(
        "constant", description="of the outer learning rates; cosine ends at zero"
    )
    momentum: float = Field(0.5, ge=0, lt=1, description="of sgd, or adam's first beta")
    inner_rate: float = Field(
        0.1,
        ge=1e-4,
        le=LARGE,
        allow_inf_nan=False,
        description="where the two learned inner rates start",
    )
    inner_text_rate: float | None = Field(
        None,
        ge=1e-4,
        le=LARGE,
        allow_inf_nan=False,
        description="of the text side; default: inner_rate",
    )
    averaging: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="keep and evaluate an exponential average of the set with this weight on its "
        "past, e.g. 0.99 (PTM-ST); 0: the set itself",
    )
    fixed: tuple[Part, ...] = Field((), description="parts that are not learned")
    retries: Number = Field(
        0,
        description="how often to go back to the last checkpoint and halve the rate that was to "
        "blame, when numbers turn non-finite",
    )
    evaluate_every: Number = Field(
        0,
        description="recall on val every so often; the best set is kept. 0: at the end only",
    )
    evaluate_epoch: Literal["last", "chosen"] = Field(
        "last",
        description="recall on val is that of the last epoch of the protocol, or, as in the "
        "evaluation at the end, of the best of evaluate.checks epochs",
    )
    patience: Number = Field(
        0,
        description="end the run when recall on val has not risen for so many evaluations; 0: "
        "never",
    )
    checkpoint_every: Count = Field(50, description="iterations from which a run can continue")
