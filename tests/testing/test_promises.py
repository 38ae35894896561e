"""Everything in the package keeps its promises, and each promise is broken by a toy that breaks it.

The toys are as an author would write them, each with one mistake.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lors.config import MatchingOptions, SimilarityConfig
from lors.config.names import LOSSES, MATCHERS, SELECTIONS, SIMILARITIES, STARTS
from lors.losses import ence
from lors.matching.matcher import add_gradients, whole_set
from lors.selection import Choice, Pool
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.similarity import Diagonal, Similarity
from lors.starts import Material, Start
from lors.starts.real import real
from lors.system.errors import InputError
from lors.testing import (
    BrokenPromiseError,
    Report,
    check_loss,
    check_matcher,
    check_selection,
    check_similarity,
    check_start,
)

BUILT_IN = [
    *((check_loss, name) for name in LOSSES),
    *((check_similarity, name) for name in SIMILARITIES),
    *((check_selection, name) for name in SELECTIONS),
    *((check_start, name) for name in STARTS),
    *((check_matcher, name) for name in MATCHERS),
]


@pytest.mark.parametrize(
    ("check", "name"), BUILT_IN, ids=[f"{c.__name__}-{n}" for c, n in BUILT_IN]
)
def test_everything_in_the_package_keeps_its_promises(
    check: Callable[[str], Report], name: str
) -> None:
    assert check(name).broken == []


def broken(check: Callable[..., Report], thing: Any, **settings: Any) -> list[str]:
    with pytest.raises(BrokenPromiseError) as caught:
        check(thing, **settings)
    assert str(caught.value).count("FAILED") == len(caught.value.report.broken)
    return caught.value.report.broken


class Good:
    """Keeps every promise; in one place only, so that toys are quick."""

    class Options(MatchingOptions):
        scopes: ClassVar[tuple[str, ...]] = ("heads",)
        spaces: ClassVar[tuple[str, ...]] = ("features",)

    def __init__(self, setting: Setting, options: MatchingOptions) -> None:
        self.setting, self.state = setting, dict[str, Tensor]()

    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        inputs, texts = self.setting.real_batch(generator, 20)
        batch = whole_set(synthetic, self.setting.flat.model)
        tied = batch.similarity.sum() * (batch.inputs.mean() + batch.texts.mean())
        return (tied - inputs.mean() - texts.mean()).square() + batch.texts.square().mean()

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        objective = self.objective(synthetic, generator)
        add_gradients(objective, synthetic)
        return objective.item()


def test_a_good_toy_keeps_every_promise_and_says_so() -> None:
    report = check_matcher(Good)
    assert str(report).startswith("matcher 'Good' keeps its promises\nok      options are checked")
    assert report.broken == []
    assert not [name for name in MATCHERS if "Good" in name]


class Demanding(Good):
    class Options(Good.Options):
        weight: float


class Unsaveable(Good):
    class Options(Good.Options):
        weight: Any = 1.0

        def model_post_init(self, context: Any) -> None:
            object.__setattr__(self, "weight", object())


class Nowhere(Good):
    class Options(Good.Options):
        spaces = ()


class Stateful(Good):
    def __init__(self, setting: Setting, options: MatchingOptions) -> None:
        super().__init__(setting, options)
        self.state = {"calls": torch.tensor(0)}


class ReturnsGraph(Good):
    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Any:
        return super().backward(synthetic, generator) + 0 * synthetic.texts.sum()


class Infinite(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        return super().objective(synthetic, generator) / 0


class Teaches(Good):
    """Nothing."""

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        return self.objective(synthetic, generator).item()


class OwnRandomness(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        noise = np.random.default_rng().normal()
        return super().objective(synthetic, generator) + noise * synthetic.images.mean()


class DrawsInVain(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        torch.rand(3, generator=generator)
        return super().objective(synthetic, torch.Generator().manual_seed(0))


class SeedsTorch(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        torch.manual_seed(0)
        return super().objective(synthetic, generator)


class DrawsPython(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        random.random()
        return super().objective(synthetic, generator)


class DrawsNumpy(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        np.random.rand()
        return super().objective(synthetic, generator)


class KeepsNumbers(Good):
    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        self.state = {"calls": 3}  # type: ignore[dict-item]
        return super().backward(synthetic, generator)


class Counts(Good):
    """Beside its state."""

    calls = 0

    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        self.calls += 1
        return super().objective(synthetic, generator) * self.calls


class GivesAll(Good):
    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        synthetic.texts.grad = (synthetic.texts.grad or 0) + torch.ones_like(synthetic.texts)
        return super().backward(synthetic, generator)


class Replaces(Good):
    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        synthetic.zero_grad()
        return super().backward(synthetic, generator)


class Clamps(Good):
    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        loss = super().backward(synthetic, generator)
        synthetic.images.data.clamp_(-0.1, 0.1)
        return loss


class Freezes(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        objective = super().objective(synthetic, generator)
        synthetic.rates.requires_grad_(False)
        return objective


class LeavesGradients(Good):
    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        model = self.setting.model("mine")
        inputs, texts = self.setting.real_batch(generator, 5)
        ence(model(inputs, texts), torch.eye(5)).backward()
        return super().backward(synthetic, generator)


class TrainsShared(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        objective = super().objective(synthetic, generator)
        next(self.setting.flat.model.parameters()).data += 1
        return objective


class FreezesShared(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        self.setting.flat.model.requires_grad_(False)
        return super().objective(synthetic, generator)


class SaysRates(Good):
    class Options(Good.Options):
        learns_rates = True


class HidesRates(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        return super().objective(synthetic, generator) + synthetic.rates.sum()


class WantsFive(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        return super().objective(synthetic, generator) + synthetic.images[4].mean()


class OnlyLowRank(Good):
    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        similarity: Any = synthetic.similarity
        return super().objective(synthetic, generator) * similarity.left.shape[1]


class OnlyFeatures(Good):
    class Options(Good.Options):
        spaces = ("features", "pixels")

    def objective(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        images, _ = synthetic.images.shape
        return super().objective(synthetic, generator) * images


class Refuses(Good):
    class Options(Good.Options):
        spaces = ("features", "pixels")

        def check(self, config: Any) -> None:
            if config.encoder.space == "pixels":
                raise ValueError("I want features")


GLOBAL = "leaves global generators alone"


@pytest.mark.parametrize(
    ("toy", "promises"),
    [
        (Demanding, ["options are checked"]),
        (Unsaveable, ["options are checked"]),
        (Nowhere, ["declares where it works"]),
        (Stateful, ["is made of a setting and options"]),
        (ReturnsGraph, ["returns a finite loss and finite gradients"]),
        (Infinite, ["returns a finite loss and finite gradients"]),
        (Teaches, ["returns a finite loss and finite gradients"]),
        (OwnRandomness, ["same bits twice", "continues from its state"]),
        (DrawsInVain, ["other generators, other numbers"]),
        (SeedsTorch, [GLOBAL]),
        (DrawsPython, [GLOBAL]),
        (DrawsNumpy, [GLOBAL]),
        (KeepsNumbers, ["state is a dict of tensors"]),
        (Counts, ["continues from its state"]),
        (GivesAll, ["gradients only where asked"]),
        (Replaces, ["adds to gradients"]),
        (Clamps, ["leaves the set alone"]),
        (Freezes, ["leaves the set alone"]),
        (LeavesGradients, ["leaves networks alone"]),
        (TrainsShared, ["leaves networks alone"]),
        (FreezesShared, ["leaves networks alone"]),
        (SaysRates, ["learns rates as declared"]),
        (HidesRates, ["learns rates as declared"]),
        (WantsFive, ["works with few pairs"]),
        (OnlyLowRank, ["works with every similarity"]),
        (OnlyFeatures, ["works in heads/pixels"]),
        (Refuses, ["works in heads/pixels"]),
    ],
)
def test_a_matcher_that_breaks_a_promise_is_found(toy: type[Good], promises: list[str]) -> None:
    assert set(promises) <= set(broken(check_matcher, toy))


def test_only_the_promise_that_is_broken_fails() -> None:
    for toy, promise in ((SeedsTorch, GLOBAL), (Counts, "continues from its state")):
        assert broken(check_matcher, toy) == [promise]


@pytest.mark.parametrize(
    ("loss", "promise"),
    [
        (lambda logits, s: logits, "returns one finite number"),
        (lambda logits, s: ence(logits, s) / (len(logits) - 1), "returns one finite number"),
        (lambda logits, s: ence(logits, s).float(), "keeps the type of its inputs"),
        (lambda logits, s: ence(logits.detach(), s), "differentiable in the logits"),
        (lambda logits, s: ence(logits, s).detach(), "differentiable in the logits"),
        (
            lambda logits, s: (
                nn.functional.softplus(logits * (logits > 0).detach()).sum()
                + (logits.detach() * logits).sum()
            ),
            "differentiable in the logits",
        ),
        (lambda logits, s: Once.apply(logits) + 0 * s.sum(), "differentiable twice"),
        (
            lambda logits, s: (logits * s.detach() * s).sum(),
            "differentiable in S, if it depends on it",
        ),
        (
            lambda logits, s: logits.exp().sum().log() - (s * logits).sum(),
            "finite for large logits",
        ),
        (lambda logits, s: ence(logits, s) + logits[0, 0], "the order of pairs does not matter"),
        (lambda logits, s: ence(logits, s.mul_(1.01)), "leaves its inputs alone"),
        (
            lambda logits, s: ence(logits * torch.rand(1).to(logits), s),
            "same bits twice",
        ),
        (lambda logits, s: ence(logits + 0 * torch.rand(1).to(logits), s), GLOBAL),
    ],
)
def test_a_loss_that_breaks_a_promise_is_found(loss: Any, promise: str) -> None:
    assert promise in broken(check_loss, loss)


class Once(torch.autograd.Function):
    """Σ x² whose gradient is a constant to autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.square().sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * gradient * x


