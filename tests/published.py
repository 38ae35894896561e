"""Sets and experts in the format of the published codes, with made-up numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

LIKE = ("tiny", ["encoder.text_dim=12"])
"""A configuration that the made-up sets fit: scenes of 16 px, texts of 12 numbers."""


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def low_rank(pairs: int = 6, rank: int = 2, alpha: float = 3.0, seed: int = 0) -> dict[str, Any]:
    """As LoRS and RepBlend write a set."""
    omega, left = 1 + 0.1 * numbers(pairs, seed=seed), numbers(pairs, rank, seed=seed + 1)
    right = 0.1 * numbers(pairs, rank, seed=seed + 2)
    return {
        "image": numbers(pairs, 3, 16, 16, seed=seed + 3),
        "text": numbers(pairs, 12, seed=seed + 4),
        "similarity_params": [omega, left, right],
        "similarity_mat": torch.diag(omega) + left @ right.t() * alpha / float(rank),
        "syn_lr_img": torch.tensor(0.1),
        "syn_lr_txt": torch.tensor(0.07),
    }


def full(pairs: int = 6, seed: int = 0) -> dict[str, Any]:
    """As PTM-ST writes a subset."""
    values = torch.eye(pairs) + 0.1 * numbers(pairs, pairs, seed=seed)
    matrix = {"similarity_params": [values], "similarity_mat": values.clone()}
    return {**low_rank(pairs, seed=seed), **matrix}


def written(path: Path, content: Any) -> Path:
    torch.save(content, path)
    return path


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)
