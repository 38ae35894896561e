from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from lors.config import load_config
from lors.experts import TrajectoryStore, expert_origin
from lors.setting import setting_of
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
