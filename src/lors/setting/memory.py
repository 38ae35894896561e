"""What to do where memory runs out: compute more instead of keeping it, or say what to lower."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal
from weakref import WeakSet

import torch

from lors.config import Config
from lors.encoders import DualEncoder
from lors.encoders.compiled import Compiler
from lors.system.errors import OutOfMemoryError, out_of_memory

__all__ = ["Networks", "Work", "explaining_memory", "growing_settings"]

Work = Literal["experts", "matching", "evaluate"]
"""The section whose settings say how large the work is."""

DOING = {"experts": "training experts", "matching": "distilling", "evaluate": "evaluating"}


class Networks:
    """The networks of a setting that are alive.

    Args:
        config: whether they compute activations again on the way back, or train in compiled code.
        say: tells the user if they cannot be compiled.
    """

    def __init__(self, config: Config, say: Callable[[str], None]) -> None:
        self.recompute = config.recompute
        self.compiler = Compiler(say) if config.compile else None
        self._alive: WeakSet[DualEncoder] = WeakSet()

    def add(self, model: DualEncoder) -> None:
        """Treat a new one as the others."""
        self._alive.add(model)
        model.compiler = self.compiler
        if self.recompute:
            model.recompute()

    def spare_memory(self) -> bool:
        """Let them compute activations again from now on; False: they did, or have no trunk."""
        self.recompute = True
        return True in [model.recompute() for model in self._alive]


def growing_settings(config: Config, work: Work) -> list[str]:
    """The settings that the memory of some work grows with; the first is best lowered first.

    >>> import lors
    >>> growing_settings(lors.load_config("tiny"), "matching")
    ['matching.batch_size', 'matching.steps', 'distill.budget', 'encoder.image_size']
    >>> growing_settings(lors.load_config("features"), "experts")
    ['experts.batch_size']
    """
    names = [f"{work}.batch_size"]
    if work == "matching":
        options = config.matching
        names = [*options.batch_options, *filter(None, [options.step_option])]
        names = [*(f"matching.{name}" for name in names), "distill.budget"]
    return [*names, *(["encoder.image_size"] if config.encoder.space == "pixels" else [])]


@contextmanager
def explaining_memory(config: Config, device: torch.device, work: Work) -> Iterator[None]:
    """Turn an allocator's error into a sentence that names the settings to change.

    >>> import lors
    >>> config = lors.load_config("features-lors", ["matching.gradient=unrolled"])
    >>> try:
    ...     with explaining_memory(config, torch.device("cuda:0"), "matching"):
    ...         raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    ... except MemoryError as error:
    ...     print(str(error).partition(", or ")[2])
    set matching.gradient=exact, the same gradient; 'lors plan' says what a configuration takes

    Raises:
        OutOfMemoryError: memory ran out.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise OutOfMemoryError(
            f"out of memory on {device} while {DOING[work]}: lower "
            f"{' or '.join(growing_settings(config, work))}{_instead(config, work)}; "
            "'lors plan' says what a configuration takes"
        ) from None


def _instead(config: Config, work: Work) -> str:
    """Ways to take less that change neither the set nor its training."""
    ways = []
    if work == "matching" and getattr(config.matching, "gradient", None) == "unrolled":
        ways.append("matching.gradient=exact, the same gradient,")
    if work == "matching" and getattr(config.matching, "derivative", None) in ("double", "kept"):
        ways.append("matching.derivative=auto")
    if config.encoder.scope == "all":
        ways.append("encoder.scope=image, which trains no text trunk,")
    if config.dtype == "float64":
        ways.append("dtype=float32")
    return f", or set {' or '.join(ways)}".rstrip(",") if ways else ""
