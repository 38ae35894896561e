"""A run that both trackers watched, killed and resumed on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from lors import load_config
from lors.distillation.loop import Distillation
from lors.runs.pipeline import run


@pytest.fixture(scope="session")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logged iteration 3 twice: killed after it, and resumed from the checkpoint at 2."""
    pytest.importorskip("tensorboard")
    pytest.importorskip("wandb")
    out = tmp_path_factory.mktemp("runs") / "tracked"
    config = load_config("tiny", ["trackers=[tensorboard,wandb]"])
    step = Distillation.step

    def dies(self: Distillation, matcher: object) -> float:
        if self.iteration == 3:
            raise MemoryError("killed")
        return step(self, matcher)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        with pytest.MonkeyPatch.context() as deadly:
            deadly.setattr(Distillation, "step", dies)
            with pytest.raises(MemoryError):
                run(config, out, references=False)
        run(config, out, references=False)
    return out