class Halves(Diagonal):
    def __init__(self, pairs: int, omega: float = 1.0) -> None:
        super().__init__(pairs, 0.5 * omega)


class Crooked(Diagonal):
    def forward(self, index: Tensor) -> Tensor:
        return torch.diag_embed(self.omega[index.sort().values])


class Cheap(Diagonal):
    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return 0


class Hidden(Similarity):
    """Has L beside its state_dict."""

    def __init__(self, pairs: int, left: Tensor) -> None:
        super().__init__(pairs)
        self.left, self.right = left, nn.Parameter(torch.zeros(pairs))

    @classmethod
    def from_config(cls, config: SimilarityConfig, pairs: int, generator: Any = None) -> Hidden:
        return cls(pairs, torch.randn(pairs, generator=generator))

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return pairs

    def forward(self, index: Tensor) -> Tensor:
        product = torch.outer(self.left[index], self.right[index])
        return torch.eye(len(index)).to(product) + product


class Detached(Diagonal):
    def forward(self, index: Tensor) -> Tensor:
        return torch.diag_embed(self.omega.detach()[index]) + 0 * self.other

    def __init__(self, pairs: int, omega: float = 1.0) -> None:
        super().__init__(pairs, omega)
        self.other = nn.Parameter(torch.zeros(()))


