"""What others publish becomes ours, and goes back number by number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import lors
from lors.cli import app
from lors.config import load_config
from lors.encoders.image import CLIP_PIXELS
from lors.experts import experts_of
from lors.runs.card import card
from lors.setting import Setting, setting_of
from lors.similarity import LowRank
from lors.system.errors import InputError
from lors.system.progress import Silent
from tests.published import LIKE, full, low_rank, numbers, written


class Told(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("theirs") / "distilled_3000.pt", low_rank())


@pytest.fixture(scope="module")
def ours(theirs: Path) -> lors.DistilledSet:
    return lors.import_set(theirs, *LIKE)


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two sets in the published format are the same bits."""
    parts = [
        *zip(one["similarity_params"], other["similarity_params"], strict=True),
        *((one[name], other[name]) for name in one if name != "similarity_params"),
    ]
    same = all(a.dtype == b.dtype and torch.equal(a, b) for a, b in parts)
    return one.keys() == other.keys() and same


@pytest.mark.parametrize("made", [low_rank(), full()])
def test_a_round_trip_keeps_every_bit(made: dict[str, Any], tmp_path: Path) -> None:
    found = lors.import_set(written(tmp_path / "theirs.pt", made), *LIKE)
    found.save(tmp_path / "ours.safetensors")
    again = lors.DistilledSet.load(tmp_path / "ours.safetensors")
    lors.export_published(again, tmp_path / "back.pt")
    assert equal(torch.load(tmp_path / "back.pt", weights_only=True), made)
    with pytest.raises(InputError, match="there already"):
        lors.export_published(again, tmp_path / "back.pt")


def test_a_whole_similarity_loads_whatever_phases_it_was_learned_in(tmp_path: Path) -> None:
    phases = "matching.phases=[{max_start_epoch: 1}, {max_start_epoch: 2}]"
    preset, changes = LIKE
    found = lors.import_set(written(tmp_path / "theirs.pt", full()), preset, [*changes, phases])
    found.save(tmp_path / "ours.safetensors")
    again = lors.DistilledSet.load(tmp_path / "ours.safetensors")
    assert torch.equal(again.similarity, found.similarity)


@pytest.mark.parametrize("number", [{"alpha": float("nan")}, {"alpha": 1e40}, {"rate": -0.1}])
def test_numbers_that_cannot_be_are_refused(number: dict[str, float], theirs: Path) -> None:
    with pytest.raises(InputError, match="must be above 0"):
        lors.import_set(theirs, *LIKE, **number)  # type: ignore[arg-type]


def test_a_set_of_ours_comes_back_from_the_published_format(
    ours: lors.DistilledSet, tmp_path: Path
) -> None:
    lors.export_published(ours, tmp_path / "out.pt")
    back = lors.import_set(tmp_path / "out.pt", ours.config.model_dump(mode="json"))
    state = back.pairs.state_dict()
    assert all(torch.equal(state[k], v) for k, v in ours.pairs.state_dict().items())
    assert replace(back, pairs=ours.pairs).config == ours.config


def test_what_the_file_does_not_say_is_as_in_the_published_code(ours: lors.DistilledSet) -> None:
    config = ours.config
    assert config.loss == "wbce-published"
    assert (config.encoder.normalisation, config.encoder.standardise) == ("clip", False)
    assert {"mean": ours.mean, "std": ours.std} == CLIP_PIXELS
    assert config.distill.budget == 7  # six pairs and their similarity
    assert ours.imported == "distilled_3000.pt"
    assert ours.rates == pytest.approx((0.1, 0.07))


def test_images_go_into_the_trunk_as_they_are(ours: lors.DistilledSet, theirs: Path) -> None:
    model = setting_of(ours.config, like=ours).model("any")
    images = torch.load(theirs, weights_only=True)["image"]
    assert torch.equal(ours.images_for(model), images)
    pixels = torch.arange(0, 256, 85, dtype=torch.uint8).view(1, 1, 1, 4).expand(1, 3, 1, 4)
    mean, std = map(torch.tensor, CLIP_PIXELS.values())
    seen = model.normalise(pixels)[0, :, 0, 3]
    torch.testing.assert_close(seen, (1 - mean) / std)


