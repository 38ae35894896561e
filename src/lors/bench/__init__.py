"""Benchmarks: what is fast here, against the same work done plainly, side by side in one run.

Each module times one thing. It holds the reference, written the way published code does it, and a
function ``bench(rounds)`` that returns its lines.
"""

from __future__ import annotations

from importlib import import_module

from lors.bench.ratio import Ratio

__all__ = ["BENCHMARKS", "Ratio", "bench"]

BENCHMARKS = {
    "meta-gradient": "the gradient of an inner run, against graphs in both passes",
    "unroll": "the gradient through training two heads, against one through all parameters",
    "frozen": "photos learned through a frozen trunk, against one with its batch norms",
    "iteration": "one iteration of distillation, against one that makes everything anew",
    "snapshots": "an expert's start and target, against loading its whole trajectory",
    "recall": "recall@K of the COCO 5K test against sorting every query's scores",
    "evaluation": "networks trained on a set and measured, against sorting val and test each time",
    "selection": "herding and k-center against computing all distances at every pick",
    "loading": "an epoch of batches against decoding every image again",
    "experts": "an epoch of an expert against decoding and encoding every image again",
    "startup": "the help of the command line against importing all that commands use",
}
"""What each module beside this one measures."""


def bench(name: str, rounds: int) -> list[Ratio]:
    """Run one benchmark.

    Args:
        name: one of ``BENCHMARKS``.
        rounds: how often everything is timed.
    """
    module = import_module(f"lors.bench.{name.replace('-', '_')}")
    lines: list[Ratio] = module.bench(rounds)
    return lines
