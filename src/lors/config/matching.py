"""Matchers as settings: the options of each, and what it needs and does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, ValidationError, create_model

from lors.config.names import MATCHERS
from lors.config.sections import Count, Number, Rate, Section, Weight
from lors.config.sentences import sentence
from lors.system.errors import InputError, shortened, suggestion

if TYPE_CHECKING:
    from lors.config.config import Config

__all__ = [
    "AnalyticOptions",
    "CovarianceOptions",
    "DistributionOptions",
    "GradientOptions",
    "HindsightOptions",
    "JointDistributionOptions",
    "MatchingOptions",
    "PhaseConfig",
    "TrajectoryOptions",
    "matching_options",
    "options_of",
]


class MatchingOptions(Section):
    """The options of one matcher; those of others are refused.

    Args:
        kind: the matcher's name.
        learns_rates: whether a set learns its inner rates; if not, they are tuned on val.
        divisible: whether ranks can divide its batches (``--data-parallel``).
        scopes: the scopes it works in.
        spaces: the spaces it works in.
    """

    learns_rates: ClassVar[bool] = False
    divisible: ClassVar[bool] = False
    scopes: ClassVar[tuple[str, ...]] = ("heads", "image", "all")
    spaces: ClassVar[tuple[str, ...]] = ("pixels", "features")

    kind: str

    def snapshots(self, epochs: int) -> set[int]:
        """The epochs of experts that it reads, of 0 to ``epochs``.

        One that reads none leaves open which are kept: those of the default, so that methods can
        share experts.
        """
        return TrajectoryOptions().snapshots(epochs)

    def last_start(self) -> int:
        """The last epoch of experts that it starts from, or at which to look at them."""
        return TrajectoryOptions().last_start()

    def parts(self) -> int:
        """How many parts of the set are learned apart from each other."""
        return 1

    def idle_loss(self) -> float | None:
        """The matching loss of a set that teaches nothing, where it is known."""
        return None

    def check(self, config: Config) -> None:
        """Refuse options that do not fit the rest of the configuration.

        Raises:
            ValueError: says which and what to do.
        """
        for part, able in (("scope", self.scopes), ("space", self.spaces)):
            if getattr(config.encoder, part) not in able:
                raise ValueError(
                    f"{self.kind} matching needs encoder.{part}={' or '.join(able)}, not "
                    f"{getattr(config.encoder, part)}"
                )


class PhaseConfig(Section):
    """One phase of trajectory matching: where its inner runs start."""

    min_start_epoch: Number = 0
    max_start_epoch: Count


class TrajectoryOptions(MatchingOptions):
    """Training on the set should go where experts went: MTT-VL, TESLA, LoRS and others."""

    learns_rates: ClassVar[bool] = True
    divisible: ClassVar[bool] = True

    kind: str = "trajectory"
    gradient: Literal["exact", "tesla", "unrolled"] = Field(
        "exact", description="the meta-gradient: exact, tesla (λ frozen) or unrolled"
    )
    derivative: Literal["auto", "double", "forward", "central"] = Field(
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
        return 2.0 if self.ratio == "separate" else 1.0

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

    real_batch_size: Count | None = Field(
        None, description="real pairs per iteration; default: experts.batch_size"
    )


class GradientOptions(_WithRealBatches):
    """The gradient on the set should be the gradient on real pairs: DC."""

    kind: str = "gradient"
    steps: Count = Field(8, description="iterations after which a new network is drawn")
    batch_size: Count = Field(20, description="synthetic pairs per iteration")


class DistributionOptions(_WithRealBatches):
    """The mean embedding of the set should be that of real pairs: DM."""

    kind: str = "distribution"


class CovarianceOptions(_WithRealBatches):
    """The set should tie images to texts as real pairs do: CovMatch."""

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

    kind: str = "analytic"
    ridge: Rate = Field(10.0, description="of the closed form, in mean variances of a feature")


class HindsightOptions(_WithRealBatches):
    """The network that training on the set makes should retrieve as all experts do: Hindsight."""

    learns_rates: ClassVar[bool] = True

    kind: str = "hindsight"
    steps: Count = Field(20, description="steps of the protocol that are differentiated")
    real_batch_size: Count | None = Field(
        512, description="real pairs per iteration; none: experts.batch_size"
    )
    teacher_temperature: Rate = Field(
        0.05, description="τ of the experts as teachers; less makes them surer"
    )
    noise: Weight = Field(0.5, description="deviation of normal noise on what real pairs are")

    def snapshots(self, epochs: int) -> set[int]:
        return set(range(epochs + 1))


_BUILT_IN: dict[str, type[MatchingOptions]] = {
    "trajectory": TrajectoryOptions,
    "gradient": GradientOptions,
    "distribution": DistributionOptions,
    "covariance": CovarianceOptions,
    "joint-distribution": JointDistributionOptions,
    "analytic": AnalyticOptions,
    "hindsight": HindsightOptions,
}


def options_of(kind: str) -> type[MatchingOptions]:
    """The options of the matcher of that name, known without importing it.

    Raises:
        InputError: there is no such matcher.
    """
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    return _named(getattr(MATCHERS.choose(kind), "Options", MatchingOptions), kind)


@cache
def _named(options: type[MatchingOptions], kind: str) -> type[MatchingOptions]:
    """The options of a matcher from outside, which does not say its name again."""
    return create_model(options.__name__, __base__=options, kind=(str, kind))


def matching_options(values: Any) -> MatchingOptions:
    """The options that a configuration gives, checked; trajectory matching if it names no matcher.

    Raises:
        InputError: an unknown matcher, an option of another one, or a value out of range.
    """
    if isinstance(values, MatchingOptions):
        return values
    if not isinstance(values, Mapping):
        raise InputError("setting 'matching' should be a section")
    kind = values.get("kind", "trajectory")
    if not isinstance(kind, str):
        raise InputError(
            f"setting 'matching.kind' should be a name (it is {shortened(repr(kind))})"
        )
    options = options_of(kind)
    for name in values:
        if name not in options.model_fields:
            raise InputError(_unknown(str(name), kind, options))
    try:
        return options.model_validate(values)
    except ValidationError as error:
        raise InputError(sentence(error, options, "matching.")) from None


def _unknown(name: str, kind: str, options: type[MatchingOptions]) -> str:
    owners = [other for other, each in _BUILT_IN.items() if name in each.model_fields]
    where = f"matching.{shortened(name)}"
    if owners:
        return (
            f"{where!r} is an option of the matcher {' and '.join(owners)}, not of {kind}: leave "
            f"it out, or set matching.kind={owners[0]}"
        )
    return f"unknown setting {where!r}{suggestion(name, options.model_fields)}"
