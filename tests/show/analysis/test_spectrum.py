from __future__ import annotations

import numpy as np
import pytest

from lors.show.analysis.spectrum import (
    effective_rank,
    eigenvalues,
    gaussian_like,
    singular_values,
    spectra,
    summary,
    without_diagonal,
)


def test_singular_values_are_roots_of_the_eigenvalues_of_the_gram_matrix() -> None:
    matrix = np.random.default_rng(0).normal(size=(7, 7))
    gram = np.linalg.eigvalsh(matrix @ matrix.T)[::-1]
    np.testing.assert_allclose(singular_values(matrix), np.sqrt(gram), rtol=1e-6)


def test_eigenvalues_miss_what_singular_values_see() -> None:
    """A similarity that points one way only: why the spectrum here is that of singular values."""
    shift = np.diag(np.ones(4), 1)
    assert eigenvalues(shift).max() < 1e-6
    np.testing.assert_allclose(singular_values(shift), [1, 1, 1, 1, 0], atol=1e-12)


def test_a_gaussian_follows_its_own_spectrum() -> None:
    matrix = np.random.default_rng(1).normal(0.02, 0.3, (80, 80))
    found, expected = singular_values(matrix), gaussian_like(matrix)
    assert np.abs(found - expected).max() < 0.05 * expected.max()


def test_a_low_rank_residual_has_a_longer_tail_than_its_gaussian() -> None:
    rng = np.random.default_rng(0)
    low_rank = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 50))
    rows = summary(spectra(np.eye(50) + 0.1 * low_rank))
    whole, residual, gaussian = (row["effective_rank"] for row in rows)
    assert residual < gaussian
    assert rows[1]["places_for_90%_of_squares"] < rows[2]["places_for_90%_of_squares"]
    assert whole > residual


def test_the_effective_rank_counts_equal_values() -> None:
    assert effective_rank(np.array([2.0, 2.0, 2.0, 0.0])) == pytest.approx(3)
    assert effective_rank(np.zeros(3)) == 1


def test_the_identity_has_no_residual() -> None:
    rows = spectra(np.eye(5))
    assert [row["full"] for row in rows] == [1] * 5
    assert not any(row["residual"] or row["gaussian"] for row in rows)
    assert (without_diagonal(np.ones((3, 3))) == 1 - np.eye(3)).all()
