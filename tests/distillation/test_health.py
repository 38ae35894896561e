from __future__ import annotations

import pytest
import torch

from lors.config import Config, load_config
from lors.distillation.health import PATIENCE, Health
from lors.sets.synthetic import RATE_FLOOR, SyntheticPairs
from lors.similarity import Diagonal

FINE = {"loss": 0.9, "rate_image": 0.1, "rate_text": 0.1, "recall": 20.0}


def pairs(diagonal: float = 1.0) -> SyntheticPairs:
    similarity = Diagonal(3)
    with torch.no_grad():
        similarity.omega[1] = diagonal
    return SyntheticPairs(torch.zeros(3, 2), torch.zeros(3, 2), similarity)


def warnings(
    records: list[dict[str, float]], config: Config, set_: SyntheticPairs | None = None
) -> list[str]:
    said: list[str] = []
    health = Health(config, chance=1.0, say=said.append)
    for record in records:
        health.look(record, set_ or pairs())
    return said


def test_a_run_that_goes_well_is_not_warned_about(tiny: Config) -> None:
    bad = {**FINE, "loss": 1.5}
    assert warnings([FINE, *[bad] * (PATIENCE - 1), FINE, *[bad] * 5], tiny) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"loss": 1.1}, "leads away from the experts"),
        ({"rate_image": RATE_FLOOR}, "inner image rate has fallen to its floor"),
        ({"rate_text": RATE_FLOOR}, "inner text rate has fallen to its floor"),
        ({"recall": 1.9}, r"near chance"),
    ],
)
def test_what_goes_wrong_is_said_once(
    change: dict[str, float], sentence: str, tiny: Config
) -> None:
    (said,) = warnings([{**FINE, **change}] * (2 * PATIENCE), tiny)
    assert sentence in said


def test_a_warning_with_another_number_is_not_repeated(tiny: Config) -> None:
    assert len(warnings([{**FINE, "recall": recall} for recall in (1.9, 1.5, 1.1)], tiny)) == 1


def test_a_negative_diagonal_is_said(tiny: Config) -> None:
    (said,) = warnings([FINE, FINE], tiny, pairs(-0.1))
    assert "diagonal of S has turned negative" in said


def test_two_ratios_start_at_two_and_other_matchers_have_no_such_start() -> None:
    records = [{**FINE, "loss": 1.5}] * PATIENCE
    assert warnings(records, load_config("tiny", ["matching.ratio=separate"])) == []
    assert warnings(records, load_config("tiny", ["matching.kind=distribution"])) == []