class SinglePrecision(Diagonal):
    def forward(self, index: Tensor) -> Tensor:
        return torch.diag_embed(self.omega[index]) @ torch.eye(len(index))


class Drawn(Similarity):
    def __init__(self, pairs: int) -> None:
        super().__init__(pairs)
        self.left = nn.Parameter(torch.randn(pairs))
        self.right = nn.Parameter(torch.zeros(pairs))

    @classmethod
    def stored(cls, config: SimilarityConfig, pairs: int) -> int:
        return 2 * pairs

    def forward(self, index: Tensor) -> Tensor:
        product = torch.outer(self.left[index], self.right[index])
        return torch.eye(len(index)).to(product) + product


@pytest.mark.parametrize(
    ("toy", "promise"),
    [
        (Halves, "starts as pairs that belong together"),
        (Crooked, "a batch is a block of S"),
        (Cheap, "stores what it says"),
        (Hidden, "is restored from its state_dict"),
        (Detached, "gradients in every parameter"),
        (SinglePrecision, "works in other types"),
        (Drawn, "same bits twice"),
        (Drawn, GLOBAL),
    ],
)
def test_a_similarity_that_breaks_a_promise_is_found(toy: Any, promise: str) -> None:
    assert promise in broken(check_similarity, toy)


def one_less(material: Material) -> Start:
    images, captions = material.drawn
    return material.start(images[: material.count - 1], captions[: material.count - 1])


