from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from lors.config import load_config
from lors.data import Pairs, Split
from lors.experts import TrajectoryStore, expert_origin
from lors.setting import Setting, resolve, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError


def test_mistakes_show_before_anything_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home"))
    settings = ["encoder.text=transformers:/absent"]
    with pytest.raises(InputError, match=r"data\.root"):  # not the text trunk, a long download
        setting_of(load_config("tiny", [*settings, "data.source=table", "data.root=/none"]))
    with pytest.raises(InputError, match="/absent"):
        setting_of(load_config("tiny", settings))
    assert not (tmp_path / "home").exists()  # no image was decoded


def test_an_expert_that_another_process_trains_is_waited_for(tmp_path: Path) -> None:
    bench = setting_of(load_config("tiny", [f"experts.folder={tmp_path}", "experts.count=2"]))
    store = TrajectoryStore(tmp_path, expert_origin(bench))
    with ThreadPoolExecutor(1) as pool:
        with store.claim(0):
            training = pool.submit(bench.experts)
            while not store.path(1).exists() and not training.done():
                time.sleep(0.01)
            assert not training.done()
            assert store.missing(2) == [0]
        training.result()  # whoever held it has let go without training it
    assert not store.missing(2)


def test_a_given_similarity_is_that_of_the_pairs(tmp_path: Path) -> None:
    settings = ["similarity.kind=fixed", f"similarity.values={tmp_path}/values.npy"]
    values = np.random.default_rng(0).normal(size=(7, 7)).astype(np.float32)
    np.save(tmp_path / "values.npy", values)  # storing S costs one of the eight pairs
    start = start_pairs(setting_of(load_config("tiny", settings)))
    assert np.array_equal(start.similarity.matrix().numpy(), values)


def test_a_set_may_be_kept_within_one_batch() -> None:
    settings = ["distill.budget=20", "evaluate.batch_size=7"]
    assert len(start_pairs(setting_of(load_config("tiny", settings)))) == 19
    assert (
        len(start_pairs(setting_of(load_config("tiny", [*settings, "distill.one_batch=true"]))))
        == 7
    )


def given(pixels: bool, texts: int = 12) -> Pairs:
    rng = np.random.default_rng(0)
    shape = (50, 3, 16, 16) if pixels else (50, 20)
    images = rng.integers(0, 256, shape, np.uint8) if pixels else rng.normal(size=shape)
    words = rng.normal(size=(50, texts)).astype(np.float32)
    images = images if pixels else images.astype(np.float32)
    split = Split(images, [], np.arange(50), "mine", words)
    return Pairs("mine", dict.fromkeys(("train", "val", "test"), split))


def test_a_setting_works_on_pairs_that_are_given() -> None:
    config = resolve(load_config("tiny", ["data.root=/absent"]))  # which nobody reads
    pixels = Setting(config, pairs=given(pixels=True))
    assert pixels.text_trunk.dim == 12
    assert pixels.flat.model.text.in_features == 12
    assert start_pairs(pixels).images.shape == (7, 3, 16, 16)
    heads = ["encoder.scope=heads", "encoder.image_head=linear", "encoder.space=features"]
    features = Setting(resolve(load_config("tiny", heads)), pairs=given(pixels=False))
    assert features.image_trunk == "given|20"
    assert start_pairs(features).images.shape[1:] == (20,)
    with pytest.raises(InputError, match="no pixels"):
        Setting(config, pairs=given(pixels=False))
