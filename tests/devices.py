"""The suite on another device: ``LORS_DEVICE=cuda make test``, or ``mps``, ``xla``, ``pretend``.

Without that variable, or with ``cpu``, nothing here changes anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests import pretend

__all__ = [
    "AUTOCAST",
    "FOLDERS",
    "LEARNED",
    "TOLERANCES",
    "loosened",
    "name",
    "prepare",
    "skip_elsewhere",
]

FOLDERS = (
    *("distillation", "evaluation", "experts", "matching", "selection", "sets", "setting"),
    *("starts", "test_any_device.py", "test_losses.py", "test_similarity.py"),
)
"""What computes, and runs on any device. The rest reads files, starts commands, shows results."""

TOLERANCES: dict[tuple[str, str], float] = {
    ("cuda", "float32"): 1e-4,
    ("cuda", "float64"): 1e-7,
    ("mps", "float32"): 1e-3,
    ("pretend", "float32"): 1e-5,
    ("pretend", "float64"): 1e-7,
    ("xla", "float32"): 1e-3,
    ("xla", "float64"): 1e-7,
}
"""How far two ways to the same number may be apart, relative to it; on the CPU a test says it."""

LEARNED: dict[str, float] = {"cuda": 1e-2, "mps": 1e-2, "pretend": 1e-4, "xla": 1e-3}
"""How far the losses of two iterations may be from those on the CPU, relatively; CUDA has TF32."""

AUTOCAST: dict[str, float] = {"cpu": 0.05, "cuda": 0.05, "mps": 0.05, "xla": 0.05}
"""How far meta-gradients of bfloat16 steps may be from those of full precision, relatively."""


def name() -> str:
    """The kind of device that the tests run on."""
    return os.environ.get("LORS_DEVICE", "cpu").partition(":")[0]


def prepare() -> None:
    """Make the device known, and let it compute the same bits twice, where it can.

    Where an operation has no way to do that, torch warns and goes on: on CUDA these are sums into
    places by index (``index_add``, ``scatter_add``) and the derivatives of some poolings.
    """
    if name() == pretend.NAME:
        pretend.register()
    elif name() != "cpu":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)


def skip_elsewhere(item: pytest.Item) -> None:
    """Leave out what does not depend on the device, or needs the CPU."""
    if name() == "cpu":
        return
    place = Path(item.path).relative_to(Path(__file__).parents[1]).parts
    if place[0] != "tests" or place[1] not in FOLDERS:
        item.add_marker(pytest.mark.skip(reason="the same on any device"))
    elif mark := item.get_closest_marker("cpu"):
        item.add_marker(pytest.mark.skip(reason=f"CPU only: {mark.args[0]}"))


@contextmanager
def loosened() -> Iterator[None]:
    """``torch.testing.assert_close`` compares numbers of any devices, as close as they can be."""
    strict: Callable[..., None] = torch.testing.assert_close

    def close(ours: Any, theirs: Any, **options: Any) -> None:
        dtype = str(getattr(ours, "dtype", "torch.float32")).removeprefix("torch.")
        least = TOLERANCES.get((name(), dtype), 0.0)
        if "rtol" in options or least:
            options["rtol"] = max(options.get("rtol", 0.0), least)
            options["atol"] = max(options.get("atol", 0.0), least / 10)
        strict(_here(ours), _here(theirs), **options)

    with pytest.MonkeyPatch.context() as patch:
        if name() != "cpu":
            patch.setattr("torch.testing.assert_close", close)
        yield


def _here(given: Any) -> Any:
    if isinstance(given, Tensor):
        return given.detach().cpu()
    if isinstance(given, dict):
        return {key: _here(value) for key, value in given.items()}
    return [_here(each) for each in given] if isinstance(given, (list, tuple)) else given
