"""Random numbers as a function of names, not of history.

Every random choice draws from ``generator(seed, what, step)``. A resumed run therefore continues
with the same bits without having to save the state of any generator.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["derive_seed", "draw_seed", "generator", "global_seed"]

_one_thread = threading.RLock()


def derive_seed(*keys: int | str) -> int:
    """A 63-bit seed from any keys; different keys give independent streams."""
    digest = hashlib.sha256(repr(keys).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(*keys: int | str) -> torch.Generator:
    """A CPU generator seeded by the keys."""
    return torch.Generator().manual_seed(derive_seed(*keys))


def draw_seed(generator: torch.Generator) -> int:
    """A seed for what offers no generator argument."""
    return int(torch.randint(2**62, (), generator=generator))


@contextmanager
def global_seed(*keys: int | str) -> Iterator[None]:
    """Seed torch's global generator inside the block and restore it afterwards.

    For code that offers no generator argument: module initialisation, torchvision transforms. One
    thread at a time is inside.
    """
    with _one_thread, torch.random.fork_rng():
        # Without a GPU, torch.manual_seed writes down the whole stack, in case one appears later.
        seed = torch.manual_seed if torch.accelerator.is_available() else _seed_cpu
        seed(derive_seed(*keys))
        yield


def _seed_cpu(seed: int) -> torch.Generator:
    return torch.default_generator.manual_seed(seed)
