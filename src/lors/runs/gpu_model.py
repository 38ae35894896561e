"""What work would take on a GPU that is not here: a model, from counted operations and bytes.

The time of an operation is that of its products at a share of the GPU's published peak, plus that
of the bytes that it reads and writes at a share of its published bandwidth; work of many small
operations takes at least as long as it takes to start them. No GPU was measured for this.
"""

from __future__ import annotations

from typing import NamedTuple

from lors.system.counting import Counts

__all__ = ["GPU", "GPUS", "OVERHEAD", "modelled_memory", "modelled_seconds"]

PRODUCTS, BANDWIDTH = 0.5, 0.7
"""The shares of a published peak that are taken to be reached."""
START = 10e-6
"""Seconds to start an operation from Python, as is usual for PyTorch."""
OVERHEAD = 1e9
"""Bytes that CUDA's context, its libraries' workspaces and torch's rounding are taken to need."""


class GPU(NamedTuple):
    """A GPU, as its maker describes it.

    Args:
        products: float32 operations per second, without tensor cores.
        bandwidth: bytes per second.
        memory: bytes.
    """

    products: float
    bandwidth: float
    memory: float


GPUS = {
    "RTX 4090": GPU(82.6e12, 1008e9, 24 * 2**30),
    "A100 40 GB": GPU(19.5e12, 1555e9, 40 * 2**30),
}


def modelled_seconds(counts: Counts, gpu: GPU) -> float:
    """How long some work takes.

    >>> small, large = Counts(0, 1e6, 1e6, 1000), Counts(0, 82.6e12, 0, 1000)
    >>> [round(modelled_seconds(each, GPUS["RTX 4090"]), 3) for each in (small, large)]
    [0.01, 2.0]
    """
    products = counts.products / (PRODUCTS * gpu.products)
    return max(products + counts.moved / (BANDWIDTH * gpu.bandwidth), counts.calls * START)


def modelled_memory(*counts: Counts | None) -> float:
    """Bytes that the largest of several pieces of work takes, with what CUDA needs."""
    return OVERHEAD + max((each.memory for each in counts if each is not None), default=0)
