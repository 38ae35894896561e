from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from lors.config import load_config
from lors.data import load_pairs
from lors.encoders.image import image_trunk
from lors.setting.resolve import resolve
from lors.show.analysis.variance import RunningVariance, build_encoder, dataset_variance, merged
from lors.system.errors import InputError


def test_a_set_worked_out_by_hand() -> None:
    """Class 0 lies at 0 and 2 around 1, class 1 at 10 and 14 around 12: (1 + 1 + 4 + 4) / 4."""
    within, total = RunningVariance(), RunningVariance()
    rows = np.array([[0.0], [10.0], [2.0], [14.0]])
    within.add(rows, np.array([0, 1, 0, 1]))
    total.add(rows, np.zeros(4, int))
    assert within.value() == pytest.approx(2.5)
    assert total.value() == pytest.approx(np.var([0, 10, 2, 14]))


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_one_pass_in_batches_is_the_definition(batch: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(1000, 0.1, (100, 5)).astype(np.float32)  # far from zero: digits could be lost
    labels = rng.integers(0, 4, 100)
    running = RunningVariance()
    for start in range(0, 100, batch):
        running.add(rows[start : start + batch], labels[start : start + batch])
    means = np.stack([rows[labels == c].mean(0, dtype=np.float64) for c in range(4)])
    expected = ((rows - means[labels]) ** 2).sum(1).mean() / 5
    assert running.value() == pytest.approx(expected, rel=1e-8)
    assert (running.count, running.dimensions) == (100, 5)


def test_the_variance_of_pairs_is_that_of_the_features_of_the_trunk() -> None:
    config = resolve(load_config("tiny"))
    (row,) = dataset_variance(config)
    split = load_pairs(config.data, 16).splits["train"]
    encode = build_encoder("nf_resnet_tiny", 16, torch.device("cpu"))
    features = encode(torch.from_numpy(np.array(split.images))).numpy()
    assert row["variance"] == pytest.approx(features.var(0).mean(), rel=1e-4)
    assert (row["dataset"], row["kind"], row["images"]) == ("scenes", "pairs", 200)


def test_an_encoder_takes_its_weights_from_a_file(tmp_path: Path) -> None:
    trunk = image_trunk("nf_resnet_tiny", None, 16).eval()
    save_file(trunk.state_dict(), tmp_path / "own.safetensors")
    pixels = torch.randint(256, (2, 3, 16, 16), dtype=torch.uint8)
    name = f"nf_resnet_tiny@{tmp_path}/own.safetensors"
    found = build_encoder(name, 16, torch.device("cpu"))(pixels)
    with torch.no_grad():
        expected = trunk((pixels / 255 - 0.5) / 0.25)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_classes_are_taken_apart_in_labelled_data(tmp_path: Path) -> None:
    """Images of one class that are all alike have no variance, however far classes are apart."""
    for name, grey in {"dark": 10, "light": 240}.items():
        folder = tmp_path / "dtd" / "images" / name
        folder.mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (20, 30), (grey, grey, grey)).save(folder / f"{i}.png")
    rows = dataset_variance(load_config("tiny"), labelled=["dtd"], root=tmp_path)
    assert [(row["dataset"], row["images"]) for row in rows] == [("scenes", 200), ("dtd", 6)]
    assert rows[1]["variance"] == pytest.approx(0, abs=1e-9)


def test_an_open_clip_model_is_an_encoder(tiny_clip: str, tmp_path: Path) -> None:
    """Its embeddings come as they are, not normalised."""
    open_clip = pytest.importorskip("open_clip")
    model = open_clip.create_model(tiny_clip).eval()
    save_file(model.state_dict(), tmp_path / "clip.safetensors")
    name = f"open_clip:{tiny_clip}/{tmp_path}/clip.safetensors"
    (row,) = dataset_variance(load_config("tiny"), [name])
    assert (row["encoder"], row["dimensions"]) == (name, 8)
    grey = torch.full((1, 3, 32, 32), 100, dtype=torch.uint8)
    moments = (model.visual.image_mean, model.visual.image_std)
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in moments)
    with torch.no_grad():
        expected = model.encode_image((grey / 255 - mean) / std)
    torch.testing.assert_close(build_encoder(name, 32, torch.device("cpu"))(grey), expected)


def test_unknown_clips_are_refused(tiny_clip: str) -> None:
    with pytest.raises(InputError, match="cannot load the open_clip model"):
        build_encoder(f"open_clip:{tiny_clip}/none", 16, torch.device("cpu"))
    with pytest.raises(InputError, match="unknown open_clip model"):
        build_encoder("open_clip:tiny-clop/x", 16, torch.device("cpu"))


def test_given_embeddings_need_no_encoder(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    np.save(tmp_path / "both.npy", rows)
    data = ["data.annotations.images=both.npy", "data.annotations.texts=both.npy"]
    settings = [f"data.root={tmp_path}", "data.pairs.val=30", "data.pairs.test=30", *data]
    (row,) = dataset_variance(load_config("features", settings))
    assert (row["encoder"], row["dimensions"]) == ("given", 6)
    assert row["variance"] == pytest.approx(1, abs=0.2)


def test_a_table_keeps_what_was_measured_before(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("dataset,encoder,variance\nold,a,1\nsame,a,2\n")
    new = [{"dataset": "same", "encoder": "a", "variance": 3.0}]
    assert [row["dataset"] for row in merged(new, path)] == ["old", "same"]
    assert merged(new, path)[1]["variance"] == 3.0
    assert merged(new, tmp_path / "absent.csv") == new
