from __future__ import annotations

import pytest
import torch

from lors.config import load_config
from lors.encoders import DualEncoder
from lors.losses import wbce
from lors.matching.unroll import HeadSide, PlainSide, train_differentiably
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator
from lors.training import Batch, sgd, train

FEATURES = ["encoder.scope=heads", "encoder.space=features"]
HEADS = {
    "linear": [*FEATURES, "encoder.image_head=linear"],
    "mlp": [*FEATURES, "encoder.image_head=mlp", "encoder.text_head=mlp", "encoder.embed_dim=12"],
    "trunk": [],
}


def case(kind: str) -> tuple[DualEncoder, Batch, list[torch.Tensor], torch.Tensor]:
    """A network, seven pairs, five batches of four, and rates."""
    setting = setting_of(load_config("tiny", ["dtype=float64", *HEADS[kind]]))
    pairs = start_pairs(setting)
    every = torch.arange(7)
    similarity = torch.eye(7).double() + 0.1 * torch.randn(7, 7, generator=generator(1)).double()
    similarity = similarity.to(pairs.images)
    whole = Batch(pairs.images.detach()[every], pairs.texts.detach()[every], similarity)
    whole = Batch(*(tensor.clone().requires_grad_() for tensor in whole))
    order = pairs.passes(4, generator(2), every)
    steps = [next(order).to(similarity.device) for _ in range(5)]
    rates = similarity.new_tensor([0.05, 0.2]).requires_grad_()
    return setting.model("start"), whole, steps, rates


@pytest.mark.parametrize("kind", HEADS)
def test_it_ends_where_training_by_the_protocol_ends(kind: str) -> None:
    model, whole, steps, rates = case(kind)
    sides = train_differentiably(model, whole, steps, wbce, [rates] * 5, 0.9, 0.05)
    outputs = [sides[0](whole.inputs), sides[1](whole.texts)]
    before = model(whole.inputs, whole.texts)
    batches = [Batch(whole.inputs[i], whole.texts[i], whole.similarity[i][:, i]) for i in steps]
    batches = [Batch(*(tensor.detach() for tensor in batch)) for batch in batches]
    train(model, sgd(model, (0.05, 0.2), 0.9, 0.05), batches, wbce)
    after = model(whole.inputs, whole.texts)
    assert (after - before).abs().max() > 0.1
    torch.testing.assert_close(model.logits(*outputs), after)


def test_heads_take_the_short_way_and_trunks_the_long_one() -> None:
    for kind, expected in (("linear", HeadSide), ("mlp", HeadSide), ("trunk", PlainSide)):
        model, whole, steps, rates = case(kind)
        image, text = train_differentiably(model, whole, steps[:1], wbce, [rates])
        assert type(image) is expected
        assert type(text) is HeadSide


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_gradients_of_the_short_way_are_those_of_the_long_one(kind: str) -> None:
    model, whole, steps, rates = case(kind)
    real = [torch.randn(5, t.shape[1], generator=generator(3)).to(t) for t in whole[:2]]
    found = []
    for way in (None, PlainSide):
        sides = train_differentiably(model, whole, steps, wbce, [rates] * 5, 0.9, 0.05, way)
        outputs = [side(part) for side, part in zip(sides, real, strict=True)]
        objective = model.logits(*outputs).diagonal().sum()
        found.append(torch.autograd.grad(objective, [*whole, rates]))
    for short, long in zip(*found, strict=True):
        assert long.abs().max() > 1e-4
        torch.testing.assert_close(short, long)


def test_gradients_are_slopes() -> None:
    model, whole, steps, rates = case("trunk")

    def objective(whole: Batch, rates: torch.Tensor) -> torch.Tensor:
        sides = train_differentiably(model, whole, steps, wbce, [rates] * 5, 0.9, 0.05)
        return model.logits(sides[0](whole.inputs), sides[1](whole.texts)).diagonal().sum()

    found = torch.autograd.grad(objective(whole, rates), [*whole, rates])
    for place, gradient in enumerate(found):
        values = [*whole, rates]
        direction = torch.randn(gradient.shape, generator=generator(place)).to(gradient)
        ends = []
        for sign in (1, -1):
            moved = [v.detach() for v in values]
            moved[place] = moved[place] + sign * 1e-6 * direction
            ends.append(objective(Batch(*moved[:3]), moved[3]).item())
        expected = (gradient * direction).sum().item()
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(expected, rel=1e-3)


def test_what_is_not_learned_may_train_all_the_same() -> None:
    model, whole, steps, _ = case("mlp")
    fixed = Batch(*(tensor.detach() for tensor in whole))
    rates = whole.texts.new_tensor([0.05, 0.2]).requires_grad_()
    sides = train_differentiably(model, fixed, steps, wbce, [rates] * 5)
    sides[0](fixed.inputs).sum().backward()
    assert rates.grad is not None
    assert rates.grad.all()


class Attention(torch.nn.Module):
    """Of one token to itself and a learned one; a parameter is not used at all."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.unused = torch.nn.Linear(6, 6), torch.nn.Parameter(torch.ones(2))
        self.token = torch.nn.Parameter(torch.ones(1, 6))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        keys = torch.stack([inputs, self.token.expand_as(inputs)], 1)[:, None]
        query = self.layer(inputs)[:, None, None]
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(query, keys, keys)[:, 0, 0]


def test_attention_and_unused_parameters_are_no_obstacle() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = DualEncoder(Attention(), Attention())
    parts = [torch.randn(5, 6, generator=generator(0)) for _ in range(2)]
    whole = Batch(*(part.requires_grad_() for part in (*parts, torch.eye(5))))
    steps, rates = [torch.arange(5)] * 3, [torch.tensor([0.1, 0.1])] * 3
    sides = train_differentiably(model, whole, steps, wbce, rates)
    model.logits(sides[0](parts[0]), sides[1](parts[1])).sum().backward()
    assert parts[0].grad is not None
    assert parts[0].grad.isfinite().all()
