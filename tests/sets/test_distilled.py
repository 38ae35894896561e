from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lors import DistilledSet, Setting, load_config
from lors.config import SimilarityConfig
from lors.files import artifacts
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import SIMILARITIES, Fixed, build_similarity
from lors.starts import start_pairs
from lors.system.errors import InputError
from tests.conftest import random_pairs


@pytest.fixture
def distilled(setting: Setting) -> DistilledSet:
    pairs = start_pairs(setting)
    for number, parameter in enumerate(pairs.similarity.parameters()):
        draw = torch.Generator().manual_seed(number)
        parameter.data = torch.randn(parameter.shape, generator=draw).to(parameter)
    return setting.distilled(pairs)


def test_round_trip_keeps_every_bit(distilled: DistilledSet, tmp_path: Path) -> None:
    distilled.save(tmp_path / "set.safetensors")
    again = DistilledSet.load(tmp_path / "set.safetensors")
    for name, tensor in distilled.pairs.state_dict().items():
        assert torch.equal(tensor.cpu(), again.pairs.state_dict()[name]), name
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
def test_every_similarity_is_saved(kind: str, setting: Setting, tmp_path: Path) -> None:
    start = start_pairs(setting)
    values = torch.randn(len(start), len(start), generator=torch.Generator().manual_seed(0))
    config = load_config("tiny", [f"similarity.kind={kind}"])
    similarity = build_similarity(config.similarity, len(start))
    if kind == "fixed":
        similarity = Fixed(len(start), values)
    pairs = SyntheticPairs(start.images, start.texts, similarity)
    path = tmp_path / "set.safetensors"
    DistilledSet(pairs, config, setting.text_trunk, (0.5,), (0.25,), "x").save(path)
    again = DistilledSet.load(path)
    assert torch.equal(again.pairs.similarity.matrix(), similarity.matrix().cpu())
    assert kind != "fixed" or torch.equal(again.pairs.similarity.matrix(), values)


def test_one_pair_less_fits_the_budget_and_a_pair_more_is_refused(setting: Setting) -> None:
    budget = setting.config.distill.budget
    fitting = setting.distilled(start_pairs(setting))
    assert len(fitting) == budget - 1
    assert fitting.storage() <= budget
    plain = random_pairs(setting)
    assert len(plain) == budget
    too_many = SyntheticPairs(
        plain.images.detach(),
        plain.texts.detach(),
        build_similarity(SimilarityConfig(kind="lowrank", rank=2), budget),
    )
    with pytest.raises(InputError, match="more than the budget"):
        setting.distilled(too_many)


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


def test_any_contrastive_loop_can_train_on_it(distilled: DistilledSet, setting: Setting) -> None:
    model = setting.model("user")
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


def test_pixels_are_what_was_normalised(setting: Setting) -> None:
    pairs = random_pairs(setting)
    distilled = DistilledSet(
        pairs,
        setting.config,
        setting.text_trunk,
        setting.flat.model.mean,
        setting.flat.model.std,
        "x",
    )
    real = {image.tobytes() for image in setting.pairs.splits["train"].images[:]}
    assert all(image.cpu().numpy().tobytes() in real for image in distilled.pixels())


def test_a_damaged_set_is_refused(distilled: DistilledSet, tmp_path: Path) -> None:
    path = tmp_path / "set.safetensors"
    distilled.save(path)
    header, tensors = artifacts.load(path, "distilled set")
    del tensors["texts"]
    artifacts.save(path, "distilled set", header, tensors)
    with pytest.raises(InputError, match="damaged"):
        DistilledSet.load(path)


OLD = Path(__file__).parents[1] / "fixtures" / "format-1" / "distilled.safetensors"
BIG = torch.zeros(1).expand(4, 10)


