from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lors.runs.opened import Run
from lors.setting.workbench import Workbench
from lors.show.analysis.neighbours import nearest, nearest_captions, nearest_images, neighbour_rows


@pytest.mark.parametrize("chunk", [1, 3, 50])
def test_nearest_in_chunks_is_a_full_sort(chunk: int) -> None:
    draw = torch.Generator().manual_seed(0)
    queries, rows = torch.randn(4, 6, generator=draw), torch.randn(20, 6, generator=draw)
    found = nearest(queries, rows.split(chunk), 5)
    cosine = torch.cosine_similarity(queries[:, None], rows[None], dim=2)
    assert (found.index == cosine.argsort(dim=1, descending=True)[:, :5].numpy()).all()
    np.testing.assert_allclose(found.cosine, cosine.sort(dim=1, descending=True)[0][:, :5], 1e-5)


def test_fewer_candidates_than_asked_for() -> None:
    found = nearest(torch.eye(2), [torch.eye(2)], 5)
    assert found.index.tolist() == [[0, 1], [1, 0]]


def test_real_pairs_are_nearest_to_themselves(bench: Workbench) -> None:
    images = np.array([3, 0, 11])
    captions = np.searchsorted(bench.real["train"].owner, images)
    pairs = bench.plain_pairs(images, captions)
    assert nearest_images(bench, pairs.images).index[:, 0].tolist() == images.tolist()
    found = nearest_captions(bench, pairs.texts)
    np.testing.assert_allclose(found.cosine[:, 0], 1, rtol=1e-5)
    texts = bench.pairs.splits["train"].captions  # one caption may occur more than once
    assert [texts[i] for i in found.index[:, 0]] == [texts[i] for i in captions]


def test_rows_tell_of_every_pair_before_and_after(tiny_run: Path) -> None:
    opened = Run(tiny_run)
    rows = neighbour_rows(opened, 2)
    assert len(rows) == len(opened.distilled) * 2 * 2 * 2
    of_first = [row for row in rows if row["pair"] == 0 and row["place"] == 1]
    assert [(row["when"], row["of"]) for row in of_first] == [
        ("before", "caption"),
        ("before", "image"),
        ("after", "caption"),
        ("after", "image"),
    ]
    assert of_first[0]["cosine"] == pytest.approx(1, abs=1e-5)  # it starts as a real pair
    split = opened.bench.pairs.splits["train"]
    image = of_first[1]["nearest"]
    assert of_first[1]["words"] == split.captions[list(split.owner).index(image)]
