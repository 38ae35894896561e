"""How much faster lors is than plain code that does the same work.

    python -m benchmarks.speed                          # all benchmarks: make bench
    python -m benchmarks.speed recall startup --rounds 3

One module per benchmark. It holds the reference, written the way published code does it, and a
function ``ratios(rounds)`` that times both by turns in one process.
"""

from __future__ import annotations

__all__ = ["BENCHMARKS"]

BENCHMARKS = {
    "meta-gradient": "the gradient of an inner run, against graphs in both passes",
    "unroll": "Hindsight: the gradient through training two heads, and a whole iteration",
    "frozen": "photos learned through a frozen trunk, against one with its batch norms",
    "iteration": "one iteration of distillation, against one that makes everything anew",
    "snapshots": "an expert's start and target, against loading its whole trajectory",
    "recall": "recall@K of the COCO 5K test against sorting every query's scores",
    "evaluation": "networks trained on a set and measured, against sorting val and test each time",
    "selection": "herding and k-center against computing all distances at every pick",
    "loading": "an epoch of batches against decoding every image again",
    "experts": "an epoch of an expert against decoding and encoding every image again",
    "whole-run": "from photos to an evaluated set, against the published steps",
    "threads": "work of several sizes with 1, 2, 4 and 8 threads, against one",
    "startup": "the help of the command line against importing all that commands use",
}
"""What each benchmark measures. Its module has its name, with underscores."""
