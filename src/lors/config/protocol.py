"""Settings of the protocol by which a set is evaluated."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lors.config.types import Count, LossName, Rate, Section, Weight

__all__ = ["EvaluateConfig"]


class EvaluateConfig(Section):
    """The protocol: train fresh networks on a set, measure recall."""

    seeds: Count = Field(5, description="how many fresh networks are trained")
    reading: Literal["paper", "published"] = Field(
        "paper",
        description="published: as the published code does it, the rates fall an epoch later, each "
        "batch is drawn afresh from the whole set, and checks begin with the first epoch",
    )
    epochs: Count = Field(100, description="of each; the rates fall to a tenth at half-time")
    batch_size: Count = Field(128, description="synthetic pairs per step")
    momentum: float = Field(0.9, ge=0, lt=1, description="of SGD")
    weight_decay: Weight = Field(5e-4, description="of SGD")
    checks: Count = Field(10, description="how many epochs are measured on val")
    legacy: bool = Field(False, description="also report the best epoch on the test split")
    similarity: Literal["own", "expert"] = Field(
        "own",
        description="S that networks train with: the set's own, or the first expert's of its "
        "pairs, σ(cos/τ), as in the published code's ablation of a CLIP's similarity",
    )
    tried_losses: tuple[LossName, ...] = Field(
        ("nce", "wbce"),
        min_length=1,
        description="losses tried on val for plain pairs that have not learned their rates",
    )
    tried_rates: tuple[Rate, ...] = Field(
        (0.01, 0.03, 0.1, 0.3, 1.0),
        min_length=1,
        description="rates tried on val, the same on both sides, for sets that have learned none",
    )

    def half(self) -> int:
        """The epochs before the rates fall.

        >>> EvaluateConfig().half(), EvaluateConfig(reading="published", epochs=101).half()
        (50, 51)
        """
        return self.epochs // 2 + (self.reading == "published")

    def pace(self, epoch: int) -> float:
        """What the learning rates are multiplied by in an epoch, counted from 0."""
        return 1.0 if epoch < self.half() else 0.1

    def checked(self) -> list[int]:
        """The epochs, counted from 1, after which a network is measured.

        >>> EvaluateConfig(reading="published", epochs=101, checks=11).checked()
        [1, 11, 21, 31, 41, 51, 61, 71, 81, 91, 101]
        """
        shares = [(i + 1) / self.checks for i in range(self.checks)]
        if self.reading == "published" and self.checks > 1:
            shares = [i / (self.checks - 1) for i in range(self.checks)]
            return sorted({1 + round((self.epochs - 1) * share) for share in shares})
        return sorted({round(self.epochs * share) for share in shares})
