import torch

from lors.data.augment import augment
from lors.seeding import global_seed


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
