from __future__ import annotations

from lors.config import load_config
from lors.setting import setting_of
from lors.starts import Material


def test_a_set_may_be_kept_within_one_batch() -> None:
    settings = ["distill.budget=20", "evaluate.batch_size=7"]
    assert Material(setting_of(load_config("tiny", settings))).count == 19
    one_batch = load_config("tiny", [*settings, "distill.one_batch=true"])
    assert Material(setting_of(one_batch)).count == 7
