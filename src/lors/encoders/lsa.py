"""Latent semantic analysis: TF-IDF of words and word pairs, then a truncated SVD.

The text trunk for work without downloads. Embeddings are centred by the mean and scaled by one
standard deviation, both of the training captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor

from lors.data.cache import fingerprint
from lors.errors import InputError

__all__ = ["Lsa"]


class Lsa:
    """A fitted LSA. Build one with ``Lsa.fit`` or ``Lsa.restore``.

    Args:
        terms: the vocabulary, in the order of the columns.
        idf: Shape: (V,)
        components: Shape: (dim, V)
        mean: Shape: (dim,)
        scale: one standard deviation over all dimensions.
    """

    def __init__(
        self,
        terms: list[str],
        idf: np.ndarray,
        components: np.ndarray,
        mean: np.ndarray,
        scale: float,
    ) -> None:
        self.terms, self.idf, self.components = terms, idf, components
        self.mean, self.scale = mean, scale
        self.dim = len(components)
        self._tfidf = _vectorizer(vocabulary=terms)
        self._tfidf.idf_ = idf

    @classmethod
    def fit(cls, captions: Sequence[str], dim: int) -> Lsa:
        """Fit on training captions.

        Raises:
            InputError: the captions hold fewer than ``dim`` different terms.
        """
        tfidf = _vectorizer(min_df=2 if len(captions) > 1000 else 1)
        try:
            counts = tfidf.fit_transform(captions)
        except ValueError as error:
            raise InputError(f"LSA cannot be fitted on these captions: {error}") from None
        if min(counts.shape) <= dim:
            raise InputError(
                f"{counts.shape[0]} captions with {counts.shape[1]} different terms give fewer "
                f"than {dim} dimensions: lower encoder.text_dim"
            )
        svd = TruncatedSVD(dim, random_state=0)
        embedded = svd.fit_transform(counts)
        mean = embedded.mean(0)
        return cls(
            terms=list(tfidf.get_feature_names_out()),
            idf=tfidf.idf_,
            components=svd.components_,
            mean=mean,
            scale=float((embedded - mean).std()),
        )

    @cached_property
    def fingerprint(self) -> str:
        arrays = (self.idf, self.components, self.mean)
        return fingerprint(*self.terms, *(a.tobytes().hex() for a in arrays), repr(self.scale))

    def embed(self, captions: Sequence[str]) -> np.ndarray:
        """Embeddings of the captions. Shape: (C, dim), float32."""
        projected = self._tfidf.transform(captions) @ self.components.T
        return ((projected - self.mean) / self.scale).astype(np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What was fitted, as a JSON header and tensors."""
        arrays = {"idf": self.idf, "components": self.components, "mean": self.mean}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return {"terms": self.terms, "scale": self.scale}, tensors

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Tensor]) -> Lsa:
        """The inverse of ``state``."""
        try:
            arrays = {name: tensors[name].numpy() for name in ("idf", "components", "mean")}
            terms, scale = [str(term) for term in header["terms"]], float(header["scale"])
            return cls(terms, arrays["idf"], arrays["components"], arrays["mean"], scale)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the saved text trunk is damaged: {error!r}") from None


def _vectorizer(**options: Any) -> TfidfVectorizer:
    return TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", **options
    )
