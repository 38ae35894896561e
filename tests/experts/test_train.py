from __future__ import annotations

import pytest
import torch

from lors.experts import train_expert
from lors.losses import nce
from lors.workbench import Workbench


def expert(bench: Workbench, number: int) -> torch.Tensor:
    return train_expert(
        bench.model("expert", number),
        bench.real["train"],
        bench.config.experts,
        bench.config.data,
        number,
    )


def test_a_trajectory_starts_at_the_initial_weights_and_is_reproducible(bench: Workbench) -> None:
    first, again, other = expert(bench, 0), expert(bench, 0), expert(bench, 1)
    assert first.shape == (bench.config.experts.epochs + 1, sum(bench.flat.sides))
    assert torch.equal(first[0], bench.flat.flatten(bench.model("expert", 0)))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_one_epoch_is_plain_sgd_on_infonce(bench: Workbench) -> None:
    config = bench.config.experts
    theta = expert(bench, 0)[0].requires_grad_()
    keys = (config.seed, "expert", 0, 0)
    for images, texts in bench.real["train"].epoch(
        bench.flat.model, config.batch_size, "one", False, *keys
    ):
        (g,) = torch.autograd.grad(nce(bench.flat(theta, images, texts)), theta)
        theta = (theta - config.rate * g).detach().requires_grad_()
    torch.testing.assert_close(expert(bench, 0)[1], theta.detach(), rtol=1e-4, atol=1e-5)


def test_experts_already_there_are_not_trained_again(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(*_: object) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr("lors.workbench.train_expert", again)
    assert not bench.experts().missing(bench.config.experts.count)
