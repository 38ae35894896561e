from __future__ import annotations

from pathlib import Path

import pytest

from lors.config import load_config
from lors.encoders import downloads
from lors.encoders.image import image_trunk
from lors.encoders.transformers_text import TransformersText
from lors.system import hub
from lors.system.errors import InputError
from lors.system.progress import Silent

IMAGE, TEXT = "timm/tf_efficientnet_lite0.in1k", "sentence-transformers/all-MiniLM-L6-v2"


class Said(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def test_what_is_downloaded_is_said_with_its_size_and_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(downloads, "try_to_load_from_cache", lambda *_, **__: None)
    monkeypatch.setattr(downloads, "hub_answers", lambda: True)
    sizes = {IMAGE: 18.8, TEXT: 90.9}
    monkeypatch.setattr(downloads, "megabytes", lambda repository, *_: sizes[repository])
    said = Said()
    downloads.announce_downloads(load_config("photos").encoder, said)
    (line,) = said.lines
    assert f"{IMAGE} (19 MB) and {TEXT} (91 MB), once, to {hub.cache_folder()}" in line
    assert "encoder.image_weights=FILE.safetensors encoder.text=transformers:FOLDER" in line


def test_local_and_cached_files_are_not_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "try_to_load_from_cache", lambda *_, **__: "file")
    monkeypatch.setattr(downloads, "hub_answers", pytest.fail)
    said = Said()
    local = [f"encoder.image_weights={tmp_path / 'x'}", f"encoder.text=transformers:{tmp_path}"]
    downloads.announce_downloads(load_config("photos").encoder, said)
    monkeypatch.setattr(downloads, "try_to_load_from_cache", pytest.fail)
    downloads.announce_downloads(load_config("photos", local).encoder, said)
    assert not said.lines


def test_offline_all_that_is_missing_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "hub_answers", lambda: False)
    monkeypatch.setattr(hub, "hub_answers", lambda: False)
    monkeypatch.setattr(downloads, "try_to_load_from_cache", lambda *_, **__: None)
    with pytest.raises(InputError, match=f"of {IMAGE} and {TEXT} must be downloaded, and the Hug"):
        downloads.announce_downloads(load_config("photos").encoder, Silent())
    with pytest.raises(InputError, match=r"resnet10t\.c3_in1k' must be downloaded.*image_weights="):
        image_trunk("resnet10t", "hub", 32)
    with pytest.raises(InputError, match=r"'owner/nothing' must be downloaded"):
        _ = TransformersText("owner/nothing").dim
