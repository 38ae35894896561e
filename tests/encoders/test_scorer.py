from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lors.config import load_config
from lors.encoders.scorer import open_clip_embeddings
from lors.selection import select
from lors.setting import Setting, setting_of
from lors.system.errors import InputError
from lors.system.progress import Silent

open_clip = pytest.importorskip("open_clip")


@pytest.fixture(scope="module")
def scorer(tiny_clip: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A CLIP with weights in a file."""
    weights = tmp_path_factory.mktemp("weights") / "clip.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(1)
        save_file(open_clip.create_model(tiny_clip).state_dict(), weights)
    return f"open_clip:{tiny_clip}/{weights}"


def test_pairs_are_scored_as_open_clip_itself_would(setting: Setting, scorer: str) -> None:
    split = setting.pairs.splits["val"]
    images, texts = open_clip_embeddings(scorer, split, torch.device("cpu"), Silent(), batch=7)
    name, weights = scorer.removeprefix("open_clip:").split("/", 1)
    model, _, preprocess = open_clip.create_model_and_transforms(name, pretrained=weights)
    from PIL import Image

    picture = Image.fromarray(np.array(split.images[3]).transpose(1, 2, 0))
    with torch.no_grad():
        image = model.eval().encode_image(preprocess(picture)[None])[0]
        text = model.encode_text(open_clip.get_tokenizer(name)([split.captions[5]]))[0]
    np.testing.assert_allclose(texts[5], text, rtol=1e-3, atol=1e-4)
    cosine = torch.nn.functional.cosine_similarity(torch.from_numpy(images[3]), image, dim=0)
    assert cosine > 0.99  # resized as tensors, not by PIL


def test_it_filters(scorer: str) -> None:
    setting = setting_of(load_config("tiny", [f"scorer={scorer}"]))
    (images, scores), captions = select(setting, "clip-score", 5)
    assert np.array_equal(setting.real["train"].owner[captions], images)
    assert np.all(np.abs(scores) <= 1 + 1e-5)


def test_given_embeddings_have_nothing_to_look_at(setting: Setting, scorer: str) -> None:
    from dataclasses import replace

    split = replace(setting.pairs.splits["val"], texts=np.zeros((1, 2), np.float32))
    with pytest.raises(InputError, match="scorer=expert"):
        open_clip_embeddings(scorer, split, torch.device("cpu"), Silent())
