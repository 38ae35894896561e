"""Matchers: how synthetic data is compared with real data."""

from collections.abc import Callable

from lors.matching.matcher import Matcher, Setting
from lors.matching.trajectory import TrajectoryMatcher

__all__ = ["MATCHERS", "Matcher", "Setting", "TrajectoryMatcher"]

MATCHERS: dict[str, Callable[[Setting], Matcher]] = {"trajectory": TrajectoryMatcher}
