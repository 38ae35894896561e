from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lors import DistilledSet, Workbench, artifacts, load_config
from lors.config import SimilarityConfig
from lors.errors import InputError
from lors.similarity import SIMILARITIES, Fixed, build_similarity
from lors.synthetic import SyntheticPairs
from tests.conftest import random_pairs


@pytest.fixture
def distilled(bench: Workbench) -> DistilledSet:
    pairs = bench.start()
    for number, parameter in enumerate(pairs.similarity.parameters()):
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(number))
    return bench.distilled(pairs)


def test_round_trip_keeps_every_bit(distilled: DistilledSet, tmp_path: Path) -> None:
    distilled.save(tmp_path / "set.safetensors")
    again = DistilledSet.load(tmp_path / "set.safetensors")
    for name, tensor in distilled.pairs.state_dict().items():
        assert torch.equal(tensor, again.pairs.state_dict()[name]), name
    assert again.config == distilled.config
    assert again.text_trunk.fingerprint == distilled.text_trunk.fingerprint
    assert (again.mean, again.std, again.rates) == (distilled.mean, distilled.std, distilled.rates)


def test_the_file_holds_the_factors_and_never_the_matrix(
    distilled: DistilledSet, tmp_path: Path
) -> None:
    path = tmp_path / "set.safetensors"
    distilled.save(path)
    header, tensors = artifacts.load(path, "distilled set")
    n = len(distilled)
    assert {k: tuple(t.shape) for k, t in tensors.items() if k.startswith("similarity")} == {
        "similarity.omega": (n,),
        "similarity.left": (n, 2),
        "similarity.right": (n, 2),
    }
    assert {"config", "mean", "std", "versions", "storage"} <= set(header)


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_every_similarity_is_saved(kind: str, bench: Workbench, tmp_path: Path) -> None:
    start = bench.start()
    values = torch.randn(len(start), len(start), generator=torch.Generator().manual_seed(0))
    config = load_config("tiny", [f"similarity.kind={kind}"])
    similarity = build_similarity(config.similarity, len(start))
    if kind == "fixed":
        similarity = Fixed(len(start), values)
    pairs = SyntheticPairs(start.images, start.texts, similarity)
    path = tmp_path / "set.safetensors"
    DistilledSet(pairs, config, bench.text_trunk, (0.5,), (0.25,), "x").save(path)
    again = DistilledSet.load(path)
    assert torch.equal(again.pairs.similarity.matrix(), similarity.matrix())
    assert kind != "fixed" or torch.equal(again.pairs.similarity.matrix(), values)


def test_one_pair_less_fits_the_budget_and_a_pair_more_is_refused(bench: Workbench) -> None:
    budget = bench.config.distill.budget
    fitting = bench.distilled(bench.start())
    assert len(fitting) == budget - 1
    assert fitting.storage() <= budget
    plain = random_pairs(bench)
    assert len(plain) == budget
    too_many = SyntheticPairs(
        plain.images.detach(),
        plain.texts.detach(),
        build_similarity(SimilarityConfig(kind="lowrank", rank=2), budget),
    )
    with pytest.raises(InputError, match="more than the budget"):
        bench.distilled(too_many)


def test_batches_cover_the_set_with_the_similarity_of_the_batch(distilled: DistilledSet) -> None:
    batches = list(distilled.batches(3))
    assert sum(len(batch.inputs) for batch in batches) == len(distilled)
    whole = distilled.pairs.similarity.matrix()
    for images, _, similarity in batches:
        index = [
            next(i for i, own in enumerate(distilled.pairs.images) if torch.equal(own, image))
            for image in images
        ]
        torch.testing.assert_close(similarity, whole[index][:, index])


def test_any_contrastive_loop_can_train_on_it(distilled: DistilledSet, bench: Workbench) -> None:
    model = bench.model("user")
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for epoch in range(20):
        for images, texts, similarity in distilled.batches(4, seed=epoch, model=model):
            loss = distilled.loss(model(images, texts), similarity)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert sum(losses[-4:]) < sum(losses[:4])


def test_pixels_are_what_was_normalised(bench: Workbench) -> None:
    pairs = random_pairs(bench)
    distilled = DistilledSet(
        pairs, bench.config, bench.text_trunk, bench.flat.model.mean, bench.flat.model.std, "x"
    )
    real = {image.tobytes() for image in bench.pairs.splits["train"].images}
    assert all(image.numpy().tobytes() in real for image in distilled.pixels())


def test_a_damaged_set_is_refused(distilled: DistilledSet, tmp_path: Path) -> None:
    path = tmp_path / "set.safetensors"
    distilled.save(path)
    header, tensors = artifacts.load(path, "distilled set")
    del tensors["texts"]
    artifacts.save(path, "distilled set", header, tensors)
    with pytest.raises(InputError, match="damaged"):
        DistilledSet.load(path)
