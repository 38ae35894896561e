"""The second door: arrays, datasets, models and losses of one's own, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

import lors
from lors.config import load_config
from lors.system.errors import InputError
from lors.system.progress import Silent

QUICK: dict[str, Any] = {
    "iterations": 4,
    "evaluate_every": 0,
    "experts": {"count": 2, "epochs": 4},
    "evaluate": {"epochs": 8, "seeds": 2, "checks": 2},
    "progress": False,
}
SMALL_LORS = {**QUICK, "rank": 2, "expert_epochs": 1, "max_start_epoch": 2}


def latent(count: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of two sides that share what they say."""
    rng = np.random.default_rng(seed)
    shared, maps = rng.normal(size=(count, 6)), np.random.default_rng(7)
    sides = (shared @ maps.normal(size=(6, d)) for d in (16, 12))
    images, texts = (side + 0.3 * rng.normal(size=side.shape) for side in sides)
    return images.astype(np.float32), texts.astype(np.float32)


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, np.ndarray]:
    return latent()


@pytest.fixture(scope="module")
def small(arrays: tuple[np.ndarray, np.ndarray]) -> lors.DistilledSet:
    return lors.distill(*arrays, pairs=20, rank=2, **QUICK)


def test_two_arrays_in_and_a_set_out(small: lors.DistilledSet) -> None:
    assert small.images.shape[1:] == (16,)
    assert small.texts.shape[1:] == (12,)
    assert small.similarity.shape == (len(small), len(small))
    assert small.storage() <= 20
    assert small.config.matching.kind == "hindsight"
    assert "DistilledSet" in repr(small)
    assert len(repr(small)) < 150
    index = torch.tensor([3, 0])
    torch.testing.assert_close(small.similarity_at(index), small.similarity[index][:, index])


def test_the_set_is_in_the_units_of_the_arrays(arrays: tuple[np.ndarray, np.ndarray]) -> None:
    """A thousand times as large, a thousand times as large a set: nothing else changes."""
    images, texts = arrays
    plain, large = (
        lors.distill(scale * images, scale * texts, pairs=20, rank=2, **QUICK)
        for scale in (1.0, 1024.0)
    )
    torch.testing.assert_close(1024 * plain.images, large.images, rtol=1e-3, atol=1e-1)
    assert plain.rates == pytest.approx(large.rates, rel=1e-3)


def test_a_loader_for_any_training_loop(small: lors.DistilledSet) -> None:
    seen = []
    for images, texts, similarity in small.loader(batch_size=8):
        assert len(images) == len(texts) == len(similarity) == similarity.shape[1]
        seen += [tuple(row.tolist()) for row in images]
    assert sorted(seen) == sorted(tuple(row.tolist()) for row in small.images)
    image, text, number = small.dataset()[-1]
    assert number == len(small) - 1
    torch.testing.assert_close(image, small.images[-1])
    torch.testing.assert_close(text, small.texts[-1])


def test_plain_arrays_and_devices(small: lors.DistilledSet) -> None:
    images, texts, similarity = small.arrays()
    assert images.dtype == texts.dtype == similarity.dtype == np.float32
    np.testing.assert_allclose(similarity, small.similarity.numpy())
    moved = small.to("cpu")
    assert torch.equal(moved.images, small.images)


def test_the_loss_of_open_clip_loops_is_that_of_the_set(small: lors.DistilledSet) -> None:
    loss = lors.ClipLoss(small.config.loss)
    u, v = (F.normalize(torch.randn(5, 4), dim=1) for _ in range(2))
    index = torch.arange(5)
    loss.similarity = small.similarity_at(index)
    found = loss(
        image_features=u, text_features=v, logit_scale=torch.tensor(14.0), output_dict=True
    )
    assert isinstance(found, dict)
    expected = small.loss(14 * u @ v.T, small.similarity[:5, :5])
    torch.testing.assert_close(found["contrastive_loss"], expected)


def test_it_is_evaluated_on_arrays_in_the_same_units(small: lors.DistilledSet) -> None:
    row = lors.evaluate(small, test=latent(60, seed=1), progress=False)
    chance = lors.evaluate(
        small, test=(latent(60, seed=1)[0], latent(60, seed=2)[1]), progress=False
    )
    assert row.mean > 1.5 * chance.mean  # texts that belong to other images find nothing
    assert row.networks == 2
    assert row.readings.last == row.readings.chosen  # nothing to choose the epoch by


