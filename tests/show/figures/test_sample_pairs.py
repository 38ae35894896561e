from __future__ import annotations

from pathlib import Path

import numpy as np

from lors.runs.opened import Run
from lors.show.figures.canvas import style
from lors.show.figures.sample_pairs import make, ranked_pairs


def test_pairs_are_ranked_off_the_diagonal() -> None:
    similarity = np.array([[9.0, 0.3, 0.0], [-0.4, 9.0, 0.1], [0.2, -0.1, -9.0]])
    found = ranked_pairs(similarity, 2)
    assert found["largest"] == [(0, 1), (2, 0)]
    assert found["smallest"] == [(1, 0), (2, 1)]
    assert found["middle"] == [(1, 2), (0, 2)]
    assert ranked_pairs(similarity, 100)["largest"] == found["largest"]
    assert ranked_pairs(np.eye(1), 2) == {"largest": [], "middle": [], "smallest": []}


def test_similarities_fall_from_group_to_group(tiny_run: Path, embeddings_run: Path) -> None:
    for path in (tiny_run, embeddings_run):
        with style():
            rows = make(Run(path)).rows
        groups = {row["group"]: row["similarity"] for row in rows}
        assert groups["largest"] > groups["middle"] > groups["smallest"]
        assert all(row["image"] != row["text"] for row in rows)
