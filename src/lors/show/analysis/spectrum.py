"""Is the learned similarity of low rank by itself?

The paper (appendix, Eigenvalue Analysis of Similarity Mining) compares the spectrum of S without
its diagonal with that of a Gaussian matrix of the same mean and variance: a longer tail means that
fewer directions carry more.

Which spectrum: singular values. S is not symmetric, so its eigenvalues are complex, are not what a
low-rank factorisation L Rᵀ approximates (the best one of rank r keeps the r largest singular
values), and can all vanish for a matrix of full size. The moduli of the eigenvalues, which the
paper's figure calls for, stand beside them in the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lors.show.analysis.rows import Row

__all__ = [
    "effective_rank",
    "eigenvalues",
    "gaussian_like",
    "singular_values",
    "spectra",
    "summary",
    "without_diagonal",
]

DRAWS = 20
"""Gaussian matrices to average over, so that the curve is that of the law and not of a draw."""


def singular_values(matrix: np.ndarray) -> np.ndarray:
    """Largest first. Shape: (N, N) -> (N,)"""
    return np.linalg.svd(np.asarray(matrix, np.float64), compute_uv=False)


def eigenvalues(matrix: np.ndarray) -> np.ndarray:
    """Moduli of the eigenvalues, largest first. Shape: (N, N) -> (N,)"""
    return np.sort(np.abs(np.linalg.eigvals(np.asarray(matrix, np.float64))))[::-1]


def without_diagonal(similarity: np.ndarray) -> np.ndarray:
    """S with zeros on its diagonal. Shape: (N, N)"""
    return np.asarray(similarity * ~np.eye(len(similarity), dtype=bool))


def gaussian_like(
    matrix: np.ndarray, of: Callable[[np.ndarray], np.ndarray] = singular_values, seed: int = 0
) -> np.ndarray:
    """The mean spectrum of Gaussian matrices with the mean and variance of this one.

    Args:
        matrix: Shape: (N, N)
        of: ``singular_values`` or ``eigenvalues``.
        seed: draws them.
    """
    rng = np.random.default_rng(seed)
    drawn = (rng.normal(matrix.mean(), matrix.std(), matrix.shape) for _ in range(DRAWS))
    return np.mean([of(matrix) for matrix in drawn], axis=0)


def effective_rank(spectrum: np.ndarray) -> float:
    """How many directions carry a matrix: exp of the entropy of its normalised spectrum.

    Paper: Roy and Vetterli, The effective rank, EUSIPCO 2007. It is r for r equal singular values.
    """
    shares = spectrum[spectrum > 0] / spectrum.sum() if spectrum.any() else np.ones(1)
    return float(np.exp(-(shares * np.log(shares)).sum()))


def spectra(similarity: np.ndarray) -> list[Row]:
    """S, S without its diagonal, and its Gaussian equal: a row per place in the spectrum."""
    residual = without_diagonal(similarity)
    columns = {
        "full": singular_values(similarity),
        "residual": singular_values(residual),
        "gaussian": gaussian_like(residual),
        "full_eigenvalue": eigenvalues(similarity),
        "residual_eigenvalue": eigenvalues(residual),
        "gaussian_eigenvalue": gaussian_like(residual, eigenvalues),
    }
    return [
        {"place": place + 1, **{name: float(column[place]) for name, column in columns.items()}}
        for place in range(len(similarity))
    ]


def summary(rows: Sequence[Row]) -> list[Row]:
    """How long-tailed each of the spectra is."""
    names = {"full": "S", "residual": "S without diagonal", "gaussian": "Gaussian like the latter"}
    found = []
    for column, name in names.items():
        values = np.array([row[column] for row in rows])
        energy = np.cumsum(values**2) / max(1e-300, float((values**2).sum()))
        found.append(
            {
                "matrix": name,
                "largest": float(values[0]),
                "median": float(np.median(values)),
                "effective_rank": effective_rank(values),
                "places_for_90%_of_squares": int(np.searchsorted(energy, 0.9)) + 1,
            }
        )
    return found
