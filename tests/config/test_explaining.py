from __future__ import annotations

from pathlib import Path

import pytest

from lors.config import load_config, methods, presets
from lors.config.explaining import explained, explained_method


@pytest.mark.parametrize("name", presets())
def test_what_is_shown_is_the_preset(name: str, tmp_path: Path) -> None:
    path = tmp_path / "shown.yaml"
    path.write_text(explained(name), "utf-8")
    assert load_config(path) == load_config(name)


def test_every_line_says_which_base_it_comes_from() -> None:
    lines = explained("flickr8k-hindsight-pixels-100").splitlines()
    assert lines[0].startswith("# features-lors, then flickr8k-heads-100, then flickr8k-pixels-100")
    origins = {line.split(":")[0].strip(): line.partition("  # ")[2] for line in lines}
    assert origins["image_size"] == "flickr8k-pixels-100"
    assert origins["text_pooling"] == "flickr8k-heads-100"
    assert origins["embed_dim"] == "features-lors"
    assert origins["teacher_temperature"] == "hindsight"
    assert origins["checkpoint_every"] == ""  # its own


def test_a_preset_without_bases_is_only_its_settings() -> None:
    assert "#" not in explained("tiny")


def test_a_method_is_shown_with_what_makes_it_and_what_suits_it() -> None:
    text = explained_method(methods()["covmatch"])
    assert text.startswith("CovMatch: ")
    assert "https://arxiv.org/abs/2510.18583" in text
    made, suits = text.split("What suits it")
    assert "  matching.kind=covariance" in made
    assert "  matching.steps=50" in suits