def test_how_pixels_were_normalised_can_be_said(theirs: Path) -> None:
    preset, changes = LIKE
    found = lors.import_set(theirs, preset, [*changes, "encoder.normalisation=trunk"])
    model = setting_of(found.config, like=found).model("any")
    assert found.config.encoder.normalisation == "trunk"
    assert {"mean": found.mean, "std": found.std} == {"mean": model.mean, "std": model.std}
    assert found.mean != CLIP_PIXELS["mean"]
    assert torch.equal(found.images_for(model), found.images)
    with pytest.raises(InputError, match=r"leave out encoder\.standardise"):
        lors.import_set(theirs, preset, {"encoder.text_dim": 12, "encoder.standardise": True})


def test_images_that_may_not_be_normalised_are_told(tmp_path: Path) -> None:
    told = Told()
    raw = {**low_rank(), "image": numbers(6, 3, 16, 16).sigmoid()}
    lors.import_set(written(tmp_path / "raw.pt", raw), *LIKE, progress=told)
    assert "may not have been normalised" in " ".join(told.said)
    told.said.clear()
    lors.import_set(written(tmp_path / "theirs.pt", low_rank()), *LIKE, progress=told)
    assert told.said == []


def test_subsets_are_imported_together(tmp_path: Path) -> None:
    parts = [written(tmp_path / f"distilled_{i}_9.pt", full(3 + i, seed=30 * i)) for i in (0, 1)]
    found = lors.import_set(parts, *LIKE)
    assert (len(found), found.config.similarity.kind) == (7, "full")
    assert found.imported == "distilled_0_9.pt … distilled_1_9.pt"
    with pytest.raises(InputError, match="give each subset once"):
        lors.import_set([*parts, parts[0]], *LIKE)
    other = written(tmp_path / "other.pt", {**full(), "text": numbers(6, 11)})
    with pytest.raises(InputError, match="not subsets of one set"):
        lors.import_set([parts[0], other], *LIKE)


