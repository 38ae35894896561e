from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lors.config import load_config
from lors.experts import TrajectoryStore, expert_origin, experts_of
from lors.setting import Setting, setting_of


def test_an_expert_that_another_process_trains_is_waited_for(tmp_path: Path) -> None:
    setting = setting_of(load_config("tiny", [f"experts.folder={tmp_path}", "experts.count=2"]))
    store = TrajectoryStore(tmp_path, expert_origin(setting))
    with ThreadPoolExecutor(1) as pool:
        with store.claim(0):
            training = pool.submit(experts_of, setting)
            while not store.path(1).exists() and not training.done():
                time.sleep(0.01)
            assert not training.done()
            assert store.missing(2) == [0]
        training.result()  # whoever held it has let go without training it
    assert not store.missing(2)


def test_experts_already_there_are_not_trained_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(*_: object) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr("lors.experts.of_setting.train_expert", again)
    assert not experts_of(setting).missing(setting.config.experts.count)
