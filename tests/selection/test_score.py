from __future__ import annotations

import numpy as np
import pytest

from lors.selection.score import highest, pair_scores
from lors.system.errors import InputError


def some_embeddings(pairs: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    images, texts = (rng.standard_normal((n, 5)).astype(np.float32) for n in (pairs, 2 * pairs))
    return images, texts, rng.integers(0, 2 * pairs, pairs)


def test_the_highest_come_first_and_equal_ones_in_order() -> None:
    scores = np.random.default_rng(0).integers(0, 5, 40)
    picks, chosen = highest(scores, 25)
    assert picks.tolist() == sorted(range(40), key=lambda i: (-scores[i], i))[:25]
    assert chosen.tolist() == scores[picks].tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_named(value: float) -> None:
    with pytest.raises(InputError, match="score of pair 1 is"):
        highest(np.array([0.5, value, 0.1]), 1)


@pytest.mark.parametrize("count", [0, 4])
def test_more_than_there_are_cannot_be_chosen(count: int) -> None:
    with pytest.raises(InputError, match=f"cannot choose {count} of 3 pairs"):
        highest(np.zeros(3), count)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_a_score_is_the_cosine_of_image_and_caption(dtype: type, chunk: int) -> None:
    images, texts, captions = some_embeddings()
    images, texts = images.astype(dtype), texts.astype(dtype)
    u, v = images.astype(np.float64), texts[captions].astype(np.float64)
    cosine = (u * v).sum(1) / (np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1))
    np.testing.assert_allclose(pair_scores(images, texts, captions, chunk), cosine, rtol=1e-6)


def test_lengths_do_not_count() -> None:
    images, texts, captions = some_embeddings()
    expected = pair_scores(images, texts, captions)
    # Powers of two, so that nothing is rounded.
    scores = pair_scores(2.0**-100 * images, 2.0**100 * texts, captions)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_an_embedding_of_zeros_fits_nothing() -> None:
    images, texts, captions = some_embeddings()
    images[4] = 0
    assert pair_scores(images, texts, captions)[4] == 0


def test_embeddings_of_two_spaces_or_not_finite_are_refused() -> None:
    images, texts, captions = some_embeddings()
    with pytest.raises(InputError, match="5 numbers and text embeddings 4: both must come from"):
        pair_scores(images, texts[:, :4], captions)
    with pytest.raises(InputError, match="30 images but 29 captions"):
        pair_scores(images, texts, captions[1:])
    texts[captions[8]] = np.nan
    first = np.flatnonzero(captions == captions[8])[0]
    with pytest.raises(InputError, match=f"text features of pair {first} are not"):
        pair_scores(images, texts, captions, chunk=3)
