from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lors.config import load_config
from lors.evaluation.taught import teachers_similarity
from lors.runs.folders import SET
from lors.runs.pipeline import run
from lors.runs.plan import plan
from lors.sets.distilled import DistilledSet
from lors.setting import setting_of
from tests.conftest import FEATURES


def test_soft_labels_of_selected_pairs_are_paid_for(tmp_path: Path) -> None:
    config = load_config("tiny", [*FEATURES, "evaluate.tried_rates=[0.1]"], "random-teachers")
    config = load_config(config.model_dump(mode="json"), ["experts.count=2"])
    results = run(config, tmp_path, references=False)
    made = DistilledSet.load(tmp_path / SET)
    numbers = made.pairs.pair_numbers()
    assert made.storage() == pytest.approx(len(made) + len(made) ** 2 / numbers)
    assert made.storage() <= 8 < len(made) + 1 + (len(made) + 1) ** 2 / numbers
    assert (results.distilled.pairs, results.distilled.storage) == (len(made), made.storage())
    assert results.distilled.note in ("ence, rate 0.1", "wbce, rate 0.1")
    assert len((tmp_path / "selection.csv").read_text().splitlines()) == len(made) + 1
    assert plan(config).pairs == len(made)
    again = teachers_similarity(setting_of(config), made.pairs).matrix()
    torch.testing.assert_close(made.similarity, again)
