from __future__ import annotations

import pytest
import torch

from lors.config import load_config
from lors.experts import experts_of
from lors.matching import matcher_of
from lors.matching.blend import blended
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import generator
from lors.training import Batch

from .differences import assert_gradient_is_slope

HEADS = ["encoder.scope=heads", "encoder.image_head=linear", "dtype=float64"]


def batch() -> Batch:
    return Batch(torch.eye(6), 10 * torch.eye(6)[:, :6], torch.rand(6, 6))


def test_both_sides_are_mixed_alike_and_the_similarity_not_at_all() -> None:
    """Of unit vectors, a mixture shows its share and its partner."""
    mixed = blended(batch(), 1.0, generator(3))
    torch.testing.assert_close(mixed.texts, 10 * mixed.inputs)
    beta = mixed.inputs.diagonal().min()
    partners = mixed.inputs - beta * torch.eye(6)
    assert sorted(partners.argmax(1).tolist()) == list(range(6))  # a permutation
    torch.testing.assert_close(partners.sum(1), (1 - beta).expand(6))
    torch.testing.assert_close(mixed.inputs.mean(0), batch().inputs.mean(0))  # so means stay


def test_every_step_draws_anew_and_the_generator_decides() -> None:
    draw = generator(0)
    given = batch()
    first, second = blended(given, 1.0, draw), blended(given, 1.0, draw)
    again = blended(given, 1.0, generator(0))
    assert torch.equal(first.inputs, again.inputs)
    assert not torch.equal(first.inputs, second.inputs)
    assert first.similarity is given.similarity


def test_a_large_concentration_mixes_half_and_half() -> None:
    mixed = blended(batch(), 1e6, generator(0))
    assert mixed.inputs[mixed.inputs > 0.1].sub(0.5).abs().min() < 0.01


@pytest.mark.parametrize("head", ["linear", "mlp"])  # the closed form, and the recursion
def test_gradients_go_through_the_mixture(head: str) -> None:
    settings = [*HEADS, f"encoder.text_head={head}", "matching.blend=1", "encoder.space=features"]
    setting = setting_of(load_config("tiny", [*settings, "matching.derivative=auto"]))
    matcher, pairs = matcher_of(setting), start_pairs(setting)
    pairs.get_parameter("similarity.right").data += 0.1
    names = ("images", "texts", "similarity.omega", "rates")
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(0))), pairs, names
    )


def test_only_features_of_a_whole_batch_are_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"encoder\.scope=heads"):
        load_config("tiny", ["matching.blend=1"])
    config = load_config("tiny", [*HEADS, "matching.blend=1"])
    setting = setting_of(config)
    experts_of(setting)
    monkeypatch.setattr(Setting, "data_parallel", True)
    with pytest.raises(InputError, match=r"matching\.blend .* --data-parallel"):
        matcher_of(setting)
