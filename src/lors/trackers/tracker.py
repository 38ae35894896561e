"""What every tracker can be told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from lors.config import Config

__all__ = ["Cell", "Tracker"]

Cell = str | int | float


class Tracker(ABC):
    """Someone outside who keeps the course of a run; leaving the ``with`` block ends it.

    Args:
        out: the run directory, below which everything is written.
        config: of the run, shown with it.
        iteration: how far the run is. A killed run may have told of later ones: they come again.
    """

    package: ClassVar[str | None] = None
    """The package that it needs, which is also the extra of lors that brings it."""

    @abstractmethod
    def __init__(self, out: Path, config: Config, iteration: int) -> None: ...

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end(failed=kind is not None)

    @abstractmethod
    def end(self, failed: bool) -> None:
        """Nothing more will be told."""

    @abstractmethod
    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """The numbers of one iteration."""

    @abstractmethod
    def picture(self, step: int, name: str, pixels: np.ndarray) -> None:
        """An image. Shape: (h, w, 3), uint8"""

    @abstractmethod
    def table(
        self, step: int, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]
    ) -> None:
        """A table; another of the same name replaces it."""
