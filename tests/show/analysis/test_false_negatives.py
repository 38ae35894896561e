from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lors.runs.opened import Run
from lors.setting import setting_of
from lors.show.analysis.false_negatives import (
    auc,
    find_false_negatives,
    groups,
    replicas,
    summary,
    toy,
    values,
)
from lors.starts import start_pairs
from lors.system.errors import InputError


def test_replicas_stand_beside_each_other() -> None:
    planted = replicas(6)
    assert planted.sum() == 6
    assert [int(row.argmax()) for row in planted] == [1, 0, 3, 2, 5, 4]
    assert not replicas(5)[4].any()  # the last of an odd number stands alone


def test_the_groups_of_the_paper() -> None:
    """100 synthetic pairs: 100 true positives, 100 false negatives, 9,800 true negatives."""
    sizes = {name: len(group) for name, group in groups(np.zeros((100, 100))).items()}
    assert sizes == {"true positives": 100, "false negatives": 100, "true negatives": 9800}


def test_auc_of_a_planted_matrix_is_one_and_of_the_identity_one_half() -> None:
    similarity = np.eye(8) + 0.2 * replicas(8) - 0.1
    assert auc(groups(similarity)) == 1
    assert auc(groups(-similarity)) == 0
    assert auc(groups(np.eye(8))) == 0.5


@pytest.mark.parametrize("kind", ["full", "lowrank"])
def test_a_start_from_replicas_holds_every_pair_twice(kind: str) -> None:
    start = start_pairs(setting_of(toy("tiny", ["distill.budget=8", f"similarity.kind={kind}"])))
    for side in (start.images, start.texts):
        even = len(side) // 2 * 2
        assert torch.equal(side[0:even:2], side[1:even:2])
        assert len(torch.unique(side[0:even:2], dim=0)) == even // 2


def test_the_experiment_is_a_run_per_seed(tmp_path: Path) -> None:
    config = toy("tiny", ["distill.budget=8", "distill.iterations=2", "evaluate.epochs=2"])
    rows = find_false_negatives(config, tmp_path, range(2))
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["auc"] != rows[1]["auc"]
    assert rows[0]["true positives"] > rows[0]["true negatives"]
    assert summary(rows)["auc"] == pytest.approx(np.mean([row["auc"] for row in rows]))
    assert auc(values(Run(tmp_path / "seed-1"))) == rows[1]["auc"]
    assert find_false_negatives(config, tmp_path, range(2)) == rows


def test_mistakes_are_sentences(tiny_run: Path) -> None:
    with pytest.raises(InputError, match="learns nothing off the diagonal"):
        toy("tiny", ["similarity.kind=diagonal"])
    with pytest.raises(InputError, match="no planted false negatives"):
        values(Run(tiny_run))
    with pytest.raises(InputError, match="at least 3 pairs"):
        auc(groups(np.eye(2)))


def test_replicas_stay_replicas_in_batches_of_the_whole_set(tmp_path: Path) -> None:
    """By symmetry; S keeps it too. In small batches, or by differences, they would drift apart."""
    sizes = ["distill.budget=8", "distill.iterations=3", "evaluate.epochs=2"]
    config = toy("tiny", [*sizes, "matching.derivative=double"])
    find_false_negatives(config, tmp_path, [0])
    made = Run(tmp_path / "seed-0").distilled.pairs
    even = len(made) // 2 * 2
    torch.testing.assert_close(made.images[0:even:2], made.images[1:even:2], rtol=1e-4, atol=1e-4)
    similarity = made.similarity.matrix()[:even, :even]
    swapped = torch.arange(even) ^ 1
    torch.testing.assert_close(similarity, similarity[swapped][:, swapped], rtol=1e-4, atol=1e-6)
