from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from lors.encoders.dropout import Dropout, dropping, drops
from lors.encoders.heads import MlpHead, PublishedHead


def dropped(*keys: int | str, share: float = 0.1) -> torch.Tensor:
    with dropping(*keys):
        return Dropout(share)(torch.ones(50, 200))


def test_masks_are_drawn_by_the_keys_and_not_by_a_global_generator() -> None:
    first = dropped("a", 1)
    torch.rand(7)
    assert torch.equal(first, dropped("a", 1))
    assert not torch.equal(first, dropped("a", 2))
    before = torch.random.get_rng_state()
    dropped("a", 3)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_tenth_is_dropped_and_the_mean_stays() -> None:
    values = dropped("share")
    assert (values == 0).float().mean().item() == pytest.approx(0.1, abs=0.01)
    assert values.mean().item() == pytest.approx(1, abs=0.02)
    assert values.unique().tolist() == pytest.approx([0, 1 / 0.9])


def test_two_layers_in_a_block_have_masks_of_their_own() -> None:
    layers = [Dropout(0.5), Dropout(0.5)]
    with dropping("both"):
        first, second = (layer(torch.ones(100)) for layer in layers)
    assert not torch.equal(first, second)


def test_outside_a_block_it_is_that_of_torch() -> None:
    layer = Dropout(0.5)
    assert (layer(torch.ones(100)) == 0).any()
    assert torch.equal(layer.eval()(torch.ones(100)), torch.ones(100))


def test_the_published_head_drops_before_it_adds_and_normalises() -> None:
    head = PublishedHead(6, 8).eval()
    plain = MlpHead(6, 8)
    plain.load_state_dict(head.state_dict())
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(head(x), plain(x))
    assert drops(head)
    assert not drops(plain)
    with dropping("head"):
        found = head(x)
    with dropping("head"):
        mask = Dropout(0.1)(torch.ones(5, 8))
    assert (mask == 0).any()
    weight, bias, layer, layer_bias, norm, norm_bias = head.parameters()  # as it is published
    projected = F.linear(x, weight, bias)
    added = projected + F.linear(F.gelu(projected), layer, layer_bias) * mask
    torch.testing.assert_close(found, F.layer_norm(added, (8,), norm, norm_bias))
