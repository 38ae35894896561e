from __future__ import annotations

from itertools import islice

import numpy as np
import torch

from lors.experts import train_expert
from lors.losses import nce
from lors.setting import Setting


def expert(setting: Setting, number: int) -> tuple[torch.Tensor, np.ndarray]:
    snapshots = train_expert(
        setting.model("expert", number),
        setting.real["train"],
        setting.config.experts,
        setting.config.data,
        number,
    )
    thetas, learned = zip(*snapshots, strict=True)
    return torch.stack(thetas), np.stack(learned[1:])


def test_a_trajectory_starts_at_the_initial_weights_and_is_reproducible(setting: Setting) -> None:
    (first, learned), (again, learned_again) = expert(setting, 0), expert(setting, 0)
    other, _ = expert(setting, 1)
    assert first.shape == (setting.config.experts.epochs + 1, sum(setting.flat.sides))
    assert torch.equal(first[0], setting.flat.flatten(setting.model("expert", 0)))
    assert torch.equal(first, again)
    assert np.array_equal(learned, learned_again)
    assert not torch.equal(first, other)


def test_one_epoch_is_plain_sgd_on_infonce_and_notes_what_was_learned(setting: Setting) -> None:
    config = setting.config.experts
    trajectory, learned = expert(setting, 0)
    theta = trajectory[0].requires_grad_()
    keys = (config.seed, "expert", 0, 0)
    for index, images, texts in setting.real["train"].epoch(
        setting.flat.model, config.batch_size, "one", False, *keys
    ):
        logits = setting.flat(theta, images, texts)
        right = logits.argmax(1).numpy() == np.arange(len(index))  # its caption retrieved first
        assert np.array_equal(learned[0, index], right)
        (g,) = torch.autograd.grad(nce(logits), theta)
        theta = (theta - config.rate * g).detach().requires_grad_()
    torch.testing.assert_close(trajectory[1], theta.detach(), rtol=1e-4, atol=1e-5)


def test_the_two_sides_can_have_rates_of_their_own(setting: Setting) -> None:
    config = setting.config.experts.model_copy(update={"epochs": 1, "rate": 1e-9, "text_rate": 0.1})
    model = setting.model("expert", 0)
    snapshots = train_expert(model, setting.real["train"], config, setting.config.data, 0)
    start, end = (snapshot.theta for snapshot in snapshots)
    image, _ = setting.flat.sides
    torch.testing.assert_close(start[:image], end[:image], rtol=0, atol=1e-6)
    assert (end - start)[image:].norm() > 0.01


def test_training_that_was_cut_short_goes_on_to_the_same_bits(setting: Setting) -> None:
    whole, _ = expert(setting, 0)
    given = (setting.real["train"], setting.config.experts, setting.config.data, 0)
    begun = list(islice(train_expert(setting.model("expert", 0), *given), 2))
    again = list(train_expert(setting.model("another"), *given, begun))
    assert torch.equal(torch.stack([snapshot.theta for snapshot in again]), whole)
