"""A matcher with a known answer, and distillations of three pairs of two numbers."""

from __future__ import annotations

from typing import Any

import torch

from lors.config import DistillConfig
from lors.distillation.loop import Distillation
from lors.sets.synthetic import SyntheticPairs

ADAM = {"optimizer": "adam", "schedule": "cosine"}


class Pull:
    """Pulls images towards one, with noise from the generator, and texts towards zero.

    The noise grows with every call, which it must remember.
    """

    def __init__(self, setting: object = None, options: object = None) -> None:
        self.state: dict[str, torch.Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        calls = self.state.get("calls", torch.tensor(1.0))
        self.state = {"calls": calls + 1}
        noise = 0.001 * calls * torch.randn(synthetic.images.shape, generator=generator)
        loss = ((synthetic.images - 1 - noise) ** 2).mean() + (synthetic.texts**2).mean()
        loss.backward()
        return loss.item()


def state(iterations: int = 40, **settings: Any) -> Distillation:
    """Images of zeros and texts of ones, at outer rates of one."""
    given = {"learning_rates": {"images": 1.0, "texts": 1.0}, **settings}
    config = DistillConfig.model_validate({"iterations": iterations, **given})
    pairs = SyntheticPairs(torch.zeros(3, 2), torch.ones(3, 2))
    return Distillation(pairs, config, seed=0)