@pytest.mark.parametrize(
    ("tensors", "config", "message"),
    [
        ({"images": torch.zeros(3, 3, 4, 4)}, {}, r"images of shape \(3, .*do not fit 4 pairs"),
        ({"images": torch.zeros(4, 5)}, {}, r"images of shape \(4, 5\) do not fit"),
        ({"images": torch.zeros(4, 3, 0, 0)}, {}, "do not fit"),
        ({"texts": torch.zeros(4, 7)}, {}, "no embeddings of a text trunk that gives 3"),
        ({"texts": torch.zeros(4, 3).double()}, {}, "texts are torch.float64"),
        ({"rates": torch.tensor([0.1, -0.1])}, {}, "learning rates must be positive"),
        ({"rates": torch.zeros(3)}, {}, "rates of shape"),
        ({"similarity.left": BIG}, {}, "lowrank similarity of 4 pairs holds 12 numbers, not 48"),
        ({"similarity.left": None}, {}, "holds 12 numbers, not 8"),
        ({"extra": torch.zeros(2)}, {}, "Unexpected key"),
        ({"text_standard.mean": torch.zeros(2)}, {}, "text_standard does not standardise 3"),
        ({"text_standard.scale": torch.tensor(0.0)}, {}, "text_standard does not"),
        ({"text_standard.mean": torch.zeros(3).bool()}, {}, "text_standard is torch.bool"),
        ({"text_standard.mean": torch.zeros(3).double()}, {}, "text_standard is torch.float64"),
        ({"text_standard.scale": torch.tensor(1)}, {}, "float32 and torch.int64"),
        ({"text_trunk.idf": torch.zeros(2).double()}, {}, "text trunk is damaged"),
        ({"text_trunk.components": None}, {}, "text trunk is damaged"),
        ({}, {"similarity": {"kind": "full"}}, "a full similarity of 4 pairs holds 16 numbers"),
        ({}, {"similarity": {"rank": 10**12}}, "lowrank similarity of 4 pairs holds"),
        ({}, {"similarity": {"kind": "mystery"}}, r"set\.safe.*unknown similarity 'mystery'"),
        ({}, {"loss": "mystery"}, r"set\.safetensors.*: unknown loss 'mystery'"),
        ({}, {"distill": {"budget": 3}}, "more than the budget of 3"),
        ({}, {"encoder": {"space": "features", "scope": "heads"}}, "images of shape"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_each_other_are_refused(
    tensors: dict[str, Tensor | None], config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    header, found = artifacts.load(OLD, "distilled set")
    for name, value in config.items():
        own = header["config"][name]
        header["config"][name] = {**own, **value} if isinstance(value, dict) else value
    changed = {name: t for name, t in {**found, **tensors}.items() if t is not None}
    path = tmp_path / "set.safetensors"
    artifacts.save(path, "distilled set", header, changed)
    with pytest.raises(InputError, match=message):
        DistilledSet.load(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"pairs": 10**9}, "do not fit 1000000000 pairs"),
        ({"std": [0.25, 0.0, 0.25]}, "std.1 should be greater than 0"),
        ({"mean": [0.5, 0.5]}, "mean and std of the pixels"),
        ({"text_trunk": {"kind": "mystery"}}, "unknown text trunk 'mystery'"),
        ({"text_trunk": {"kind": "given", "dim": 2**70, "fingerprint": "x"}}, "dim should be"),
        ({"text_trunk": {"kind": "given", "dim": "3", "fingerprint": "x"}}, "dim should be"),
        ({"text_trunk": {"kind": "transformers", "dim": 3, "fingerprint": "x"}}, "name Field"),
        ({"text_trunk": {"kind": "lsa", "terms": ["a"] * 25}}, "text trunk is damaged"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(
    header: dict[str, Any], message: str, tmp_path: Path
) -> None:
    found, tensors = artifacts.load(OLD, "distilled set")
    artifacts.save(tmp_path / "set", "distilled set", {**found, **header}, tensors)
    with pytest.raises(InputError, match=message):
        DistilledSet.load(tmp_path / "set")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_set_of_any_precision_keeps_every_bit(dtype: torch.dtype, tmp_path: Path) -> None:
    made = DistilledSet.load(OLD)
    generator = torch.Generator().manual_seed(0)
    made.pairs.to(dtype)
    for parameter in made.pairs.parameters():
        parameter.copy_(torch.rand(parameter.shape, generator=generator, dtype=torch.double))
    made.save(tmp_path / "set")
    again = DistilledSet.load(tmp_path / "set").pairs.state_dict()
    for name, tensor in made.pairs.state_dict().items():
        assert again[name].dtype == dtype
        assert torch.equal(again[name], tensor), name


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_needs_a_pair(batch_size: int) -> None:
    with pytest.raises(InputError, match="at least one pair"):
        next(DistilledSet.load(OLD).batches(batch_size))
