from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.encoders import DualEncoder, build_dual_encoder
from lors.experts import train_expert
from lors.experts.of_setting import expert_origin
from lors.losses import nce
from lors.setting import Setting, setting_of
from lors.system.errors import InputError
from tests import devices


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
    assert torch.equal(first[0], setting.flat.flatten(setting.model("expert", 0)).cpu())
    assert torch.equal(first, again)
    assert np.array_equal(learned, learned_again)
    assert not torch.equal(first, other)


def test_one_epoch_is_plain_sgd_on_infonce_and_notes_what_was_learned(setting: Setting) -> None:
    config = setting.config.experts
    trajectory, learned = expert(setting, 0)
    theta = trajectory[0].to(setting.device).requires_grad_()
    keys = (config.seed, "expert", 0, 0)
    for index, images, texts in setting.real["train"].epoch(
        setting.flat.model, config.batch_size, "one", False, *keys
    ):
        logits = setting.flat(theta, images, texts)
        # Whether its caption was retrieved first.
        right = logits.argmax(1).cpu().numpy() == np.arange(len(index))
        assert np.array_equal(learned[0, index], right)
        (g,) = torch.autograd.grad(nce(logits), theta)
        theta = (theta - config.rate * g).detach().requires_grad_()
    torch.testing.assert_close(trajectory[1], theta.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(devices.name() not in devices.AUTOCAST, reason="no mixed precision there")
def test_experts_in_bfloat16_go_nearly_where_others_go(setting: Setting) -> None:
    """Relative to how far they go; they are other experts, and are kept apart."""
    mixed = setting_of(load_config("tiny", ["experts.autocast=true"]))
    (theirs, _), (ours, _) = expert(setting, 0), expert(mixed, 0)
    assert ours.dtype == torch.float32
    off = (ours[-1] - theirs[-1]).norm() / (theirs[-1] - theirs[0]).norm()
    assert 0 < off < devices.AUTOCAST[devices.name()]
    assert expert_origin(mixed) != expert_origin(setting)
    assert "autocast" not in expert_origin(setting)["experts"]
    with pytest.raises(InputError, match="needs dtype=float32"):
        load_config("tiny", ["experts.autocast=true", "dtype=float64"])


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


def test_the_published_loss_at_twice_the_rate_makes_the_same_steps(setting: Setting) -> None:
    config = setting.config.experts
    given = (setting.real["train"], setting.config.data, 0)
    ends = []
    for loss, rate in (("nce", config.rate), ("nce-published", 2 * config.rate)):
        ours = config.model_copy(update={"loss": loss, "rate": rate, "epochs": 1})
        real, data, number = given
        ends.append(list(train_expert(setting.model("e"), real, ours, data, number))[-1].theta)
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-6)


def test_only_full_batches_if_asked_for(setting: Setting) -> None:
    real = setting.real["train"]
    size = len(real) // 2 - 1
    sizes = [
        [len(index) for index, *_ in real.epoch(setting.flat.model, size, "one", False, 0, **how)]
        for how in ({}, {"drop_last": True})
    ]
    assert sizes[0][:2] == sizes[1] == [size, size]
    assert len(sizes[0]) == 3


def test_experts_train_with_dropout_and_go_on_to_the_same_bits(setting: Setting) -> None:
    encoder = setting.config.encoder.model_copy(update={"text_head": "mlp-published"})
    given = (setting.real["train"], setting.config.experts, setting.config.data, 0)

    def model(head: str) -> DualEncoder:
        config = encoder.model_copy(update={"text_head": head})
        return build_dual_encoder(config, setting.frozen, 0).to(setting.device)

    whole = list(train_expert(model("mlp-published"), *given))
    plain = list(train_expert(model("mlp"), *given))
    assert torch.equal(whole[0].theta, plain[0].theta)
    assert not torch.equal(whole[1].theta, plain[1].theta)
    again = list(train_expert(model("mlp-published"), *given, whole[:2]))
    assert torch.equal(whole[-1].theta, again[-1].theta)


def test_experts_of_earlier_versions_are_still_found(setting: Setting) -> None:
    """What they were never asked is no part of what they depend on, unless it is not the usual."""
    origin = expert_origin(setting)
    later = {"loss", "drop_last", "normalisation", "image_outputs", "clean_captions"}
    assert not later & {name for part in ("experts", "encoder", "data") for name in origin[part]}
    changes = ["experts.loss=nce-published", "experts.drop_last=true", "data.clean_captions=true"]
    for change in [*changes, "encoder.normalisation=clip", "encoder.image_outputs=logits"]:
        assert expert_origin(setting_of(load_config("tiny", [change]))) != origin
