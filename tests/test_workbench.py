from __future__ import annotations

from pathlib import Path

import pytest

from lors.config import load_config
from lors.errors import InputError
from lors.workbench import Workbench


def test_mistakes_show_before_anything_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home"))
    settings = ["encoder.text=transformers:/absent"]
    with pytest.raises(InputError, match=r"data\.root"):  # not the text trunk, a long download
        Workbench(load_config("tiny", [*settings, "data.source=table", "data.root=/none"]))
    with pytest.raises(InputError, match="/absent"):
        Workbench(load_config("tiny", settings))
    assert not (tmp_path / "home").exists()  # no image was decoded
