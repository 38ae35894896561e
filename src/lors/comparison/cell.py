"""One cell of a comparison."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lors.config import Config, load_config
from lors.config.types import Control
from lors.system.errors import InputError

__all__ = ["Cell", "cell_name"]


@dataclass(frozen=True)
class Cell:
    """One run of one cell: what to run, and where its result goes.

    Args:
        row: label.
        column: label.
        seed: of the run.
        config: what to distil or select.
        evaluate: overrides for the evaluation of the finished set; none: as it was made.
        control: what the finished set has to do without.
    """

    row: str
    column: str
    seed: int
    config: Config
    evaluate: tuple[str, ...] = ()
    control: Control | None = None

    @property
    def read_again(self) -> bool:
        """Whether it shows another evaluation of the set than that of its run."""
        return bool(self.evaluate) or self.control is not None

    def evaluated(self) -> Config:
        """The configuration that the finished set is evaluated with."""
        if not self.evaluate:
            return self.config
        return load_config(self.config.model_dump(mode="json"), self.evaluate)

    def check(self) -> None:
        """Refuse an evaluation with another image trunk that would say nothing."""
        own, changed = self.config.encoder, self.evaluated().encoder
        if changed.image == own.image:
            return
        where = f"{self.row}, {self.column}"
        if own.space == "features":
            raise InputError(
                f"{where}: a set of features cannot be evaluated with another image trunk, only "
                "one of pixels can"
            )
        if own.scope == "heads" and own.image_weights and not changed.image_weights:
            raise InputError(
                f"{where}: a frozen trunk without weights sees nothing: give --image-weights hub, "
                "or a file"
            )

    @property
    def name(self) -> str:
        """A name for files and folders."""
        return cell_name(self.row, self.column, self.seed)


def cell_name(row: str, column: str, seed: int) -> str:
    """What the files and folders of a cell are called.

    >>> cell_name("100 pairs", "LoRS (wBCE)", 0)
    '100-pairs-lors-wbce-seed-0'
    """
    return re.sub(r"[^a-z0-9]+", "-", f"{row} {column} seed {seed}".lower())
