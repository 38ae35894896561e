from __future__ import annotations

import numpy as np

from benchmarks.speed.selection import joint, plain_herding, plain_k_center, ratios, some_pairs
from lors.selection.candidates import Candidates
from lors.selection.herding import herding
from lors.selection.k_center import k_center


def test_ours_and_the_references_choose_the_same_pairs() -> None:
    images, texts = some_pairs(200, 8)
    candidates, features = Candidates(images, texts, np.arange(200)), joint(images, texts)
    assert herding(candidates, 30)[0].tolist() == plain_herding(features, 30)
    assert k_center(candidates, 30)[0].tolist() == plain_k_center(features, 30)


def test_a_line_for_each_method() -> None:
    lines = ratios(2, pairs=50, dim=4, picks=5)
    assert [line.case.partition(":")[0] for line in lines] == ["herding", "k-center"]
