"""Weights & Biases: https://docs.wandb.ai. With ``WANDB_MODE=offline``, nothing leaves the run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex

import numpy as np

from lors.config import Config
from lors.files import artifacts
from lors.system.errors import InputError
from lors.trackers.tracker import Cell, Tracker

__all__ = ["WeightsAndBiases"]

STEP = "iteration"
"""The x axis of all curves: W&B's own step cannot go back to where a killed run is resumed."""


class WeightsAndBiases(Tracker):
    """A run of the project ``$WANDB_PROJECT``, or ``lors``; resumed if the run directory has one.

    Raises:
        InputError: W&B refused; nobody is logged in, for example.
    """

    package = "wandb"

    def __init__(self, out: Path, config: Config, iteration: int) -> None:
        import wandb

        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "lors"),
                name=out.name,
                id=_run_id(out / "wandb" / "run-id"),
                resume="allow",
                dir=str(out),
                config=config.model_dump(mode="json"),
                settings=wandb.Settings(console="off"),
            )
        except wandb.Error as error:
            raise InputError(
                f"Weights & Biases does not start ({' '.join(str(error).split())}): "
                "run 'wandb login', or set WANDB_MODE=offline"
            ) from None
        self._run.define_metric("*", step_metric=STEP)

    def end(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({STEP: step, **values})

    def picture(self, step: int, name: str, pixels: np.ndarray) -> None:
        import wandb

        self._run.log({STEP: step, name: wandb.Image(pixels)})

    def table(
        self, step: int, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]
    ) -> None:
        import wandb

        data = [list(row) for row in rows]
        self._run.log({STEP: step, name: wandb.Table(columns=list(columns), data=data)})


def _run_id(path: Path) -> str:
    """The id of the run, drawn once: a resumed run goes on in the same place."""
    if not path.is_file():
        artifacts.write_text(path, token_hex(4))
    return path.read_text("utf-8").strip()
