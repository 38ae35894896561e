"""Warnings, each given once, about what usually means that a run leads nowhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from lors.config import Config
from lors.sets.synthetic import RATE_FLOOR, SyntheticPairs

__all__ = ["Health"]

PATIENCE = 20
"""Iterations that a loss may be too high for, and after which S is looked at again."""
CHANCE_FACTOR, ABOVE_CHANCE = 2.0, 0.1
"""Near chance is less than twice it, and less than a tenth of the way from it to 100."""


class Health:
    """Looks at a run while it goes on.

    Args:
        config: of the run.
        chance: the validation recall of a network that knows nothing.
        say: tells the user.
    """

    def __init__(self, config: Config, chance: float, say: Callable[[str], None]) -> None:
        self.config, self.chance, self._say = config, chance, say
        self._losses: deque[float] = deque(maxlen=PATIENCE)
        self._said: set[str] = set()
        self._looked = 0

    def look(self, record: dict[str, Any], synthetic: SyntheticPairs) -> None:
        """Warn about what this iteration shows.

        Args:
            record: its metrics.
            synthetic: the set after it.
        """
        self._look_at_loss(record["loss"])
        for side in ("image", "text"):
            if record[f"rate_{side}"] <= RATE_FLOOR * (1 + 1e-6):
                self._warn(
                    f"{side} rate",
                    f"the inner {side} rate has fallen to its floor of {RATE_FLOOR:g}: that side "
                    "hardly trains; lower distill.learning_rates.rates or raise distill.inner_rate",
                )
        self._looked += 1
        if self._looked % PATIENCE == 1 and (synthetic.similarity.diagonal() < 0).any():
            self._warn(
                "diagonal",
                "the diagonal of S has turned negative: a pair counts as a non-pair; lower "
                "distill.learning_rates.similarity",
            )
        near = min(CHANCE_FACTOR * self.chance, self.chance + ABOVE_CHANCE * (100 - self.chance))
        if record.get("recall", near) < near:
            self._warn(
                "recall",
                f"the recall on val is {record['recall']:.2f}, near chance ({self.chance:.2f}): "
                "networks learn nothing from the set; raise distill.budget or distill.iterations",
            )

    def _look_at_loss(self, loss: float) -> None:
        self._losses.append(loss)
        idle = self.config.matching.idle_loss()
        if idle is not None and len(self._losses) == PATIENCE and min(self._losses) > idle:
            self._warn(
                "loss",
                f"the matching loss has been above {idle:g} for {PATIENCE} iterations: "
                "training on the set leads away from the experts; lower distill.inner_rate or "
                "distill.learning_rates",
            )

    def _warn(self, about: str, text: str) -> None:
        """Say a warning, unless there was one about the same, with whatever numbers in it."""
        if about not in self._said:
            self._said.add(about)
            self._say(f"Warning: {text}.")
