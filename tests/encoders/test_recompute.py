from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from lors.config import EncoderConfig
from lors.encoders import FlatModel, Frozen, build_dual_encoder
from lors.encoders.image import image_trunk
from lors.losses import wbce
from lors.matching.kinks import has_kinks
from lors.matching.meta_gradient import META_GRADIENTS, Inner
from lors.matching.second_order import DERIVATIVES, Derivative, one_sided
from lors.system.counting import PeakBytes
from lors.training import Batch

TRUNKS = [("nf_resnet_tiny", 16), ("resnet10t", 32), ("vit_tiny_patch16_224", 32)]
"""Smooth, with ReLUs, pooling and batch norms, and with attention."""


def inner(image: str, size: int, derivative: Derivative, recompute: bool, m: int = 4) -> Inner:
    """Two inner steps on noise, at single precision."""
    config = EncoderConfig(image=image, image_size=size)
    model = build_dual_encoder(config, Frozen(text_dim=6), 0)
    flat, draw = FlatModel(model), torch.Generator().manual_seed(1)
    theta = flat.flatten(model)
    target = theta + 0.01 * torch.randn(theta.shape, generator=draw)
    tensors = [torch.randn(m, *shape, generator=draw) for shape in ((3, size, size), (6,))]
    batch = Batch(*(t.requires_grad_() for t in (*tensors, torch.eye(m))))
    if recompute:
        assert model.recompute()
        assert not model.recompute()

    def loss(theta: Tensor, batch: Batch) -> Tensor:
        return wbce(flat(theta, batch.inputs, batch.texts), batch.similarity)

    return Inner(
        loss,
        theta,
        [batch, batch],
        torch.tensor([0.01, 0.02]),
        flat.sides,
        lambda theta: (theta - target).square().sum(),
        derivative,
    )


def same(gradient: str, image: str, size: int, derivative: Derivative) -> bool:
    """Whether a meta-gradient has the same bits with activations that are computed again."""
    ways = [META_GRADIENTS[gradient](inner(image, size, derivative, r)) for r in (False, True)]
    first, second = ([way.rates, *(t for b in way.batches for t in b)] for way in ways)
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("trunk", TRUNKS)
@pytest.mark.parametrize("gradient", ["exact", "tesla"])
def test_differences_have_the_same_bits(trunk: tuple[str, int], gradient: str) -> None:
    assert same(gradient, *trunk, one_sided)


@pytest.mark.parametrize("way", ["double", "forward", "central", "kept"])
def test_every_derivative_has_the_same_bits(way: str) -> None:
    assert same("exact", "nf_resnet_tiny", 16, DERIVATIVES[way])


def test_unrolled_gradients_have_the_same_bits() -> None:
    assert same("unrolled", "nf_resnet_tiny", 16, DERIVATIVES["double"])


def test_blocks_take_the_branches_that_were_noted() -> None:
    """Without them, a block that runs again would switch ReLUs which the first pass did not."""
    run = inner("resnet10t", 32, one_sided, recompute=True)
    leaf = run.theta.detach().requires_grad_()
    assert has_kinks(lambda: run.loss(leaf, run.batches[0]))
    far = partial(one_sided, step=1.0)  # so long a step switches many
    assert same("exact", "resnet10t", 32, far)


def peak(recompute: bool, derivative: Derivative) -> int:
    run = inner("mobilenetv2_035", 64, derivative, recompute, m=16)
    with PeakBytes() as counting:
        META_GRADIENTS["tesla"](run)
    return counting.peak


def test_memory_is_less() -> None:
    assert peak(True, one_sided) < 0.8 * peak(False, one_sided)


def test_frozen_trunks_have_the_same_gradient_at_less_memory() -> None:
    settings = {"image": "nf_resnet_tiny", "image_size": 32, "image_head": "linear"}
    config = EncoderConfig(scope="heads", **settings)
    trunk = image_trunk(*config.trunk())
    model = build_dual_encoder(config, Frozen(6, 128, trunk), 0)
    images = torch.randn(32, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    found, peaks = [], []
    for _ in range(2):
        leaf = images.clone().requires_grad_()
        with PeakBytes() as counting:
            (gradient,) = torch.autograd.grad(model.freeze(leaf).square().sum(), leaf)
        found.append(gradient)
        peaks.append(counting.peak)
        model.recompute()
    assert torch.equal(*found)
    assert peaks[1] < 0.7 * peaks[0]