@pytest.mark.parametrize(
    ("like", "changes", "sentence"),
    [
        ("tiny", [], "texts of 12 numbers are no embeddings"),
        ("features", [], "space pixels"),
        ("no-such", [], "no-such"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    like: str, changes: list[str], sentence: str, theirs: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        lors.import_set(theirs, like, changes)


def test_nothing_but_an_import_opens_a_pickled_file(theirs: Path) -> None:
    for opens in (lors.load, lors.DistilledSet.load, lors.Run, lors.evaluate, lors.evaluate_set):
        with pytest.raises(InputError, match="only 'lors import' opens"):
            opens(theirs)
    with pytest.raises(InputError, match="--like"):
        lors.judge(theirs)


def folder_of_images(folder: Path, count: int = 4) -> list[str]:
    folder.mkdir(parents=True)
    for i in range(count):
        Image.new("RGB", (20, 20), (60 * i, 10, 200)).save(folder / f"{i}.png")
    return [f"a {word} circle" for word in ("red", "blue", "green", "yellow")[:count]]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "txt"])
def test_a_folder_of_captioned_images_becomes_a_set(kind: str, tmp_path: Path) -> None:
    words = folder_of_images(tmp_path / "pds")
    rows = [f'{{"file_name": "{i}.png", "text": "{word}"}}' for i, word in enumerate(words)]
    if kind == "csv":
        lines = [f"{i}.png,{word}" for i, word in enumerate(words)]
        (tmp_path / "pds" / "captions.csv").write_text("\n".join(["image,caption", *lines]))
    elif kind == "txt":
        for i, word in enumerate(words):
            (tmp_path / "pds" / f"{i}.txt").write_text(word)
    else:
        text = f"[{','.join(rows)}]" if kind == "json" else "\n".join(rows)
        (tmp_path / "pds" / f"metadata.{kind}").write_text(text)
    found = lors.import_set(tmp_path / "pds", *LIKE, rate=0.1)
    assert found.captions == tuple(words)
    assert found.pixels()[:, 0].float().mean((1, 2)).tolist() == [0, 60, 120, 180]
    np.testing.assert_allclose(found.texts, found.text_trunk.embed(words, None), atol=1e-5)  # type: ignore[arg-type]
    assert (found.config.similarity.kind, found.storage()) == ("identity", 4)
    assert found.rates == pytest.approx((0.1, 0.1))


def test_the_rate_of_a_folder_is_tuned_on_val(tmp_path: Path) -> None:
    words = folder_of_images(tmp_path / "edge")
    for i, word in enumerate(words):
        (tmp_path / "edge" / f"{i}.txt").write_text(word)
    quick = [*LIKE[1], "evaluate.epochs=2", "evaluate.tried_rates=[0.3]"]
    found = lors.import_set(tmp_path / "edge", "tiny", quick)
    assert found.rates == pytest.approx((0.3, 0.3))
    assert found.config.loss in ("nce", "wbce")


def test_a_folder_without_captions_is_refused(tmp_path: Path) -> None:
    folder_of_images(tmp_path / "images")
    with pytest.raises(InputError, match="no images with captions"):
        lors.import_set(tmp_path / "images", *LIKE)


@pytest.fixture(scope="module")
def trained() -> Setting:
    """The smallest preset in the published code's reading, with its experts."""
    changes = ["encoder.standardise=false", "encoder.normalisation=clip", *LIKE[1]]
    made = setting_of(load_config("tiny", changes))
    experts_of(made)
    return made


def published_buffers(setting: Setting, folder: Path) -> None:
    """Its experts in the published format, one file each."""
    store, flat = experts_of(setting), setting.flat
    image_count = len(setting.flat.model.sides()[0])
    for expert in range(2):
        snapshots = [flat.tensors(theta) for theta in store.snapshots(expert, range(4))]
        for side, part in (("img", slice(image_count)), ("txt", slice(image_count, None))):
            kept = [[p.clone() for p in tensors[part]] for tensors in snapshots]
            torch.save([kept], folder / f"{side}_replay_buffer_{expert}.pt")


def test_experts_are_imported_and_used(trained: Setting, tmp_path: Path) -> None:
    published_buffers(trained, tmp_path)
    store = lors.import_experts(tmp_path, "tiny", tmp_path / "ours", LIKE[1])
    kept = experts_of(trained)
    for expert in range(2):
        every = range(4)
        assert torch.equal(store.snapshots(expert, every), kept.snapshots(expert, every))
    changes = {"experts.folder": tmp_path / "ours"}
    config = load_config(trained.config.model_dump(mode="json"), changes)
    before = (tmp_path / "ours" / "expert-001.safetensors").read_bytes()
    assert experts_of(setting_of(config)).missing(2) == []
    assert (tmp_path / "ours" / "expert-001.safetensors").read_bytes() == before
    with pytest.raises(InputError, match="do not say what they learned"):
        store.learned(0)
    with pytest.raises(InputError, match="there already"):
        lors.import_experts(tmp_path, "tiny", tmp_path / "ours", LIKE[1])


def test_the_command_that_is_told_uses_the_experts(trained: Setting, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    published_buffers(trained, theirs)
    words = ["import", str(theirs), *LIKE[1], "--like", "tiny", "--out", str(ours)]
    told = CliRunner().invoke(app, words).output.partition("lors distill tiny ")[2]
    config = load_config("tiny", "".join(told.splitlines()).split())
    assert config.experts.count == 2
    before = (ours / "expert-001.safetensors").read_bytes()
    assert experts_of(setting_of(config)).missing(2) == []
    assert (ours / "expert-001.safetensors").read_bytes() == before


def test_experts_of_another_network_are_refused(trained: Setting, tmp_path: Path) -> None:
    published_buffers(trained, tmp_path)
    changes = [*LIKE[1], "encoder.text_head=mlp"]
    with pytest.raises(InputError, match=r"text side has 2 parameters.*another --like"):
        lors.import_experts(tmp_path, "tiny", tmp_path / "ours", changes)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no img_replay_buffer_K\.pt"):
        lors.import_experts(tmp_path / "empty", "tiny", tmp_path / "mine")


def test_a_set_of_features_cannot_be_published(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    small = lors.distill(
        rng.normal(size=(40, 6)), rng.normal(size=(40, 5)), pairs=4, method="random",
        progress=False, evaluate={"epochs": 1, "seeds": 1}, tried_rates=[0.1],
    )  # fmt: skip
    with pytest.raises(InputError, match="holds pixels"):
        lors.export_published(small, tmp_path / "out.pt")


def test_a_low_rank_set_keeps_its_factors(ours: lors.DistilledSet) -> None:
    similarity = ours.pairs.similarity
    assert isinstance(similarity, LowRank)
    omega, left, right = low_rank()["similarity_params"]
    assert torch.equal(similarity.omega, omega)
    assert torch.equal(similarity.left, left)
    assert torch.equal(similarity.right, right)


def test_the_card_says_who_did_not_make_it(ours: lors.DistilledSet) -> None:
    text = card(ours, {}, {})
    assert "of another project, imported from `distilled_3000.pt`" in text
    assert "was not made by `lors`" in text
    assert "lors distill" not in text
