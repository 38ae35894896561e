"""Published sets as synthetic pairs: α is found, S is the file's, rates keep their meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lors import DistilledSet
from lors.encoders.image import CLIP_PIXELS
from lors.files.published import PublishedSet, read_published_set
from lors.sets.published import found_alpha, published, published_loss, unpublished
from lors.similarity import LowRank
from lors.system.errors import InputError
from tests.published import full, low_rank, written


def content(tmp_path: Path, **changes: Any) -> PublishedSet:
    return read_published_set(written(tmp_path / "set.pt", {**low_rank(), **changes}))


@pytest.mark.parametrize("alpha", [3.0, 0.01, 1.0, 0.123456])
def test_alpha_is_found_in_the_similarity(alpha: float, tmp_path: Path) -> None:
    found = found_alpha(content(tmp_path, **low_rank(alpha=alpha)))
    assert found == pytest.approx(alpha, rel=1e-5)
    assert (found == alpha) == (alpha != 0.123456)  # a round number is meant


def test_the_pairs_have_the_similarity_of_the_file(tmp_path: Path) -> None:
    given = content(tmp_path)
    pairs, config = unpublished([given])
    assert (config.kind, config.rank, config.alpha) == ("lowrank", 2, 3.0)
    assert isinstance(pairs.similarity, LowRank)
    assert given.matrix is not None
    torch.testing.assert_close(pairs.similarity.matrix(), given.matrix, rtol=1e-6, atol=1e-6)
    assert pairs.rates.tolist() == given.rates.tolist()


def test_alpha_is_asked_for_where_it_cannot_be_found(tmp_path: Path) -> None:
    omega, left, right = low_rank()["similarity_params"]
    start = {
        "similarity_params": [omega, left, torch.zeros_like(right)],
        "similarity_mat": torch.diag(omega),
    }
    given = content(tmp_path, **start)
    with pytest.raises(InputError, match=r"R = 0: which α .* give --alpha"):
        unpublished([given])
    assert unpublished([given], alpha=3.0)[1].alpha == 3.0


def test_an_alpha_or_similarity_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="made with an α of 3, not 2"):
        found_alpha(content(tmp_path), 2.0)
    wrong = low_rank()["similarity_mat"] + 0.1
    with pytest.raises(InputError, match="similarity_mat is not"):
        found_alpha(content(tmp_path, similarity_mat=wrong))
    with pytest.raises(InputError, match="similarity_mat is not the S"):
        unpublished([content(tmp_path, **{**full(), "similarity_mat": wrong})])


def test_subsets_are_one_set_with_no_similarity_between_them(tmp_path: Path) -> None:
    files = [content(tmp_path, **full(4)), content(tmp_path, **full(3, seed=20))]
    pairs, config = unpublished(files)
    whole = pairs.similarity.matrix()
    assert config.kind == "full"
    assert torch.equal(whole[:4, :4], full(4)["similarity_mat"])
    assert torch.equal(whole[4:, 4:], full(3, seed=20)["similarity_mat"])
    assert not whole[:4, 4:].any()
    assert not whole[4:, :4].any()
    assert torch.equal(pairs.images[4:], files[1].images)


def test_subsets_of_low_rank_keep_the_similarity_of_their_files(tmp_path: Path) -> None:
    files = [content(tmp_path), content(tmp_path, **low_rank(seed=9))]
    whole = unpublished(files)[0].similarity.matrix()
    assert torch.equal(whole[6:, 6:], low_rank(seed=9)["similarity_mat"])


def test_a_loss_has_its_published_reading() -> None:
    assert published_loss("wbce-published") == "wbce-published"
    assert published_loss("bce") == "bce-published"
    assert published_loss("soft-nce") == "soft-nce"


def test_a_set_of_ours_is_written_as_the_published_code_sees_it(tiny_run: Path) -> None:
    ours = DistilledSet.load(tiny_run / "distilled.safetensors")
    theirs = published(ours)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in CLIP_PIXELS.values())
    seen = (255 * (theirs.images * std + mean)).round().clamp(0, 255)
    torch.testing.assert_close(seen, ours.pixels().float(), rtol=0, atol=1)
    assert theirs.rates.tolist() == [2 * rate for rate in ours.rates]  # its loss is half of ours
    assert found_alpha(theirs) == ours.config.similarity.alpha
    torch.testing.assert_close(theirs.matrix, ours.similarity)
    assert torch.equal(theirs.texts, ours.texts)
