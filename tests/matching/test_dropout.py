"""What dropout does in a meta-gradient: all passes of a step have the same masks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from lors.config import load_config
from lors.encoders import DualEncoder, FlatModel
from lors.encoders.dropout import Dropout
from lors.encoders.heads import PublishedHead
from lors.losses import wbce_published
from lors.matching import matcher_of
from lors.matching.meta_gradient import Inner, MetaGradient, exact, tesla, unrolled
from lors.matching.second_order import DERIVATIVES
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator
from lors.training import Batch


def tensors(*shapes: tuple[int, ...]) -> list[Tensor]:
    rng = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=rng, dtype=torch.double) for shape in shapes]


torch.manual_seed(0)
FLAT = FlatModel(DualEncoder(nn.Linear(5, 6), PublishedHead(4, 6)).double())
IMAGES, TEXTS, MOVED = tensors((3, 7, 5), (3, 7, 4), (sum(FLAT.sides),))
START = FLAT.flatten(FLAT.model)


def run(
    derivative: str,
    seed: int | None,
    texts: Tensor,
    loss: Callable[[Tensor, Batch], Tensor] = lambda theta, batch: wbce_published(
        FLAT(theta, batch.inputs, batch.texts), batch.similarity
    ),
) -> Inner:
    """An inner run of three steps."""
    batches = [
        Batch(image, text.requires_grad_(), torch.eye(7, dtype=torch.double))
        for image, text in zip(IMAGES, texts.clone(), strict=True)
    ]
    target = START + 0.1 * MOVED
    return Inner(
        loss,
        START,
        batches,
        torch.tensor([0.05, 0.08], dtype=torch.double),
        FLAT.sides,
        lambda theta: (theta - target).square().sum(),
        DERIVATIVES[derivative],
        dropout=seed,
    )


def end(
    way: Callable[[Inner], MetaGradient], derivative: str, seed: int | None, texts: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The objective and the gradients of the texts and the rates."""
    found = way(run(derivative, seed, texts))
    return found.objective, torch.stack([batch.texts for batch in found.batches]), found.rates


def test_the_exact_gradient_is_that_of_the_run_as_it_was() -> None:
    """A difference of two whole runs with the same masks."""
    (direction,) = tensors(tuple(TEXTS.shape))
    _, slope, _ = end(exact, "double", 5, TEXTS)
    above, below = (end(exact, "double", 5, TEXTS + e * direction)[0] for e in (1e-5, -1e-5))
    assert ((above - below) / 2e-5).item() == pytest.approx((slope * direction).sum().item(), 1e-6)


@pytest.mark.parametrize(
    ("derivative", "error"),
    [("double", 1e-9), ("forward", 1e-9), ("kept", 1e-9), ("central", 1e-5), ("one-sided", 1e-3)],
)
def test_every_derivative_gives_the_gradient_of_plain_autograd(
    derivative: str, error: float
) -> None:
    ours, reference = end(exact, derivative, 5, TEXTS), end(unrolled, "double", 5, TEXTS)
    for a, b in zip(ours, reference, strict=True):
        assert ((a - b).norm() / b.norm()).item() < error
    frozen, plain = end(tesla, derivative, 5, TEXTS), end(tesla, "double", 5, TEXTS)
    for a, b in zip(frozen, plain, strict=True):
        assert ((a - b).norm() / b.norm()).item() < error


def test_each_run_and_each_step_has_masks_of_its_own() -> None:
    ends = [end(tesla, "double", seed, TEXTS)[0].item() for seed in (None, 1, 2)]
    assert len(set(ends)) == 3
    inner = run("double", 1, TEXTS, lambda theta, batch: Dropout(0.1)(batch.texts))
    first, second = (inner.loss_of(step)(START, inner.batches[0]) for step in (0, 1))
    assert not torch.equal(first, second)
    assert torch.equal(first, inner.loss_of(0)(START, inner.batches[0]))


def test_matching_drops_and_gives_the_same_bits_twice() -> None:
    def gains(head: str) -> Tensor:
        setting = setting_of(load_config("tiny", [f"encoder.text_head={head}"]))
        pairs = start_pairs(setting)
        matcher_of(setting).backward(pairs, generator(0))
        assert pairs.texts.grad is not None
        return pairs.texts.grad

    assert torch.equal(gains("mlp-published"), gains("mlp-published"))
    assert not torch.equal(gains("mlp-published"), gains("mlp"))
