"""The defaults learn on embeddings of any scale and number of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lors
from benchmarks.scales import KINDS, latent_pairs

QUICK: dict[str, Any] = {
    "iterations": 30,
    "evaluate_every": 30,
    "experts": {"count": 2, "epochs": 5},
    "evaluate": {"seeds": 1, "epochs": 50, "tried_losses": ("nce",), "tried_rates": (0.1, 0.3)},
    "progress": False,
}


@pytest.mark.parametrize(("dim", "kind"), [(16, "x 0.001"), (1024, "offset")])
def test_both_defaults_beat_random_pairs_by_half_at_any_scale_and_dimension(
    dim: int, kind: str
) -> None:
    """With the paper's rates of 100 and more, LoRS diverged here, or ended at chance."""
    sides = [KINDS[kind](side) for side in latent_pairs(900, dim)]
    train, test = ([side[part] for side in sides] for part in (np.s_[:700], np.s_[700:]))

    def reached(method: str) -> float:
        small = lors.distill(*train, pairs=20, method=method, **QUICK)
        return lors.evaluate(small, test=(test[0], test[1]), progress=False).mean

    least = 1.5 * reached("random")
    assert reached("hindsight") > least
    assert reached("lors") > least