def test_it_is_saved_and_loaded(small: lors.DistilledSet, tmp_path: Path) -> None:
    small.save(tmp_path / "small.safetensors")
    again = lors.load(tmp_path / "small.safetensors")
    assert isinstance(again, lors.DistilledSet)
    assert torch.equal(again.images, small.images)
    with pytest.raises(InputError, match="given in Python"):
        lors.evaluate(again, progress=False)


def test_the_three_doors_give_the_same_bits(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    for name, array in zip(("images", "texts"), arrays, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    settings = {
        "data.root": str(tmp_path),
        "data.annotations": {"images": "images.npy", "texts": "texts.npy"},
        "distill.budget": 20,
        "distill.iterations": 4,
        "distill.evaluate_every": 0,
        "similarity.rank": 2,
        "experts.count": 2,
        "experts.epochs": 4,
        "evaluate.epochs": 8,
        "evaluate.seeds": 2,
        "evaluate.checks": 2,
    }
    config = load_config("features", settings)
    lors.run(config, tmp_path / "run", Silent(), references=False)
    called = lors.distill(*arrays, pairs=20, rank=2, out=tmp_path / "call", **QUICK)
    from typer.testing import CliRunner

    from lors.cli import app

    words = [f"{name}={value}" for name, value in settings.items() if name != "data.annotations"]
    words += ["data.annotations.images=images.npy", "data.annotations.texts=texts.npy"]
    out = str(tmp_path / "command")
    done = CliRunner().invoke(app, ["distill", "features", *words, "--out", out, "--no-references"])
    assert done.exit_code == 0, done.output
    files = [tmp_path / door / "distilled.safetensors" for door in ("run", "call", "command")]
    first, *others = (load_file(file) for file in files)
    for other in others:
        assert first.keys() == other.keys()
        assert all(torch.equal(first[name], other[name]) for name in first)
    assert len(called) == len(first["images"])


def test_without_out_nothing_is_written_outside_the_cache(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lors.distill(*arrays, pairs=20, method="random", **QUICK)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_call_goes_on(
    arrays: tuple[np.ndarray, np.ndarray], small: lors.DistilledSet, tmp_path: Path
) -> None:
    class Stop(Silent):
        def note(self, **facts: Any) -> None:
            raise KeyboardInterrupt

    quick = {**QUICK, "checkpoint_every": 1}
    with pytest.raises(KeyboardInterrupt):
        lors.distill(*arrays, pairs=20, rank=2, out=tmp_path, **{**quick, "progress": Stop()})
    again = lors.distill(*arrays, pairs=20, rank=2, out=tmp_path, **quick)
    assert torch.equal(again.images, small.images)


def scenes(count: int = 60) -> tuple[list[Image.Image], list[str]]:
    rng = np.random.default_rng(0)
    colours = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}
    names = [sorted(colours)[i % 3] for i in range(count)]
    images = [
        Image.fromarray(
            np.clip(np.array(colours[n]) + rng.normal(0, 20, (20, 20, 3)), 0, 255).astype(np.uint8)
        )
        for n in names
    ]
    words = ["wall", "door", "roof", "car", "hat", "cup", "bag", "boat"]
    return images, [f"a {n} {words[i % 8]} number {i}" for i, n in enumerate(names)]


IMAGES: dict[str, Any] = {
    **SMALL_LORS,
    "pairs": 8,
    "encoder": {"image_size": 16, "text_dim": 8, "scope": "image", "image": "nf_resnet_tiny"},
}


@pytest.mark.parametrize("door", ["lists", "dataset", "huggingface", "folder"])
def test_images_and_captions_of_any_kind(door: str, tmp_path: Path) -> None:
    images, captions = scenes()
    data: Any
    if door == "lists":
        data = lors.Pairs.images(images, captions)
    elif door == "dataset":
        data = list(zip(images, captions, strict=True))
    elif door == "huggingface":
        datasets = pytest.importorskip("datasets")
        data = datasets.Dataset.from_dict({"image": images, "caption": captions})
        data = data.cast_column("image", datasets.Image())
    else:
        for number, image in enumerate(images):
            image.save(tmp_path / f"{number}.png")
        rows = [f"{number}.png,{caption}" for number, caption in enumerate(captions)]
        (tmp_path / "captions.csv").write_text("\n".join(["image,caption", *rows]))
        data = lors.Pairs.folder(tmp_path)
    encoder = lors.Encoder(image="nf_resnet_tiny", image_size=16, text="lsa", scope="image")
    options = {**SMALL_LORS, "text_dim": 8}
    made = lors.distill(data, pairs=8, method="lors", encoder=encoder, **options)
    assert made.images.shape[1:] == (3, 16, 16)
    assert len(made.captions) == len(made)
    assert set(made.captions) <= set(captions)


def half_squared(logits: Tensor, similarity: Tensor) -> Tensor:
    return (logits - 10 * similarity).square().mean() / 2


def test_a_loss_and_a_model_of_ones_own(arrays: tuple[np.ndarray, np.ndarray]) -> None:
    def network() -> tuple[nn.Module, nn.Module]:
        return nn.Linear(16, 5, bias=False), nn.Linear(12, 5, bias=False)

    made = lors.distill(
        *arrays, pairs=20, method="lors", model=network, loss=half_squared, **SMALL_LORS
    )
    assert made.config.loss.startswith("own:half_squared")
    assert made.loss is half_squared
    row = lors.evaluate(made, test=latent(60, seed=1), progress=False)
    assert row.networks == 2


def test_methods_are_compared(arrays: tuple[np.ndarray, np.ndarray]) -> None:
    found = lors.compare(*arrays, methods=["lors", "random"], pairs=[10, 20], seeds=1, **SMALL_LORS)
    assert len(found.records) == 4
    assert found.mean("random", 20) == found.records[-1].mean
    assert "LoRS (wBCE)" in repr(found)
    assert "<table>" in found._repr_html_()
    assert "Full data" in repr(found)
    frame = found.to_pandas()
    assert list(frame["pairs"]) == [10, 10, 20, 20]


BAD: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "lengths": (np.eye(9, 3), np.eye(8, 3), {}, r"9 images .* and 8 texts"),
    "flat captions": (np.eye(9, 3), np.eye(18, 3), {}, "owner"),
    "nan": (
        np.full((9, 3), np.nan),
        np.eye(9, 3),
        {},
        "images.* rows 0 to 8 hold numbers that are not finite",
    ),
    "whole numbers": (np.eye(9, 3, dtype=int), np.eye(9, 3), {}, "floating-point"),
    "no rows": (np.zeros((0, 3)), np.zeros((0, 3)), {}, "no pairs"),
    "one pair": (np.eye(1, 3), np.eye(1, 3), {}, "too few"),
    "no number of pairs": (np.eye(9, 3), np.eye(9, 3), {"pairs": 0}, "1 or more"),
    "more pairs than there are": (np.eye(9, 3), np.eye(9, 3), {"pairs": 99}, "fewer than"),
    "method": (np.eye(9, 3), np.eye(9, 3), {"method": "hindsite"}, "did you mean 'hindsight'"),
    "option": (np.eye(9, 3), np.eye(9, 3), {"iteratons": 3}, "did you mean 'iterations'"),
    "ambiguous": (np.eye(9, 3), np.eye(9, 3), {"batch_size": 3}, "experts.batch_size or"),
    "loss of no scalar": (np.eye(9, 3), np.eye(9, 3), {"loss": lambda x, s: x}, "one finite"),
    "loss without gradient": (
        np.eye(9, 3),
        np.eye(9, 3),
        {"loss": lambda x, s: x.detach().sum()},
        "no gradient",
    ),
    "nothing": (object(), None, {}, "cannot be used"),
    "a mapping": ({"images": np.eye(9, 3)}, None, {}, "cannot be used"),
    "no texts": (np.eye(9, 3), None, {}, "give the texts"),
    "test that is no pairs": (np.eye(9, 3), np.eye(9, 3), {"test": np.eye(9, 3)}, "test is a nd"),
    "test beside a folder": ("photos", None, {"test": (np.eye(3), np.eye(3))}, "splits already"),
    "encoder": (np.eye(9, 3), np.eye(9, 3), {"encoder": "resnet18"}, r"give lors\.Encoder"),
    "scope": (np.eye(9, 3), np.eye(9, 3), {"encoder": lors.Encoder(scope="heds")}, "'heads'"),
    "loss": (np.eye(9, 3), np.eye(9, 3), {"loss": 3}, "a loss is a name or a function"),
    "model without gradients": (
        np.eye(99, 3),
        np.eye(99, 3),
        {"model": lambda: (nn.Linear(3, 2).requires_grad_(False), nn.Linear(3, 2)), "pairs": 9},
        "none of its parameters requires a gradient",
    ),
    "other matcher's option": (np.eye(9, 3), np.eye(9, 3), {"matching.blend": 1}, "trajectory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case: str) -> None:
    data, texts, options, sentence = BAD[case]
    with pytest.raises(InputError, match=sentence):
        lors.distill(data, texts, **{"progress": False, **options})


@pytest.mark.parametrize("case", sorted({*BAD} - {"method", "other matcher's option"}))
def test_bad_input_of_a_comparison_gets_the_same_sentence(case: str) -> None:
    data, texts, options, sentence = BAD[case]
    with pytest.raises(InputError, match=sentence):
        lors.compare(data, texts, **{"progress": False, **options})


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "lengths": ((np.eye(9, 16), np.eye(8, 12)), {}, "9 images .* and 8 texts"),
    "width of images": ((np.eye(9, 5), np.eye(9, 12)), {}, "5 and 12 numbers each"),
    "width of texts": ((np.eye(9, 16), np.eye(9, 5)), {}, "16 and 5 numbers each"),
    "nan": ((np.full((9, 16), np.nan), np.eye(9, 12)), {}, "not finite"),
    "one pair": ((np.eye(1, 16), np.eye(1, 12)), {}, "2 or more"),
    "whole numbers": ((np.eye(9, 16, dtype=int), np.eye(9, 12)), {}, "floating-point"),
    "images": (scenes(9), {}, "give embeddings"),
    "no texts": (np.eye(9, 16), {}, "give the texts"),
    "val alone": (None, {"val": latent(9)}, "give test, too"),
    "loss of no scalar": (latent(9), {"loss": lambda x, s: x}, "one finite"),
    "option": (latent(9), {"seedz": 3}, "did you mean 'seed'"),
    "model without gradients": (
        latent(9),
        {"model": lambda: (nn.Linear(16, 2).requires_grad_(False), nn.Linear(12, 2))},
        "none of its parameters requires a gradient",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_of_an_evaluation_gets_one_sentence(case: str, small: lors.DistilledSet) -> None:
    test, options, sentence = REFUSED[case]
    with pytest.raises(InputError, match=sentence):
        lors.evaluate(small, test, **{"progress": False, **options})


def test_what_is_no_set_is_not_evaluated(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a distilled set"):
        lors.evaluate(3, test=latent(9))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"there is no file .*distilled\.safetensors"):
        lors.evaluate(tmp_path, test=latent(9))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seeds": 0}, "seeds is how many"),
        ({"seeds": "2"}, "seeds is how many"),
        ({"pairs": [10, 0]}, "give 1 or more, not 0"),
        ({"pairs": 10.5}, "give 1 or more, not 10.5"),
        ({"pairs": []}, "one or more numbers of pairs"),
        ({"methods": [3]}, "a method is a name"),
    ],
)
def test_bad_input_of_a_comparison_gets_one_sentence(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        lors.compare(np.eye(9, 3), np.eye(9, 3), **{"progress": False, **options})


def test_counts_may_be_those_of_numpy(arrays: tuple[np.ndarray, np.ndarray]) -> None:
    quick = {**QUICK, "tried_rates": [0.1]}
    made = lors.distill(*arrays, pairs=np.int64(8), method="random", **quick)
    assert len(made) == 8
    with pytest.raises(InputError, match="from 0 to 7"):
        made.similarity_at([8])
    assert made.similarity_at(np.array([7, 0])).tolist() == [[1, 0], [0, 1]]


def test_a_set_is_evaluated_with_another_model_and_loss(small: lors.DistilledSet) -> None:
    row = lors.evaluate(
        small,
        test=latent(40, seed=1),
        model=lambda: (nn.Linear(16, 3), nn.Linear(12, 3)),
        loss=half_squared,
        progress=False,
    )
    assert "own:half_squared" in row.note
    assert repr(row).startswith("mean recall ")
