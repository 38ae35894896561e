"""Matchers: how synthetic data is compared with real data."""

from lors.matching.analytic import AnalyticMatcher
from lors.matching.covariance import CovarianceMatcher
from lors.matching.distribution import DistributionMatcher
from lors.matching.gradient import GradientMatcher
from lors.matching.hindsight import HindsightMatcher
from lors.matching.joint_distribution import JointDistributionMatcher
from lors.matching.matcher import Matcher, Setting
from lors.matching.trajectory import TrajectoryMatcher

__all__ = [
    "MATCHERS",
    "AnalyticMatcher",
    "CovarianceMatcher",
    "DistributionMatcher",
    "GradientMatcher",
    "HindsightMatcher",
    "JointDistributionMatcher",
    "Matcher",
    "Setting",
    "TrajectoryMatcher",
]

MATCHERS: dict[str, type[Matcher]] = {
    "trajectory": TrajectoryMatcher,
    "gradient": GradientMatcher,
    "distribution": DistributionMatcher,
    "covariance": CovarianceMatcher,
    "joint-distribution": JointDistributionMatcher,
    "analytic": AnalyticMatcher,
    "hindsight": HindsightMatcher,
}
