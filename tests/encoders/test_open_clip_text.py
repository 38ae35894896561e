from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lors.config import EncoderConfig
from lors.encoders.open_clip_text import OpenClipText
from lors.encoders.text import build_text_trunk, restore_text_trunk
from lors.system.errors import InputError
from lors.system.progress import Silent

open_clip = pytest.importorskip("open_clip")


def test_captions_are_embedded_by_the_models_own_text_tower(tiny_clip: str) -> None:
    trunk = OpenClipText(tiny_clip, "none")
    captions = ["a red circle", "a star", "a red circle"]
    embedded = trunk.embed(captions, Silent(), batch=2)
    assert embedded.shape == (3, trunk.dim) == (3, 8)
    np.testing.assert_allclose(embedded[0], embedded[2], rtol=1e-4, atol=1e-6)
    assert not np.allclose(embedded[0], embedded[1])


def test_untrained_towers_are_the_same_each_time(tiny_clip: str) -> None:
    first, again = (OpenClipText(tiny_clip, "none").embed(["a"], Silent()) for _ in range(2))
    assert np.array_equal(first, again)


def test_a_saved_trunk_embeds_as_before(tiny_clip: str) -> None:
    config = EncoderConfig(text=f"open_clip:{tiny_clip}", text_weights="none")
    trunk = build_text_trunk(config, [])
    header, tensors = trunk.state()
    kept = json.loads(json.dumps({"kind": "open_clip", **header}))
    again = restore_text_trunk("open_clip", config, kept, tensors)
    assert (again.dim, again.fingerprint) == (trunk.dim, trunk.fingerprint)
    assert np.array_equal(again.embed(["a"], Silent()), trunk.embed(["a"], Silent()))


def test_unknown_models_and_missing_tags_are_refused(tiny_clip: str) -> None:
    with pytest.raises(InputError, match="did you mean 'ViT-B-32'"):
        OpenClipText.build("ViT-B32/openai", EncoderConfig(), [])
    with pytest.raises(InputError, match="needs a tag"):
        OpenClipText.build(tiny_clip, EncoderConfig(), [])


def test_weights_are_read_from_safetensors_only(tiny_clip: str, tmp_path: Path) -> None:
    trained = OpenClipText(tiny_clip, "none")
    weights = trained.model.state_dict()
    save_file(weights, tmp_path / "weights.safetensors")
    torch.save(weights, tmp_path / "weights.pt")
    loaded = OpenClipText(f"{tiny_clip}/{tmp_path / 'weights.safetensors'}")
    assert np.array_equal(loaded.embed(["a"], Silent()), trained.embed(["a"], Silent()))
    with pytest.raises(InputError, match=r"not a \.safetensors file"):
        OpenClipText(f"{tiny_clip}/{tmp_path / 'weights.pt'}").embed(["a"], Silent())


def test_a_tag_that_would_bring_pickled_weights_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_clip, "download_pretrained", lambda published: "/cache/model.bin")
    with pytest.raises(InputError, match=r"not a \.safetensors file"):
        OpenClipText("ViT-B-32/openai").embed(["a"], Silent())
