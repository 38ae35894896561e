from __future__ import annotations

from dataclasses import asdict

from benchmarks.speed.recall import embeddings, ratios, sorted_recall
from lors.evaluation.recall import recall


def test_counting_and_sorting_agree() -> None:
    for dim in (4, 32):
        images, texts, owner = embeddings(60, 3, dim)
        ours = list(asdict(recall(images, texts, owner, 16)).values())
        assert ours == sorted_recall(images, texts, owner)
        assert min(ours) > 0


def test_a_line_for_each_dimension() -> None:
    lines = ratios(2, pairs=20, captions=2, dims=(4, 8))
    assert [line.case for line in lines] == [
        "20 images x 40 captions, 4 dimensions",
        "20 images x 40 captions, 8 dimensions",
    ]
    assert all(line.ours > 0 and line.reference > 0 for line in lines)
