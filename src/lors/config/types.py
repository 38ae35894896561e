"""Types of settings, with bounds far beyond use.

Without them, a slip of the keyboard or a stranger's file overflows somewhere deep in torch, or
takes all memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lors.config.names import HEADS, LOSSES

__all__ = [
    "LARGE",
    "Control",
    "Count",
    "Epochs",
    "HeadName",
    "LossName",
    "Number",
    "OuterRate",
    "Part",
    "Rate",
    "Section",
    "Seed",
    "SplitName",
    "UserPath",
    "Weight",
    "weights",
]


def _not_tiny(value: float) -> float:
    if value < TINY:
        raise ValueError(f"should be at least {TINY}")
    return value


LARGE, TINY = 1e30, 1e-12
Count = Annotated[int, Field(gt=0, le=10**12)]
Number = Annotated[int, Field(ge=0, le=10**12)]
Epochs = Annotated[int, Field(gt=0, le=10**5)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Rate = Annotated[float, Field(gt=0, le=LARGE, allow_inf_nan=False), AfterValidator(_not_tiny)]
OuterRate = Rate | Literal["auto"]
Weight = Annotated[float, Field(ge=0, le=LARGE, allow_inf_nan=False)]
Part = Literal["images", "texts", "similarity", "rates"]
SplitName = Literal["train", "val", "test"]
Control = Literal["identity", "captions"]
HeadName = Annotated[str, AfterValidator(HEADS.check)]
LossName = Annotated[str, AfterValidator(LOSSES.check)]


def _expanded(path: Path) -> Path:
    """``~`` is the home folder."""
    if len(str(path)) > 4096 or any(len(os.fsencode(part)) > 255 for part in path.parts):
        raise ValueError("should be a path, and is longer than any")
    try:
        return path.expanduser()
    except RuntimeError as error:  # there is no such user
        raise ValueError(str(error)) from None


UserPath = Annotated[Path, AfterValidator(_expanded)]


def weights(value: Any) -> Any:
    """``none`` is no weights, and ``~`` the home folder."""
    if not isinstance(value, str) or value == "none":
        return None if value == "none" else value
    return value if value == "hub" else str(_expanded(Path(value)))


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
