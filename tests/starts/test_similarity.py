from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lors.config import load_config
from lors.experts import expert_embeddings
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import derive_seed


def test_a_given_similarity_is_that_of_the_pairs(tmp_path: Path) -> None:
    settings = ["similarity.kind=fixed", f"similarity.values={tmp_path}/values.npy"]
    values = np.random.default_rng(0).normal(size=(7, 7)).astype(np.float32)
    np.save(tmp_path / "values.npy", values)  # storing S costs one of the eight pairs
    start = start_pairs(setting_of(load_config("tiny", settings)))
    assert np.array_equal(start.similarity.matrix().cpu().numpy(), values)


def test_a_fixed_similarity_without_values_is_what_the_scorer_sees() -> None:
    fixed = setting_of(load_config("tiny", ["similarity.kind=fixed"]))
    start = start_pairs(fixed)
    matrix = start.similarity.matrix().cpu()
    count = len(start)
    assert count < 8  # S is stored, so it costs pairs
    assert matrix.diagonal().mean().item() == pytest.approx(1, abs=1e-4)
    assert (matrix.sum() - matrix.diagonal().sum()).item() == pytest.approx(0, abs=1e-3)
    # Up to that scale, it is the cosines of the expert's embeddings of the drawn pairs.
    real = fixed.real["train"]
    rng = np.random.default_rng(derive_seed(fixed.config.seed, "start"))
    images = rng.choice(len(real), 8, replace=False)
    captions = real.draw_captions(images, rng)
    u, v = (torch.from_numpy(np.array(e)) for e in expert_embeddings(fixed))
    u, v = u[images[:count]], v[captions[:count]]
    cosines = F.cosine_similarity(u[:, None], v[None], dim=-1)
    both = torch.stack([matrix.flatten(), cosines.flatten()])
    assert torch.corrcoef(both)[0, 1].item() == pytest.approx(1, abs=1e-4)


def test_given_values_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "nan.npy", np.full((8, 8), np.nan))
    config = load_config(
        "tiny", ["similarity.kind=fixed", f"similarity.values={tmp_path / 'nan.npy'}"]
    )
    with pytest.raises(InputError, match="finite numbers"):
        start_pairs(setting_of(config))
