"""What holds for any input: of the losses, similarities, recalls, selections and budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from lors.config import Config, SimilarityConfig, load_config
from lors.evaluation.recall import METRICS, recall
from lors.losses import LOSSES, ence, nce
from lors.selection import Candidates, Pool
from lors.selection.forgetting import forgetting
from lors.selection.herding import herding
from lors.selection.k_center import k_center
from lors.selection.random import at_random
from lors.selection.score import highest, pair_scores
from lors.sets.synthetic import pairs_within
from lors.similarity import SIMILARITIES, build_similarity
from lors.system.errors import InputError

seeds = st.integers(0, 2**32)
losses = st.sampled_from(sorted(LOSSES))
kinds = st.sampled_from(sorted(SIMILARITIES))
scales = st.sampled_from((0.0, 1e-30, 1e-3, 1.0, 1e3, 1e6))


class Counted(Pool):
    """So many pairs of which nothing is known."""

    def __init__(self, size: int, seed: int) -> None:
        self.rng, self.captions = np.random.default_rng(seed), np.arange(size)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


@given(name=losses, m=st.integers(1, 9), seed=seeds, logits=scales, similarity=scales)
def test_any_loss_and_its_gradients_are_finite(
    name: str, m: int, seed: int, logits: float, similarity: float
) -> None:
    x = (logits * normal(seed, m, m)).float().requires_grad_()
    s = (similarity * normal(seed + 1, m, m)).float().requires_grad_()
    value = LOSSES[name](x, s)
    assert value.isfinite()
    grads = torch.autograd.grad(value, (x, s), allow_unused=True)
    assert all(grad is None or grad.isfinite().all() for grad in grads)


@given(name=losses, m=st.integers(1, 9), seed=seeds)
def test_losses_treat_images_and_texts_alike(name: str, m: int, seed: int) -> None:
    x, s = 10 * normal(seed, m, m), normal(seed + 1, m, m)
    torch.testing.assert_close(LOSSES[name](x, s), LOSSES[name](x.T, s.T))


@given(name=losses, m=st.integers(1, 9), seed=seeds)
def test_losses_do_not_depend_on_the_order_of_pairs(name: str, m: int, seed: int) -> None:
    x, s = 10 * normal(seed, m, m), normal(seed + 1, m, m)
    order = torch.randperm(m, generator=torch.Generator().manual_seed(seed))
    shuffled = LOSSES[name](x[order][:, order], s[order][:, order])
    torch.testing.assert_close(LOSSES[name](x, s), shuffled)


@given(m=st.integers(1, 9), seed=seeds, shift=st.floats(-1e3, 1e3))
def test_contrastive_losses_see_only_differences_of_logits(m: int, seed: int, shift: float) -> None:
    x, s = normal(seed, m, m), normal(seed + 1, m, m)
    torch.testing.assert_close(nce(x + shift), nce(x))
    torch.testing.assert_close(ence(x + shift, s), ence(x, s))


@given(kind=kinds, pairs=st.integers(1, 12), rank=st.integers(1, 12), data=st.data())
def test_a_batch_is_a_block_of_the_matrix(
    kind: str, pairs: int, rank: int, data: st.DataObject
) -> None:
    assume(rank <= pairs)
    config = SimilarityConfig(kind=kind, rank=rank, alpha=2.0)
    similarity = build_similarity(config, pairs)
    for number, tensor in enumerate(similarity.state_dict().values()):
        tensor.copy_(normal(number, *tensor.shape))
    index = torch.tensor(data.draw(st.permutations(range(pairs))))[: data.draw(st.integers(1, 12))]
    torch.testing.assert_close(similarity(index), similarity.matrix()[index][:, index])
    torch.testing.assert_close(similarity.diagonal(), similarity.matrix().diagonal())
    assert similarity.numbers() == type(similarity).stored(config, pairs)


def brute_force(scores: np.ndarray, owner: np.ndarray) -> dict[str, float]:
    """Sort every query's answers, wrong before right where they tie."""
    found = {}
    for side, queries, right in (
        ("ir", scores.T, owner[:, None] == np.arange(len(scores))),
        ("tr", scores, np.arange(len(scores))[:, None] == owner),
    ):
        for k in (1, 5, 10):
            hits = 0
            for row, own in zip(queries, right, strict=True):
                order = sorted(range(len(row)), key=lambda i: (-row[i], own[i]))
                hits += bool(own[order[:k]].any())
            found[f"{side}{k}"] = 100 * hits / len(queries)
    return found


