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
    "RelationOptions",
    "TrajectoryOptions",
]


class PhaseConfig(Section):
    """One phase of trajectory matching: where its inner runs start.

    ``last_epoch`` is where its shortcuts end (default: with the experts), and ``above`` the budget
    from which on there is such a phase.
    """

    min_start_epoch: Number = 0
    max_start_epoch: Count
    last_epoch: Count | None = None
    above: Number = 0


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
    starts: Literal["joint", "independent", "paced"] = Field(
        "joint",
        description="one start epoch for both sides; one drawn for each (independent); or one for "
        "each, where the range of the side that moves less reaches farther (paced: AMD)",
    )
    shortcut: bool = Field(
        False, description="match straight lines from an expert's start to its end (PTM-ST)"
    )
    phases: tuple[PhaseConfig, ...] = Field(
        (),
        max_length=100,
        description="ranges of start epochs, one after the other, each for its own part of the set "
        "(PTM-ST), perhaps with the epoch where its shortcuts end and the budget above which there "
        "is such a phase; default: one range for all",
    )
    blend: Weight = Field(
        0.0,
        description="mix the pairs of an inner step with β ~ Beta(a, a) for this a (RepBlend); "
        "0: do not",
    )

    def phases_within(self, budget: int) -> tuple[PhaseConfig, ...]:
        """The phases of a budget: none where there is one range for all."""
        return tuple(phase for phase in self.phases if budget > phase.above)

    def start_ranges(self) -> list[tuple[int, int]]:
        """The first start epoch and the one beyond the last, of each phase."""
        ranges = self.phases or (self,)
        return [(each.min_start_epoch, each.max_start_epoch) for each in ranges]

    def snapshots(self, epochs: int) -> set[int]:
        if self.shortcut or self.starts == "paced":
            return set(range(epochs + 1))
        starts = {epoch for bounds in self.start_ranges() for epoch in range(*bounds)}
        return starts | {start + self.expert_epochs for start in starts}

    def last_start(self) -> int:
        return self.max_start_epoch - 1

    def parts(self, budget: int) -> int:
        return max(1, len(self.phases_within(budget)))

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
        for phase in self.phases:
            end = config.experts.epochs if phase.last_epoch is None else phase.last_epoch
            if not phase.max_start_epoch - 1 + self.expert_epochs <= end <= config.experts.epochs:
                raise ValueError(
                    f"a phase ends at epoch {end}: set last_epoch of matching.phases between "
                    "max_start_epoch - 1 + expert_epochs and experts.epochs"
                )
        if self.blend and config.encoder.scope != "heads":
            raise ValueError("matching.blend mixes frozen features: set encoder.scope=heads")
        phases = len(self.phases_within(config.distill.budget))
        if self.phases and not phases:
            raise ValueError("no phase of matching.phases is for this distill.budget: lower above")
        if phases > config.distill.budget:
            raise ValueError("matching.phases has more phases than distill.budget has pairs")
        lowrank = config.similarity.kind == "lowrank"
        if lowrank and phases > config.similarity.rank:
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


class _WithExpertNetworks(_WithRealBatches):
    """A matcher that looks at pairs with networks that are snapshots of experts."""

    min_start_epoch: Number = Field(1, description="networks are experts from this epoch on")
    max_start_epoch: Count = Field(11, description="and below this one, as far as experts have it")

    def epochs_within(self, epochs: int) -> tuple[int, int]:
        """The first epoch and the one beyond the last, of experts with so many."""
        return self.min_start_epoch, min(self.max_start_epoch, epochs + 1)

    def snapshots(self, epochs: int) -> set[int]:
        return set(range(*self.epochs_within(epochs)))

    def check(self, config: Config) -> None:
        super().check(config)
        if self.min_start_epoch >= self.max_start_epoch:
            raise ValueError("matching.min_start_epoch must be below matching.max_start_epoch")
        if self.min_start_epoch > config.experts.epochs:
            raise ValueError(
                f"matching begins at expert epoch {self.min_start_epoch} (min_start_epoch) but "
                f"experts.epochs is {config.experts.epochs}"
            )


class JointDistributionOptions(_WithExpertNetworks):
    """Synthetic pairs should lie where real pairs lie, as pairs: MDM."""

    of_methods: ClassVar[tuple[str, ...]] = ("kernel", "networks")

    kind: str = "joint-distribution"
    kernel: Literal["geodesic", "median"] = Field(
        "median",
        description="a Gaussian of angles, of width σ, and the root of the distance (MDM); or of "
        "distances, of their median as width, and the squared distance",
    )
    sigma: Rate = Field(0.5, description="σ of the geodesic kernel, an angle")
    networks: Literal["two experts", "one expert"] = Field(
        "one expert",
        description="the middle between two experts (MDM), or a point drawn between two snapshots "
        "of one",
    )
    weight: Weight = Field(0.8, description="λ of each of the two kernel distances")


class RelationOptions(_WithExpertNetworks):
    """The set should relate images to texts as real pairs do, in hyperbolic space: RAHA."""

    kind: str = "relation"
    real_batch_size: Count | None = Field(
        512, description="real pairs per iteration; null: experts.batch_size"
    )
    rank: Count = Field(32, description="k: how many directions are the range of the relation")
    curvature: Rate = Field(1.0, description="c: the space has the curvature -c")
    weight: Weight = Field(1.0, description="λ of the residual")


class AnalyticOptions(MatchingOptions):
    """Heads in closed form should be those of real pairs: APM."""

    scopes: ClassVar[tuple[str, ...]] = ("heads",)
    reads_experts: ClassVar[bool] = False
    of_methods: ClassVar[tuple[str, ...]] = ("target",)

    kind: str = "analytic"
    target: Literal["covariances", "heads"] = Field(
        "heads", description="match the covariances that heads follow from, or the heads"
    )
    subsets: Count = Field(
        5, description="covariances: captions of an image that are used in turn, one per iteration"
    )
    ridge: Rate = Field(
        10.0, description="heads: of the closed form, in mean variances of a feature"
    )


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
