from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import lors
from lors.cli import app
from lors.config import SimilarityConfig
from lors.runs.folders import SET
from lors.sets.distilled import DistilledSet
from lors.sets.merging import merge
from lors.sets.parts import joined_similarity
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import Diagonal, Fixed, Full, Identity, LowRank, Similarity
from lors.system.errors import InputError

runner = CliRunner()
DRAW = np.random.default_rng(0)
MAPS = DRAW.normal(size=(4, 12)), DRAW.normal(size=(4, 10))


def of_a_client(shift: float, **options: Any) -> DistilledSet:
    """A set of 60 pairs, whose embeddings are shifted and stretched."""
    cause = DRAW.normal(size=(60, 4)) * (1 + shift) + shift
    images, texts = (cause @ part for part in MAPS)
    quick: dict[str, Any] = {
        "experts": {"count": 1, "epochs": 2},
        "evaluate": {"epochs": 2, "seeds": 1},
    }
    return lors.distill(images, texts, pairs=10, rank=2, iterations=2, progress=False,
                        **{**quick, **options})  # fmt: skip


@pytest.fixture(scope="module")
def clients() -> list[DistilledSet]:
    return [of_a_client(shift) for shift in (0.0, 2.0, 0.5)]


def randomised(similarity: Similarity) -> Similarity:
    draw = torch.Generator().manual_seed(similarity.pairs)
    for parameter in similarity.parameters():
        parameter.data = torch.randn(parameter.shape, generator=draw)
    return similarity


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ((Identity(2), Identity(3)), "identity"),
        ((Identity(2), Diagonal(3)), "diagonal"),
        ((LowRank(4, rank=3, alpha=2.0), Diagonal(2), LowRank(3, rank=1, alpha=5.0)), None),
        ((LowRank(4, rank=3), Full(2)), "full"),
        ((Fixed(2, torch.rand(2, 2)), Identity(2)), "full"),
    ],
)
def test_the_similarity_is_block_diagonal(parts: tuple[Similarity, ...], kind: str | None) -> None:
    parts = tuple(map(randomised, parts))
    whole, config = joined_similarity(parts)
    expected = torch.block_diag(*(part.matrix().detach() for part in parts))
    torch.testing.assert_close(whole.matrix().detach(), expected)
    assert config.kind == (kind or "lowrank-parts")
    assert type(whole).stored(config, whole.pairs) == whole.numbers()


def test_low_rank_factors_are_not_spread_over_more_columns() -> None:
    parts = [randomised(LowRank(20, rank=4)) for _ in range(5)]
    whole, _ = joined_similarity(parts)
    assert whole.numbers() == sum(part.numbers() for part in parts) + 100  # the part of each pair
    again, _ = joined_similarity([whole, parts[0]])  # a merged set can be merged again
    expected = torch.block_diag(*(part.matrix().detach() for part in [*parts, parts[0]]))
    torch.testing.assert_close(again.matrix().detach(), expected)


def test_pairs_keep_their_units_though_each_set_standardises_its_own_way(
    clients: list[DistilledSet], tmp_path: Path
) -> None:
    merged = merge(clients)
    for part in ("images", "texts"):
        theirs = torch.cat([getattr(each, part) for each in clients])
        torch.testing.assert_close(getattr(merged, part), theirs, rtol=1e-4, atol=1e-4)
    merged.save(tmp_path / "merged.safetensors")
    again = DistilledSet.load(tmp_path / "merged.safetensors")
    assert torch.equal(again.similarity, merged.similarity)
    assert again.storage() <= again.config.distill.budget == 30


def test_the_standardisation_is_that_of_the_data_together() -> None:
    cause = DRAW.normal(size=(2, 500, 4)) + np.array([0.0, 3.0]).reshape(2, 1, 1)
    sides = [[each @ part for part in MAPS] for each in cause]
    options: dict[str, Any] = {
        "method": "random",
        "tried_rates": [0.1],
        "evaluate": {"epochs": 1, "seeds": 1},
    }
    sets = [lors.distill(*two, pairs=9, progress=False, **options) for two in sides]
    merged = merge(sets)
    assert merged.image_standard is not None
    images = np.concatenate([two[0] for two in sides])
    np.testing.assert_allclose(merged.image_standard.mean, images.mean(0), atol=0.3)
    assert merged.image_standard.scale == pytest.approx(float(images.std(0).mean()), rel=0.1)


def test_rates_are_geometric_means_weighted_by_pairs(clients: list[DistilledSet]) -> None:
    one, other = clients[:2]
    pairs = [
        SyntheticPairs(each.pairs.images.detach()[:n], each.pairs.texts.detach()[:n], None, rates)
        for each, n, rates in ((one, 6, (0.1, 0.2)), (other, 3, (0.8, 0.2)))
    ]
    identity = one.config.model_copy(update={"similarity": SimilarityConfig(kind="identity")})
    sets = [replace(one, pairs=p, config=identity) for p in pairs]
    assert merge(sets).rates == pytest.approx((0.2, 0.2))


def test_what_does_not_fit_is_refused(clients: list[DistilledSet]) -> None:
    with pytest.raises(InputError, match="two or more"):
        merge(clients[:1])
    with pytest.raises(InputError, match=r"plain pairs, more than the budget of 12: give a budget"):
        merge(clients, budget=12)
    other = clients[1].config.model_copy(update={"loss": "bce"})
    with pytest.raises(InputError, match=r"set 2 .* differ in the loss"):
        merge([clients[0], replace(clients[1], config=other)])
    encoder = clients[1].config.encoder.model_copy(update={"embed_dim": 7})
    other = clients[1].config.model_copy(update={"encoder": encoder})
    with pytest.raises(InputError, match=r"differ in encoder.embed_dim"):
        merge([clients[0], replace(clients[1], config=other)])


def test_the_command_merges_and_tunes(tiny_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "both.safetensors"
    both = [str(tiny_run), str(tiny_run / SET)]
    done = runner.invoke(app, ["merge", *both, "--out", str(out)])
    assert done.exit_code == 0, done.output
    made, one = DistilledSet.load(out), DistilledSet.load(tiny_run / SET)
    assert len(made) == 2 * len(one)
    assert made.rates == pytest.approx(one.rates)
    tuned = tmp_path / "tuned.safetensors"
    tried = ["evaluate.tried_rates=[0.1]", "evaluate.epochs=2", "--tune", "--out", str(tuned)]
    done = runner.invoke(app, ["merge", *both, *tried])
    assert done.exit_code == 0, done.output
    assert any(
        DistilledSet.load(tuned).rates == pytest.approx(each) for each in (made.rates, (0.1, 0.1))
    )
    assert "is there already" in str(
        runner.invoke(app, ["merge", *both, "--out", str(out)]).exception
    )


def test_settings_without_tuning_are_refused(tiny_run: Path) -> None:
    done = runner.invoke(app, ["merge", str(tiny_run), str(tiny_run), "evaluate.seeds=2"])
    assert "is for --tune" in str(done.exception)
