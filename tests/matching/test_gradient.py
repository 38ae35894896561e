from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.config.matchers import GradientOptions
from lors.distillation.loop import Distillation
from lors.encoders import DualEncoder, EncodedSplit
from lors.matching import matcher_of
from lors.matching.gradient import GradientMatcher, gradient_distance
from lors.runs import checkpoints
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator
from tests.conftest import altered

from .differences import assert_gradient_is_slope

KIND = "matching.kind=gradient"
LEARNED = ("images", "texts", "similarity.omega", "similarity.left", "similarity.right")


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", [KIND, "dtype=float64"]))


@pytest.fixture(scope="module")
def setting() -> Setting:
    return setting_of(load_config("tiny", [KIND]))


def start(setting: Setting) -> SyntheticPairs:
    """Synthetic pairs whose similarity is not the identity, so that all its parts count."""
    pairs = start_pairs(setting)
    right = pairs.get_parameter("similarity.right")
    right.data += 0.1 * torch.randn(right.shape, generator=generator("right")).to(right)
    return pairs


def matrix(pairs: SyntheticPairs) -> Tensor:
    return pairs.similarity.matrix().detach()


def test_distance_by_hand() -> None:
    real = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    synthetic = torch.tensor([[3.0, 0.0], [0.0, -1.0], [1.0, 0.0]])
    expected = 0 + 2 + (1 - 0.5**0.5)
    assert gradient_distance([real], [synthetic]).item() == pytest.approx(expected)


def test_distance_equals_a_loop_over_outputs(rng: torch.Generator) -> None:
    shapes = [(3, 4, 2, 2), (5, 6), (7,), (4, 1, 1, 1), (), (1, 3, 2)]
    real, synthetic = ([torch.randn(s, generator=rng) for s in shapes] for _ in range(2))
    expected = 0.0
    for index in (0, 1, 5):  # the others have no more than one number per output
        for a, b in zip(real[index].numpy(), synthetic[index].numpy(), strict=True):
            expected += 1 - np.vdot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))
    assert gradient_distance(real, synthetic).item() == pytest.approx(expected)


def test_a_row_without_direction_is_not_pulled() -> None:
    real = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    synthetic = torch.tensor([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [1.0, 1.0]], requires_grad=True)
    distance = gradient_distance([real], [synthetic])
    distance.backward()
    assert distance.item() == pytest.approx(1 + 1 + 0 + (1 - 0.5**0.5))
    assert synthetic.grad is not None
    assert not synthetic.grad[:3].any()
    assert synthetic.grad[3].isfinite().all()


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_gradient_that_is_not_finite_shows(value: float) -> None:
    broken = torch.tensor([[value, 1.0]])
    for other in ([[1.0, 1.0]], [[0.0, 0.0]]):
        assert gradient_distance([torch.tensor(other)], [broken]).isnan()


@pytest.mark.parametrize("trained", [0, 1])
def test_gradient_equals_central_differences(double: Setting, trained: int) -> None:
    pairs, matcher = start(double), matcher_of(double)
    for step in range(trained):
        matcher.backward(pairs, generator(step))
    state = matcher.state

    def match(pairs: SyntheticPairs) -> float:
        matcher.state = state
        return float(matcher.backward(pairs, generator("same")))

    assert_gradient_is_slope(match, pairs, LEARNED)
    assert pairs.rates.grad is None


class Known:
    """A matcher whose batches are the whole of two small sets, and whose network is known."""

    def __init__(self, setting: Setting) -> None:
        first = np.searchsorted(setting.real["train"].owner, np.arange(7))
        real = setting.real["train"]
        self.real = EncodedSplit(real.images[:7], real.texts[first], np.arange(7))
        self.setting, self.drawn = setting, 0
        known = altered(setting, real={"train": self.real}, model=self.model)
        self.matcher = GradientMatcher(known, GradientOptions(steps=3, batch_size=8))

    def model(self, *keys: int | str) -> DualEncoder:
        self.drawn += 1
        return self.setting.model("known", self.drawn)

    def inputs(self) -> tuple[Tensor, Tensor]:
        model, index = self.setting.flat.model, np.arange(7)
        return self.real.inputs(index, model), self.real.captions(index, model)


def test_the_distance_is_that_of_the_networks_own_gradients(double: Setting) -> None:
    known, pairs = Known(double), start(double)
    found = float(known.matcher.backward(pairs, generator(0)))
    model = double.model("known", 1)
    gradients = []
    own = torch.eye(7).to(pairs.images)
    batches = [(*known.inputs(), own), (pairs.images, pairs.texts, matrix(pairs))]
    for images, texts, similarity in batches:
        model.zero_grad()
        double.loss(model(images, texts), similarity).backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    expected = gradient_distance(*gradients)
    assert found == pytest.approx(expected.item(), rel=1e-9)


def test_real_pairs_are_at_no_distance_from_themselves(double: Setting) -> None:
    known = Known(double)
    pairs = SyntheticPairs(*known.inputs()).double()
    assert float(known.matcher.backward(pairs, generator(0))) == pytest.approx(0, abs=1e-9)


