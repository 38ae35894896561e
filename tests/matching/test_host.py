"""What reads no number of a device: tensors of the device ``meta`` have shapes and no numbers."""

from __future__ import annotations

import pytest
import torch

from lors.encoders import Frozen, build_dual_encoder
from lors.losses import LOSSES, nce
from lors.matching.meta_gradient import META_GRADIENTS
from lors.matching.second_order import DERIVATIVES
from lors.runs.self_check import problem
from lors.training import Batch, sgd, train_step
from tests.encoders.test_compiled import CONFIG

META = torch.device("meta")
WAYS = [(gradient, way) for gradient in ("exact", "tesla") for way in DERIVATIVES]


@pytest.mark.parametrize("trunk", [("nf_resnet_tiny", 16), ("resnet10t", 32)])
@pytest.mark.parametrize(("gradient", "way"), [*WAYS, ("unrolled", "double")])
def test_an_inner_run_and_its_gradient_read_nothing(
    gradient: str, way: str, trunk: tuple[str, int]
) -> None:
    found = META_GRADIENTS[gradient](problem(META, DERIVATIVES[way], encoder=trunk))
    tensors = [found.objective, found.rates, *(t for batch in found.batches for t in batch)]
    assert {tensor.device for tensor in tensors} == {META}


def test_a_device_without_numbers_is_read_by_nobody() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.zeros((), device=META).item()


def test_a_training_step_reads_nothing() -> None:
    model = build_dual_encoder(CONFIG, Frozen(text_dim=6), 0).to(META)
    shapes = (4, 3, 16, 16), (4, 6), (4, 4)
    batch = Batch(*(torch.empty(shape, device=META) for shape in shapes))
    assert train_step(model, sgd(model, (0.1, 0.1)), batch, nce).device == META


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_reads_nothing(name: str) -> None:
    logits, similarity = torch.empty(2, 6, 6, device=META).requires_grad_()
    assert torch.autograd.grad(LOSSES[name](logits, similarity), logits)[0].device == META
