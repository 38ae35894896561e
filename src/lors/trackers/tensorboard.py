"""TensorBoard: event files in the folder ``tensorboard`` of the run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lors.config import Config
from lors.trackers.tracker import Cell, Tracker

__all__ = ["TensorBoard"]


class TensorBoard(Tracker):
    """Shown by ``tensorboard --logdir RUN``. See https://www.tensorflow.org/tensorboard."""

    package = "tensorboard"

    def __init__(self, out: Path, config: Config, iteration: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(out / "tensorboard"), purge_step=iteration + 1)
        self._writer.add_text("config", f"```yaml\n{config.yaml()}```", iteration + 1)

    def end(self, failed: bool) -> None:
        self._writer.close()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()  # or a killed run would leave a gap before its checkpoint

    def picture(self, step: int, name: str, pixels: np.ndarray) -> None:
        self._writer.add_image(name, pixels, step, dataformats="HWC")

    def table(
        self, step: int, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]
    ) -> None:
        lines = [list(columns), ["---"] * len(columns), *([_text(c) for c in row] for row in rows)]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        self._writer.add_text(name, text, step)


def _text(cell: Cell) -> str:
    """A cell of a Markdown table, in which bars and line ends would start another."""
    text = f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    return " ".join(text.replace("|", "\\|").split())
