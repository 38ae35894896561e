from __future__ import annotations

import base64

import numpy as np
import torch

from lors.show.report.similarity import matrix_of, mined_blocks
from lors.similarity import Identity, LowRank


def learned(pairs: int) -> np.ndarray:
    draw = torch.Generator().manual_seed(0)
    similarity = LowRank(pairs, rank=2, generator=draw)
    with torch.no_grad():
        similarity.right.normal_(0, 0.1, generator=draw)
        similarity.omega.normal_(1, 0.1, generator=draw)
    return matrix_of(similarity)


def test_the_heat_map_holds_the_matrix() -> None:
    matrix = learned(30)
    heat_map = mined_blocks(matrix)[0]
    residual = heat_map["residual"]
    steps = np.frombuffer(base64.b64decode(residual["steps"]), "<i2").reshape(30, 30)
    found = steps * residual["step"] + np.diag(heat_map["diagonal"])
    np.testing.assert_allclose(found, matrix, atol=np.abs(matrix).max() / 30000)


def test_the_largest_finds_come_first() -> None:
    matrix = learned(30)
    entries = mined_blocks(matrix)[-1]["entries"]
    off_diagonal = matrix - np.diag(np.full(30, np.inf))
    assert (
        entries[0]["value"] == off_diagonal.max() == matrix[entries[0]["image"], entries[0]["text"]]
    )
    values = [entry["value"] for entry in entries]
    assert values == sorted(values, reverse=True)


def test_the_identity_has_nothing_to_show() -> None:
    assert mined_blocks(matrix_of(Identity(5))) == []


def test_a_learned_diagonal_is_shown_alone() -> None:
    (heat_map,) = mined_blocks(np.diag([1.0, 1.5, 0.5]))
    assert heat_map["residual"] is None
    assert heat_map["diagonal"] == [1.0, 1.5, 0.5]


def test_five_hundred_pairs_stay_small() -> None:
    assert len(mined_blocks(learned(500))[0]["residual"]["steps"]) < 700_000


def test_two_pairs_have_two_finds() -> None:
    assert len(mined_blocks(learned(2))[-1]["entries"]) == 2
