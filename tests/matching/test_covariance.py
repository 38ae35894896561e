from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lors.config import load_config
from lors.config.matchers import CovarianceOptions
from lors.distillation.loop import Distillation
from lors.encoders import DualEncoder, EncodedSplit
from lors.losses import nce
from lors.matching import matcher_of
from lors.matching.covariance import CovarianceMatcher, covariance_distance
from lors.runs import checkpoints
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.seeding import generator
from lors.training import Batch
from tests.conftest import altered

from .differences import assert_gradient_is_slope

KIND = "matching.kind=covariance"
FEATURES = [KIND, "encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]


@pytest.fixture(scope="module")
def double() -> Setting:
    return setting_of(load_config("tiny", ["dtype=float64", *FEATURES]))


@pytest.fixture(scope="module")
def setting() -> Setting:
    return setting_of(load_config("tiny", [KIND]))


def batch(pairs: int, seed: int) -> Batch:
    draw = generator(seed)
    shapes = ((pairs, 6), (pairs, 4), (pairs, pairs))
    return Batch(*(torch.randn(s, generator=draw, dtype=torch.double) for s in shapes))


def covariance(batch: Batch) -> torch.Tensor:
    """By definition: the whole matrix."""
    x, y = batch.inputs - batch.inputs.mean(0), batch.texts - batch.texts.mean(0)
    return x.T @ batch.similarity @ y / len(x)


@pytest.mark.parametrize("rho", [1.0, 2.0])
def test_the_expansion_is_the_norm_of_the_difference_of_the_matrices(rho: float) -> None:
    real, synthetic = batch(9, 0), batch(5, 1)
    expected = (rho * covariance(real) - covariance(synthetic)).square().sum()
    torch.testing.assert_close(covariance_distance(real, synthetic, rho), expected)


def test_without_off_diagonals_it_is_the_usual_cross_covariance() -> None:
    real = batch(9, 0)._replace(similarity=torch.eye(9, dtype=torch.double))
    expected = np.cov(real.inputs.T, real.texts.T, bias=True)[:6, 6:]
    np.testing.assert_allclose(covariance(real), expected)


def test_scaled_pairs_are_what_rho_asks_for() -> None:
    real = batch(9, 0)
    twice = real._replace(inputs=2 * real.inputs)
    assert covariance_distance(real, twice, 2.0).item() == pytest.approx(0, abs=1e-9)
    assert covariance_distance(real, twice, 1.0).item() > 1


def test_gradient_equals_central_differences(double: Setting) -> None:
    pairs, matcher = start_pairs(double), matcher_of(double)
    right = pairs.get_parameter("similarity.right")
    right.data += 0.1 * torch.randn(right.shape, generator=generator("right")).to(right)
    matcher.backward(pairs, generator(0))
    state = matcher.state

    def match(pairs: SyntheticPairs) -> float:
        matcher.state = state
        return float(matcher.backward(pairs, generator("same")))

    names = ("images", "texts", "similarity.omega", "similarity.left", "similarity.right")
    assert_gradient_is_slope(match, pairs, names)
    assert pairs.rates.grad is None


def known(setting: Setting, weight: float = 0.1) -> tuple[CovarianceMatcher, EncodedSplit]:
    """Seven real pairs, so that a real batch is always all of them."""
    real = setting.real["train"]
    first = np.searchsorted(real.owner, np.arange(7))
    seven = EncodedSplit(real.images[:7], real.texts[first], np.arange(7))
    changed = altered(setting, real={"train": seven}, model=lambda *keys: setting.model("known"))
    return CovarianceMatcher(changed, CovarianceOptions(steps=3, rho=1, weight=weight)), seven


def inputs(real: EncodedSplit, model: DualEncoder) -> tuple[torch.Tensor, torch.Tensor]:
    return real.inputs(np.arange(7), model), real.captions(np.arange(7), model)


def test_real_pairs_are_at_no_distance_from_themselves(double: Setting) -> None:
    matcher, real = known(double)
    pairs = SyntheticPairs(*inputs(real, double.flat.model)).double()
    assert float(matcher.backward(pairs, generator(0))) == pytest.approx(0, abs=1e-9)


def test_lambda_weighs_the_distance_of_mean_embeddings(double: Setting) -> None:
    found = []
    for weight in (0, 0.5):
        matcher, real = known(double, weight)
        pairs = start_pairs(double)
        found.append(float(matcher.backward(pairs, generator(0))))
    model, (x, y) = double.model("known"), inputs(real, double.flat.model)
    u = model.embed_images(x), model.embed_images(pairs.images)
    v = model.embed_texts(y), model.embed_texts(pairs.texts)
    means = torch.stack([(a.mean(0) - b.mean(0)).square().sum() for a, b in (u, v)]).sum()
    assert found[1] - found[0] == pytest.approx(0.5 * means.item(), rel=1e-6)


def test_it_needs_no_experts(tmp_path: Path) -> None:
    settings = [*FEATURES, f"experts.folder={tmp_path / 'experts'}", "experts.epochs=1"]
    setting = setting_of(load_config("tiny", settings))
    assert float(matcher_of(setting).backward(start_pairs(setting), generator(0))) > 0
    assert not (tmp_path / "experts").exists()


def test_each_call_trains_the_network_on_real_pairs_until_a_new_one_is_drawn(
    double: Setting,
) -> None:
    matcher, real = known(double)
    pairs, model = start_pairs(double), double.model("known")
    x, y = inputs(real, model)
    optimizer = torch.optim.SGD([p for side in model.sides() for p in side], 0.1)
    for step in range(3):
        matcher.backward(pairs, generator(step))
        optimizer.zero_grad()
        nce(model(x, y)).backward()  # the order of the batch does not matter
        optimizer.step()
        torch.testing.assert_close(matcher.state["theta"], double.flat.flatten(model))
    assert matcher.state["step"].item() == 0
    matcher.backward(pairs, generator(3))
    model = double.model("known")
    optimizer = torch.optim.SGD([p for side in model.sides() for p in side], 0.1)
    nce(model(x, y)).backward()
    optimizer.step()
    torch.testing.assert_close(matcher.state["theta"], double.flat.flatten(model))


def test_matching_brings_the_cross_covariances_together() -> None:
    rates = ["distill.learning_rates.images=0.05", "distill.learning_rates.texts=0.05"]
    settings = [*FEATURES, *rates, "similarity.kind=identity", "matching.real_batch_size=200"]
    setting = setting_of(load_config("tiny", [*settings, "matching.weight=0"]))
    run, losses = Distillation(start_pairs(setting), setting.config.distill, 0), []
    matcher = matcher_of(setting)
    for _ in range(30):
        losses.append(run.step(matcher))
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


def test_a_run_resumed_within_an_episode_ends_with_the_same_bits(
    setting: Setting, tmp_path: Path
) -> None:
    rates = [f"distill.learning_rates.{part}=0.01" for part in ("images", "texts", "similarity")]
    config = load_config("tiny", rates).distill

    def run() -> Distillation:
        return Distillation(start_pairs(setting), config, 0)

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


def test_scope_all_matches_features_of_both_trunks(tiny_bert: Path) -> None:
    settings = [KIND, "encoder.scope=all", f"encoder.text=transformers:{tiny_bert}"]
    setting = setting_of(load_config("tiny", settings))
    pairs = start_pairs(setting)
    matcher_of(setting).backward(pairs, generator(0))
    for part in (pairs.images, pairs.texts):
        assert part.grad is not None
        assert part.grad.isfinite().all()
        assert part.grad.any()


def test_it_works_with_few_digits() -> None:
    settings = [KIND, "dtype=bfloat16"]
    setting = setting_of(load_config("tiny", settings))
    assert float(matcher_of(setting).backward(start_pairs(setting), generator(0))) > 0
