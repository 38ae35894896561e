"""A conformance kit: does a thing of one's own keep the promises that lors relies on?

Each check tries one thing on a few drawn scenes, in seconds. It returns a report that prints a line
for each promise, and raises ``BrokenPromiseError`` with the same lines if one is broken, so that a
test of yours is one line:

    def test_mine():
        lors.testing.check_matcher(Mine)
"""

from lors.testing.losses import check_loss
from lors.testing.matchers import check_matcher
from lors.testing.report import BrokenPromiseError, Promise, Report
from lors.testing.selections import check_selection
from lors.testing.similarities import check_similarity
from lors.testing.starts import check_start

__all__ = [
    "BrokenPromiseError",
    "Promise",
    "Report",
    "check_loss",
    "check_matcher",
    "check_selection",
    "check_similarity",
    "check_start",
]
