"""Latent semantic analysis: TF-IDF of words and word pairs, then a truncated SVD.

The text trunk for work without downloads, fitted on the training captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor

from lors.config import EncoderConfig
from lors.files import artifacts
from lors.files.cache import fingerprint, made_once, reading_cache
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent

__all__ = ["Lsa"]


class Lsa:
    """A fitted LSA. Build one with ``Lsa.fit`` or ``Lsa.restore``.

    Args:
        terms: the vocabulary, in the order of the columns.
        idf: Shape: (V,)
        components: Shape: (dim, V)
    """

    fitted: ClassVar[bool] = True
    trains: ClassVar[bool] = False

    def __init__(self, terms: list[str], idf: np.ndarray, components: np.ndarray) -> None:
        self.terms, self.idf, self.components = terms, idf, components
        self.dim = len(components)
        self._tfidf = _vectorizer(vocabulary=terms)
        self._tfidf.idf_ = idf

    @classmethod
    def build(cls, name: str, config: EncoderConfig, captions: Sequence[str]) -> Lsa:
        """Fitted on the training captions, or read from the cache."""
        key = fingerprint("lsa", str(config.text_dim), *captions)
        path = artifacts.home() / "texts" / f"lsa-{key}.safetensors"

        def write() -> None:
            header, tensors = cls.fit(captions, config.text_dim).state()
            artifacts.save(path, "text trunk", header, tensors)

        made_once(path, write, Silent())
        with reading_cache():
            return cls.restore(config, *artifacts.load(path, "text trunk"))

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
        svd = TruncatedSVD(dim, random_state=0).fit(counts)
        return cls(list(tfidf.get_feature_names_out()), tfidf.idf_, svd.components_)

    @cached_property
    def fingerprint(self) -> str:
        arrays = (self.idf, self.components)
        return fingerprint(*self.terms, *(array.tobytes().hex() for array in arrays))

    def embed(self, captions: Sequence[str], progress: Progress) -> np.ndarray:
        """Embeddings of the captions. Shape: (C, dim), float32."""
        return (self._tfidf.transform(captions) @ self.components.T).astype(np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What was fitted, as a JSON header and tensors."""
        arrays = {"idf": self.idf, "components": self.components}
        return {"terms": self.terms}, {k: torch.from_numpy(a) for k, a in arrays.items()}

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> Lsa:
        """The inverse of ``state``."""
        try:
            terms, idf, components = header["terms"], tensors["idf"], tensors["components"]
            if not idf.shape == components.shape[1:] == (len(terms),) or not len(components):
                raise ValueError(
                    f"{len(terms)} terms, idf {tuple(idf.shape)} and components "
                    f"{tuple(components.shape)} do not belong together"
                )
            if not (idf.is_floating_point() and components.is_floating_point()):
                raise ValueError(f"idf is {idf.dtype} and the components are {components.dtype}")
            return cls([str(term) for term in terms], idf.numpy(), components.numpy())
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the saved text trunk is damaged: {error!r}") from None


def _vectorizer(**options: Any) -> TfidfVectorizer:
    return TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", **options
    )
