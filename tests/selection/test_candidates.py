from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from lors.selection.candidates import Candidates
from lors.system.errors import InputError

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def some_pairs(pairs: int = 50, seed: int = 0, captions: str = "own") -> Pairs:
    """Images, texts of another width, spread and mean, and the caption of each image."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((pairs, 6)) + 0.5
    texts = 20 * rng.standard_normal((5 * pairs, 4)) - 7
    rows = {
        "own": np.arange(pairs),
        "every fifth": np.arange(2, 5 * pairs, 5),
        "drawn": rng.integers(0, 5 * pairs, pairs),
    }
    return images.astype(np.float32), texts.astype(np.float32), rows[captions]


def joint(images: np.ndarray, texts: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """The joint features as one float64 matrix, by definition."""
    sides = []
    for side in (images, texts[captions]):
        centred = side.astype(np.float64) - side.mean(0, dtype=np.float64)
        sides.append(centred / np.sqrt((centred**2).sum(1).mean()))
    return np.concatenate(sides, axis=1)


def mapped(
    pairs: tuple[np.ndarray, ...], folder: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same pairs with their features in memory-mapped files."""
    images, texts, rows = pairs
    for name, array in (("images", images), ("texts", texts)):
        np.save(folder / f"{name}.npy", array)
    images, texts = (np.load(folder / f"{n}.npy", mmap_mode="r") for n in ("images", "texts"))
    return images, texts, rows


@pytest.mark.parametrize("captions", ["own", "every fifth", "drawn"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("chunk", [1, 7, 50, 1000])
def test_candidates_are_the_standardised_sides_side_by_side(
    captions: str, dtype: type, chunk: int
) -> None:
    images, texts, rows = some_pairs(captions=captions)
    images, texts = images.astype(dtype), texts.astype(dtype)
    candidates, matrix = Candidates(images, texts, rows, chunk), joint(images, texts, rows)
    vector = np.random.default_rng(1).standard_normal(10)
    assert len(candidates) == 50
    assert candidates.width == 10
    np.testing.assert_allclose(candidates.norms(), (matrix**2).sum(1), rtol=1e-6)
    np.testing.assert_allclose(candidates.dot(vector), matrix @ vector, atol=1e-5)
    np.testing.assert_allclose([candidates.row(i) for i in range(50)], matrix, atol=1e-6)


def test_both_sides_weigh_the_same_whatever_their_size() -> None:
    images, texts, rows = some_pairs()
    other = Candidates(1000 * images + 3000, texts / 1000, rows)
    np.testing.assert_allclose(other.norms(), Candidates(images, texts, rows).norms(), rtol=1e-5)
    matrix = np.stack([other.row(i) for i in range(len(other))])
    np.testing.assert_allclose(matrix.mean(0), 0, atol=1e-9)
    assert (matrix[:, :6] ** 2).sum(1).mean() == pytest.approx(1)
    assert (matrix[:, 6:] ** 2).sum(1).mean() == pytest.approx(1)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_a_side_that_is_the_same_for_all_pairs_counts_as_zero(value: float) -> None:
    images, _, rows = some_pairs()
    texts = np.full((50, 4), value, np.float32)
    candidates = Candidates(images, texts, rows, chunk=7)
    assert candidates.norms().mean() == pytest.approx(1)
    assert not candidates.row(3)[6:].any()
    text_only = np.concatenate([np.zeros(6), np.ones(4)])
    assert not candidates.dot(text_only).any()


def test_only_captions_that_belong_to_an_image_count() -> None:
    images, texts, rows = some_pairs(captions="every fifth")
    norms = Candidates(images, texts, rows).norms()
    texts[0] = np.nan
    texts[1] = 1e9
    np.testing.assert_array_equal(Candidates(images, texts, rows).norms(), norms)


def test_a_memory_map_is_read_without_copy_or_warning(tmp_path: Path) -> None:
    images, texts, rows = some_pairs()
    np.save(tmp_path / "images.npy", images)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
        candidates = Candidates(mapped, texts, rows)
    vector = np.ones(10)
    expected = Candidates(images, texts, rows).dot(vector)
    np.testing.assert_array_equal(candidates.dot(vector), expected)


@pytest.mark.parametrize("side", ["image", "text"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_pair_that_is_not_finite_is_named(side: str, value: float) -> None:
    images, texts, rows = some_pairs(captions="every fifth")
    if side == "image":
        images[17, 2] = value
    else:
        texts[rows[17], 2] = value
    with pytest.raises(InputError, match=f"{side} features of pair 17 are not all finite"):
        Candidates(images, texts, rows, chunk=4)


def test_sides_that_do_not_fit_are_refused() -> None:
    images, texts, rows = some_pairs()
    with pytest.raises(InputError, match="50 images but 49 captions"):
        Candidates(images, texts, rows[1:])
    with pytest.raises(InputError, match="from 0 to 49, but there are 30 text features"):
        Candidates(images, texts[:30], rows)
    with pytest.raises(InputError, match="from -1 to 48"):
        Candidates(images, texts, rows - 1)
    with pytest.raises(InputError, match="at least one pair"):
        Candidates(images[:0], texts, rows[:0])
    with pytest.raises(InputError, match="whole number"):
        Candidates(images, texts, rows + 0.5)
    with pytest.raises(InputError, match="matrix of floating-point numbers"):
        Candidates(images[:, 0], texts, rows)
    with pytest.raises(InputError, match="at least one row at a time"):
        Candidates(images, texts, rows, chunk=0)
