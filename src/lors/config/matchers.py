"""The matchers of the package as settings: the options of each, and what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from lors.config.matching import MatchingOptions
from lors.config.types import Count, Number, Rate, Section, Weight

if TYPE_CHECKING:
    from lors.config.config import Config

__all__ = [
    "AnalyticOptions",
    "CovarianceOptions",
    "DistributionOptions",
    "GradientOptions",
    "HindsightOptions",
    "JointDistributionOptions",
    "PhaseConfig",
    "TrajectoryOptions",
]


class PhaseConfig(Section):
    """One phase of trajectory matching: where its inner runs start."""

    min_start_epoch: Number = 0
    max_start_epoch: Count


class TrajectoryOptions(MatchingOptions):
    """Training on the set should go where experts went: MTT-VL, TESLA, LoRS and others."""

    learns_rates: ClassVar[bool] = True
    divisible: ClassVar[bool] = True
    step_option: ClassVar[str | None] = "steps"
    batch_options: ClassVar[tuple[str, ...]] = ("batch_size",)
    of_methods: ClassVar[tuple[str, ...]] = ("starts", "shortcut", "phases", "blend")

    kind: str = "trajectory"
    gradient: Literal["exact", "tesla", "unrolled"] = Field(
        "exact", description="the meta-gradient: exact, tesla (λ frozen) or unrolled"
    )
    derivative: Literal["auto", "double", "forward", "central", "one-sided", "kept"] = Field(
        "auto",
        description="second derivatives of exact and tesla: auto, or double, forward, central, "
        "one-sided or kept",
    )
    memory: Number | None = Field(
        None,
        description="bytes that graphs of inner steps may take where derivative=auto would keep "
        "them; default: a quarter of the device's memory",
    )
    autocast: bool = Field(
        False, description="inner steps in bfloat16 where that is safe; θ and λ stay in float32"
    )
    ratio: Literal["merged", "separate", "merged-published"] = Field(
        "merged",
        description="one ratio over all parameters, or an image plus a text ratio; or, as in the "
        "published code, merged for pairs and similarity and separate for the inner rates",
    )
    steps: Count = Field(8, description="t: inner steps on synthetic batches")
    batch_size: Count = Field(20, description="m: synthetic pairs per inner step")
    drop_last: bool = Field(
        False,
        description="shuffle again where fewer than batch_size pairs are left of a pass over the "
        "set, instead of a smaller batch",
    )
    temperature: Rate | None = Field(
        None, description="τ of the inner steps; default: encoder.temperature"
    )
    expert_epochs: Count = Field(1, description="k: expert epochs that t steps should match")
    min_start_epoch: Number = Field(0, description="start epochs are drawn from this on")
    max_start_epoch: Count = Field(2, description="start epochs are drawn below this")
    starts: Literal["joint", "independent"] = Field(
        "joint", description="one start epoch for both sides, or one drawn for each (AMD)"
    )
    shortcut: bool = Field(
        False, description="match straight lines from an expert's start to its end (PTM-ST)"
    )
    phases: tuple[PhaseConfig, ...] = Field(
        (),
        max_length=100,
        description="ranges of start epochs, one after the other, each for its own part of the set "
        "(PTM-ST); default: one range for all",
    )
    blend: Weight = Field(
        0.0,
        description="mix the pairs of an inner step with β ~ Beta(a, a) for this a (RepBlend); "
        "0: do not",
    )

    def start_ranges(self) -> list[tuple[int, int]]:
        """The first start epoch and the one beyond the last, of each phase."""
        ranges = self.phases or (self,)
        return [(each.min_start_epoch, each.max_start_epoch) for each in ranges]

    def snapshots(self, epochs: int) -> set[int]:
        if self.shortcut:
            return set(range(epochs + 1))
        starts = {epoch for bounds in self.start_ranges() for epoch in range(*bounds)}
        return starts | {start + self.expert_epochs for start in starts}

    def last_start(self) -> int:
        return self.max_start_epoch - 1

    def parts(self) -> int:
        return max(1, len(self.phases))

    def idle_loss(self) -> float:
        """A ratio of 1 is no nearer to the expert than the start; two ratios add up to 2."""
        return 1.0 if self.ratio == "merged" else 2.0

    def check(self, config: Config) -> None:
        super().check(config)
        ranges = self.start_ranges()
        if any(first >= beyond for first, beyond in ranges):
            raise ValueError("matching.min_start_epoch must be below matching.max_start_epoch")
        last = max(beyond for _, beyond in ranges) - 1 + self.expert_epochs
        if last > config.experts.epochs:
            raise ValueError(
                f"matching reaches expert epoch {last} (max_start_epoch - 1 + expert_epochs) but "
                f"experts.epochs is {config.experts.epochs}"
            )
        if self.blend and config.encoder.scope != "heads":
            raise ValueError("matching.blend mixes frozen features: set encoder.scope=heads")
        if len(self.phases) > config.distill.budget:
            raise ValueError("matching.phases has more phases than distill.budget has pairs")
        lowrank = config.similarity.kind == "lowrank"
        if lowrank and len(self.phases) > config.similarity.rank:
            raise ValueError("matching.phases has more phases than similarity.rank")
        if self.autocast and config.dtype != "float32":
            raise ValueError("matching.autocast=true needs dtype=float32")


class _WithRealBatches(MatchingOptions):
    """A matcher that compares the set with batches of real pairs."""

    batch_options: ClassVar[tuple[str, ...]] = ("real_batch_size",)

    real_batch_size: Count | None = Field(
        None, description="real pairs per iteration; default: experts.batch_size"
    )


class GradientOptions(_WithRealBatches):
    """The gradient on the set should be the gradient on real pairs: DC."""

    reads_experts: ClassVar[bool] = False
    batch_options: ClassVar[tuple[str, ...]] = ("batch_size", "real_batch_size")

    kind: str = "gradient"
    steps: Count = Field(8, description="iterations after which a new network is drawn")
    batch_size: Count = Field(20, description="synthetic pairs per iteration")


class DistributionOptions(_WithRealBatches):
    """The mean embedding of the set should be that of real pairs: DM."""

    reads_experts: ClassVar[bool] = False

    kind: str = "distribution"


class CovarianceOptions(_WithRealBatches):
    """The set should tie images to texts as real pairs do: CovMatch."""

    reads_experts: ClassVar[bool] = False

    kind: str = "covariance"
    steps: Count = Field(50, description="iterations after which a new network is drawn")
    rho: Rate | None = Field(
        None,
        description="ρ, how much stronger synthetic pairs should be tied; default: 2 with a budget "
        "of at most 100 pairs, else 1",
    )
    weight: Weight = Field(0.1, description="λ of the means")


class JointDistributionOptions(_WithRealBatches):
    """Synthetic pairs should lie where real pairs lie, as pairs: MDM."""

    kind: str = "joint-distribution"
    min_start_epoch: Number = Field(5, description="networks are experts from this epoch on")
    max_start_epoch: Count = Field(10, description="and below this one")
    weight: Weight = Field(100.0, description="of the kernel distances")

    def snapshots(self, epochs: int) -> set[int]:
        return set(range(self.min_start_epoch, self.max_start_epoch))

    def check(self, config: Config) -> None:
        super().check(config)
        if self.min_start_epoch >= self.max_start_epoch:
            raise ValueError("matching.min_start_epoch must be below matching.max_start_epoch")
        if self.max_start_epoch - 1 > config.experts.epochs:
            raise ValueError(
                f"matching reaches expert epoch {self.max_start_epoch - 1} (max_start_epoch - 1) "
                f"but experts.epochs is {config.experts.epochs}"
            )


class AnalyticOptions(MatchingOptions):
    """Heads in closed form should be those of real pairs: APM."""

    scopes: ClassVar[tuple[str, ...]] = ("heads",)
    reads_experts: ClassVar[bool] = False

    kind: str = "analytic"
    ridge: Rate = Field(10.0, description="of the closed form, in mean variances of a feature")


class HindsightOptions(_WithRealBatches):
    """The network that training on the set makes should retrieve as all experts do: Hindsight."""

    learns_rates: ClassVar[bool] = True
    step_option: ClassVar[str | None] = "steps"

    kind: str = "hindsight"
    steps: Count = Field(20, description="steps of the protocol that are differentiated")
    real_batch_size: Count | None = Field(
        512, description="real pairs per iteration; null: experts.batch_size"
    )
    teacher_temperature: Rate = Field(
        0.05, description="τ of the experts as teachers; less makes them surer"
    )
    noise: Weight = Field(0.5, description="deviation of normal noise on what real pairs are")

    def snapshots(self, epochs: int) -> set[int]:
        return set(range(epochs + 1))
