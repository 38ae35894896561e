from __future__ import annotations

import numpy as np
import torch

from lors.trackers.pictures import heat_map, side_by_side


def test_the_largest_value_off_the_diagonal_has_the_full_colour() -> None:
    picture = heat_map(np.array([[5.0, -0.2], [0.1, 0.0]]))
    side = len(picture) // 2
    assert picture[0, 0].tolist() == [255, 0, 0]
    assert picture[0, side].tolist() == [0, 0, 255]
    assert picture[side, 0].tolist() == [255, 128, 128]
    assert picture[side, side].tolist() == [255, 255, 255]


def test_the_identity_is_red_on_white() -> None:
    assert {tuple(pixel) for row in heat_map(np.eye(3)) for pixel in row} == {
        (255, 0, 0),
        (255, 255, 255),
    }
    assert heat_map(np.eye(1)).shape == (512, 512, 3)


def test_images_stand_in_a_grid_unchanged() -> None:
    images = torch.arange(5 * 3 * 4 * 4, dtype=torch.uint8).view(5, 3, 4, 4)
    grid = side_by_side(images)
    factor = 512 // (3 * 5 + 1)
    assert grid.shape == (11 * factor, 16 * factor, 3)
    first = grid[::factor, ::factor][1:5, 1:5]
    assert (first == images[0].permute(1, 2, 0).numpy()).all()