def undefined(material: Material) -> Start:
    start = real(material)
    return start._replace(images=start.images / 0)


def nowhere(material: Material) -> Start:
    raise InputError("never")


def mixed_up(material: Material) -> Start:
    start = real(material)
    assert start.real is not None
    images, captions = start.real
    return start._replace(real=(images, captions[::-1]))


def noisy(material: Material) -> Start:
    start = real(material)
    return start._replace(images=start.images + torch.randn(start.images.shape))


@pytest.mark.parametrize(
    ("toy", "promise"),
    [
        (one_less, "fits heads/features"),
        (undefined, "fits image/pixels"),
        (lambda material: tuple(real(material)), "fits heads/pixels"),
        (nowhere, "works somewhere"),
        (mixed_up, "says which real pairs they are"),
        (noisy, "same bits twice"),
        (noisy, GLOBAL),
    ],
)
def test_a_start_that_breaks_a_promise_is_found(toy: Any, promise: str) -> None:
    assert promise in broken(check_start, toy)


def first(pool: Pool, count: int) -> Choice:
    return np.arange(count), np.zeros(count)


def repeated(pool: Pool, count: int) -> Choice:
    return pool.rng.choice(len(pool), count), np.zeros(count)


def few(pool: Pool, count: int) -> Choice:
    return np.arange(min(count, 8)), np.zeros(min(count, 8))


def renamed(pool: Pool, count: int) -> Choice:
    pool.captions[:] = 0
    return first(pool, count)


def unseeded(pool: Pool, count: int) -> Choice:
    return np.random.permutation(len(pool))[:count], np.zeros(count)


@pytest.mark.parametrize(
    ("toy", "promise"),
    [
        (
            lambda pool, count: (np.full(count, 7), np.zeros(count)),
            "chooses different pairs, with a score each",
        ),
        (
            lambda pool, count: (np.arange(count), np.full(count, np.nan)),
            "chooses different pairs, with a score each",
        ),
        (few, "can choose all pairs"),
        (first, "refuses more than there are"),
        (renamed, "leaves the pool alone"),
        (unseeded, "same bits twice"),
        (unseeded, GLOBAL),
    ],
)
def test_a_selection_that_breaks_a_promise_is_found(toy: Any, promise: str) -> None:
    assert promise in broken(check_selection, toy)


def test_settings_reach_the_runs_and_a_wrong_one_is_refused() -> None:
    assert check_matcher("gradient", steps=1, loss="wbce").broken == []
    assert check_similarity("lowrank", rank=5).promises[2].note == "99 numbers for 9 pairs"
    with pytest.raises(InputError, match="unknown matcher 'gradint'; did you mean 'gradient'"):
        check_matcher("gradint")
