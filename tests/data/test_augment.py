from collections.abc import Callable

import pytest
import torch
from torchvision.transforms import v2

from lors.data.augment import OPERATIONS, augment, rand_augment
from lors.system.seeding import global_seed


def test_augmentation_is_drawn_per_image_and_seeded() -> None:
    image = torch.arange(3 * 16 * 16, dtype=torch.uint8).view(1, 3, 16, 16)
    with global_seed(0):
        first = augment(image.repeat(8, 1, 1, 1))
    with global_seed(0):
        again = augment(image.repeat(8, 1, 1, 1))
    assert torch.equal(first, again)
    assert first.shape == (8, 3, 16, 16)
    assert first.dtype == torch.uint8
    assert len({tuple(i.flatten().tolist()) for i in first}) > 1


def test_no_images_stay_none() -> None:
    assert augment(torch.empty(0, 3, 8, 8, dtype=torch.uint8)).shape == (0, 3, 8, 8)


def test_the_operations_are_those_of_torchvision() -> None:
    with global_seed(0):
        image = torch.randint(20, 256, (3, 20, 20), dtype=torch.uint8)
        theirs = v2.RandAugment(num_ops=1, magnitude=5)
        expected = torch.stack([theirs(image) for _ in range(400)]).unique(dim=0)
        found = rand_augment(image.repeat(400, 1, 1, 1)).unique(dim=0)
    assert len(found) == len(expected) == 23  # 14 operations, of which 9 have a direction
    apart = (found[:, None].int() - expected.int()).abs().amax((2, 3, 4))
    assert max(apart.amin(0).max(), apart.amin(1).max()) <= 1  # rounding


@pytest.mark.parametrize("operation", OPERATIONS)
def test_images_in_a_batch_do_not_touch_each_other(
    operation: Callable[[torch.Tensor, float], torch.Tensor],
) -> None:
    with global_seed(0):
        images = torch.randint(256, (6, 3, 16, 16), dtype=torch.uint8)
    assert torch.equal(operation(images, 0.5)[:3], operation(images[:3], 0.5))