@given(images=st.integers(1, 14), chunk=st.integers(1, 40), seed=seeds)
def test_recall_is_that_of_sorting_in_any_order_and_chunk(
    images: int, chunk: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(images), rng.integers(1, 4, images))
    u, v = (rng.integers(-1, 2, (n, 3)).astype(np.float32) for n in (images, len(owner)))
    found = recall(torch.from_numpy(u), torch.from_numpy(v), torch.from_numpy(owner), chunk)
    expected = brute_force(u @ v.T, owner)
    assert {name: getattr(found, name) for name in METRICS} == pytest.approx(expected)
    order, captions = rng.permutation(images), rng.permutation(len(owner))
    place = np.argsort(order)
    shuffled = (u[order], v[captions], place[owner[captions]])
    other_images, other_texts, other_owner = (torch.from_numpy(array) for array in shuffled)
    assert recall(other_images, other_texts, other_owner) == found


@settings(max_examples=50)
@given(size=st.integers(1, 30), chunk=st.integers(1, 40), seed=seeds, data=st.data())
def test_every_selection_chooses_different_pairs_whatever_the_chunk(
    size: int, chunk: int, seed: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, size))
    rng = np.random.default_rng(seed)
    images, texts = (rng.normal(size=(n, 4)).astype(np.float32) for n in (size, 2 * size))
    pairs = images, texts, rng.integers(0, 2 * size, size)
    learned = [rng.random((3, size)) < 0.5 for _ in range(2)]
    chosen = {}
    for piece in (chunk, 1000):
        candidates = Candidates(*pairs, piece)
        chosen[piece] = [
            herding(candidates, count)[0],
            k_center(candidates, count)[0],
            highest(pair_scores(*pairs, piece), count)[0],
            forgetting(learned, count, np.random.default_rng(seed))[0],
            at_random(Counted(size, seed), count)[0],
        ]
    for one, other in zip(*chosen.values(), strict=True):
        assert one.tolist() == other.tolist()
        assert len(set(one.tolist())) == len(one) == count
        assert 0 <= one.min() <= one.max() < size


@given(kind=kinds, budget=st.integers(1, 80), rank=st.integers(1, 6), size=st.integers(1, 60))
def test_pairs_within_a_budget_are_the_most_that_fit(
    kind: str, budget: int, rank: int, size: int
) -> None:
    config = SimilarityConfig(kind=kind, rank=rank)

    def within(budget: int) -> int:
        try:
            return pairs_within(budget, size, config)
        except InputError:
            return 0

    def numbers(pairs: int) -> int:
        return pairs * size + SIMILARITIES[kind].stored(config, pairs)

    fitting = [pairs for pairs in range(1, budget + 1) if numbers(pairs) <= budget * size]
    assert within(budget) == max(fitting, default=0)
    assert within(budget) <= within(budget + 1) <= budget + 1


texts = st.text(st.characters(codec="utf-8"), max_size=20)
changes = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(-(2**63), 2**63 - 1),
        "description": texts,
        "data": st.fixed_dictionaries(
            {"holdout": st.floats(0.001, 0.499)},
            optional={
                "name": st.none() | texts,
                "annotations": st.dictionaries(texts, texts, max_size=3),
                "pairs": st.dictionaries(
                    st.sampled_from(("train", "val", "test")), st.integers(1, 10**9)
                ),
            },
        ),
        "similarity": st.fixed_dictionaries(
            {"alpha": st.floats(-1e30, 1e30)},
        ),
        "distill": st.fixed_dictionaries(
            {
                "budget": st.integers(1, 10**6),
                "fixed": st.lists(st.sampled_from(("images", "texts", "rates")), max_size=2),
            }
        ),
    },
)


@given(values=changes)
def test_a_configuration_survives_its_own_yaml(
    values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = load_config(values)
    path = Path(tmp_path_factory.getbasetemp()) / "config.yaml"
    path.write_text(config.yaml(), "utf-8")
    assert load_config(path) == config == Config.model_validate(config.model_dump(mode="json"))
