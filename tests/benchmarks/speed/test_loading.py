from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from benchmarks.speed.loading import MEAN, STD, plain_batches, ratios, write_jpegs, write_split
from lors.encoders import DualEncoder


def test_both_give_the_same_images(tmp_path: Path) -> None:
    files = write_jpegs(tmp_path, 6, width=40)
    model = DualEncoder(nn.Linear(1, 1), nn.Linear(1, 1), normalised_by=(MEAN, STD))
    epoch = list(write_split(files, 16).epoch(model, 4, "one", False, 0))
    order = [int(i) for index, _, _ in epoch for i in index]
    plain = plain_batches(files, order, 4, 16, augmented=False)
    for (_, ours, _), theirs in zip(epoch, plain, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_line_with_augmentation_and_one_without() -> None:
    lines = ratios(2, count=4, size=16, batch_size=2)
    assert [line.case for line in lines] == [
        "4 images at 16 px, as they are",
        "4 images at 16 px, augmented",
    ]
