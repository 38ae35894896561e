"""Texts that came as embeddings: there is no trunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from lors.config import EncoderConfig
from lors.files.headers import TrunkSize
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["GivenText"]


class GivenText:
    """Stands where a text trunk would.

    Args:
        dim: size of the given embeddings.
        fingerprint: of the data they came with.
    """

    fitted: ClassVar[bool] = False
    trains: ClassVar[bool] = False

    def __init__(self, dim: int, fingerprint: str) -> None:
        self.dim, self.fingerprint = dim, fingerprint

    @classmethod
    def restore(
        cls, config: EncoderConfig, header: dict[str, Any], tensors: dict[str, Tensor]
    ) -> GivenText:
        saved = TrunkSize.model_validate(header)
        return cls(saved.dim, saved.fingerprint)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"dim": self.dim, "fingerprint": self.fingerprint}, {}

    def embed(self, captions: Sequence[str], progress: Progress) -> np.ndarray:
        raise InputError(
            "this data came as embeddings: embed new captions with the encoder that made them"
        )