def test_each_step_trains_the_network_and_an_episode_ends_with_a_new_one(
    double: Setting,
) -> None:
    known, pairs = Known(double), start(double)
    pairs.rates.data = pairs.rates.new_tensor([0.05, 0.2])
    for step in range(5):
        episode = step // 3 + 1
        if step % 3 == 0:
            model = double.model("known", episode)
            image, text = model.sides()
            rates = [{"params": image, "lr": 0.05}, {"params": text, "lr": 0.2}]
            optimizer = torch.optim.SGD(rates)
        known.matcher.backward(pairs, generator(step))
        optimizer.zero_grad()
        double.loss(model(pairs.images, pairs.texts), matrix(pairs)).backward()
        optimizer.step()
        state = known.matcher.state
        torch.testing.assert_close(state["theta"], double.flat.flatten(model))
        assert state["step"].item() == (step + 1) % 3
        assert known.drawn == episode


def test_matching_is_a_function_of_generator_and_state(setting: Setting) -> None:
    results = []
    for key in (0, 0, 1):
        matcher, pairs = matcher_of(setting), start_pairs(setting)
        loss = float(matcher.backward(pairs, generator(key)))
        results.append((loss, pairs.images.grad, matcher.state["theta"]))
    first, again, other = results
    assert first[0] == again[0] != other[0]
    assert first[1] is not None
    assert again[1] is not None
    assert torch.equal(first[1], again[1])
    assert torch.equal(first[2], again[2])


def test_going_on_from_a_copied_state_gives_the_same_bits(setting: Setting) -> None:
    pairs, matcher = start_pairs(setting), matcher_of(setting)
    states, losses = [], []
    for step in range(5):
        states.append({name: tensor.clone() for name, tensor in matcher.state.items()})
        losses.append(float(matcher.backward(pairs, generator(step))))
    assert len(set(losses)) == 5
    for cut in range(5):
        other = matcher_of(setting)
        other.state = states[cut]
        assert float(other.backward(pairs, generator(cut))) == losses[cut]


def test_a_run_resumed_within_an_episode_ends_with_the_same_bits(
    setting: Setting, tmp_path: Path
) -> None:
    def run() -> Distillation:
        return Distillation(start_pairs(setting), setting.config.distill, 0)

    whole, matcher = run(), matcher_of(setting)
    for step in range(5):
        if step == 2:
            checkpoints.save(tmp_path / "checkpoint.safetensors", whole)
        whole.step(matcher)
    resumed, matcher = run(), matcher_of(setting)
    checkpoints.load(tmp_path / "checkpoint.safetensors", resumed)
    for _ in range(3):
        resumed.step(matcher)
    assert torch.equal(resumed.synthetic.images, whole.synthetic.images)
    assert torch.equal(resumed.synthetic.texts, whole.synthetic.texts)


def test_fixed_parts_receive_nothing(setting: Setting) -> None:
    pairs, matcher = start_pairs(setting), matcher_of(setting)
    pairs.texts.requires_grad_(False)
    matcher.backward(pairs, generator(0))
    assert pairs.texts.grad is None
    assert pairs.images.grad is not None
    pairs = start_pairs(setting).requires_grad_(False)
    pairs.rates.requires_grad_()
    assert float(matcher.backward(pairs, generator(1))) > 0
    assert all(p.grad is None for p in pairs.parameters())


def test_matching_brings_the_gradients_together() -> None:
    rates = {"images": 0.01, "texts": 0.003, "similarity": 1e-5}
    settings = [f"distill.learning_rates.{part}={rate}" for part, rate in rates.items()]
    settings += ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
    setting = setting_of(load_config("tiny", [KIND, *settings]))
    run = Distillation(start_pairs(setting), setting.config.distill, 0)

    def distance() -> float:
        """Over four episodes that are always the same."""
        matcher = matcher_of(setting)
        return sum(float(matcher.backward(run.synthetic, generator("same", i))) for i in range(12))

    before, matcher = distance(), matcher_of(setting)
    for _ in range(20):
        run.step(matcher)
    assert distance() < before


@pytest.mark.parametrize(
    "settings",
    [
        ["encoder.image_head=mlp", "encoder.scope=heads"],
        ["encoder.image_head=mlp", "encoder.scope=heads", "encoder.space=features"],
        ["dtype=bfloat16"],
    ],
)
def test_scopes_spaces_and_types(settings: list[str]) -> None:
    check_every_part(setting_of(load_config("tiny", [KIND, *settings])))


def test_scope_all(tiny_bert: Path) -> None:
    settings = ["encoder.scope=all", f"encoder.text=transformers:{tiny_bert}"]
    check_every_part(setting_of(load_config("tiny", [KIND, *settings])))


def check_every_part(setting: Setting) -> None:
    pairs, matcher = start(setting), matcher_of(setting)
    for step in range(2):
        matcher.backward(pairs, generator(step))
    assert matcher.state["theta"].dtype == pairs.images.dtype
    for name in LEARNED:
        gradient = pairs.get_parameter(name).grad
        assert gradient is not None
        assert gradient.isfinite().all()
        assert gradient.any(), name
