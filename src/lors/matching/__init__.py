"""Matchers: how synthetic data is compared with real data."""

from lors.matching.distribution import DistributionMatcher
from lors.matching.gradient import GradientMatcher
from lors.matching.matcher import Matcher, Setting
from lors.matching.trajectory import TrajectoryMatcher

__all__ = [
    "MATCHERS",
    "DistributionMatcher",
    "GradientMatcher",
    "Matcher",
    "Setting",
    "TrajectoryMatcher",
]

MATCHERS: dict[str, type[Matcher]] = {
    "trajectory": TrajectoryMatcher,
    "gradient": GradientMatcher,
    "distribution": DistributionMatcher,
}
