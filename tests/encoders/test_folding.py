from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lors.encoders.folding import folded
from lors.encoders.image import has_batch_norm, image_trunk
from lors.system.errors import InputError


def trained(trunk: nn.Module) -> nn.Module:
    """A frozen trunk whose batch norms have something to say."""
    draw = torch.Generator().manual_seed(0)
    for module in trunk.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.3, generator=draw)
            module.running_var.uniform_(0.5, 2, generator=draw)
            module.weight.data.uniform_(0.5, 1.5, generator=draw)
            module.bias.data.normal_(0, 0.2, generator=draw)
    return trunk.eval().requires_grad_(False)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet10t"])
def test_a_folded_trunk_computes_the_same_without_batch_norms(name: str) -> None:
    trunk = trained(image_trunk(name, None, 32)).double()
    lighter = folded(trunk, 32)
    assert has_batch_norm(trunk)
    assert next(lighter.parameters()).dtype == torch.double
    assert not has_batch_norm(lighter)
    images = torch.randn(2, 3, 32, 32, dtype=torch.double, requires_grad=True)
    before, after = trunk(images), lighter(images)
    torch.testing.assert_close(after, before, rtol=1e-9, atol=1e-9)
    there, here = (torch.autograd.grad(y.square().sum(), images)[0] for y in (before, after))
    torch.testing.assert_close(here, there, rtol=1e-8, atol=1e-8 * float(there.abs().max()))


def test_batch_norms_that_no_convolution_feeds_stay() -> None:
    trunk = trained(image_trunk("resnetv2_18", None, 32))
    lighter = folded(trunk, 32)
    assert 0 < _norms(lighter) < _norms(trunk)
    images = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(lighter(images), trunk(images), rtol=1e-3, atol=1e-4)


def test_a_convolution_that_is_also_used_as_it_is_keeps_its_batch_norm() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

        def forward(self, images: Tensor) -> Tensor:
            seen = self.conv(images)
            return (seen + self.norm(seen)).mean((2, 3))

    trunk = trained(Shared())
    assert folded(trunk, 8) is trunk


def test_modules_that_run_twice_stay() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)
            self.third, self.norm, self.own = (
                nn.Conv2d(4, 4, 3),
                nn.BatchNorm2d(4),
                nn.BatchNorm2d(4),
            )

        def forward(self, images: Tensor) -> Tensor:
            seen = self.norm(self.first(images)) + self.norm(self.second(images))
            return self.own(self.third(seen)).mean((2, 3))

    trunk = trained(Twice())
    lighter = folded(trunk, 8)
    assert (_norms(trunk), _norms(lighter)) == (2, 1)
    images = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(lighter(images), trunk(images))


def test_images_that_are_too_small_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"images of 32 px, set another encoder\.image_size"):
        folded(image_trunk("inception_v3", None, 32).eval(), 32)


def _norms(trunk: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in trunk.modules())
