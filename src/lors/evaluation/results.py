"""Recalls as files of results hold them: nothing in a file is believed unchecked."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["MeanRecall", "MeasuredRow", "Recalls"]

Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Checked(BaseModel):
    """Fields beyond those named are kept, as a newer version may write them."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Statistic(_Checked):
    """Over networks, in percent."""

    mean: Finite
    std: Finite


class MeanRecall(_Checked):
    """At least the mean of the six recalls."""

    mean: _Statistic


class Recalls(MeanRecall):
    """All recalls."""

    ir1: _Statistic
    ir5: _Statistic
    ir10: _Statistic
    tr1: _Statistic
    tr5: _Statistic
    tr10: _Statistic


class _Readings(_Checked):
    """Recalls by the epoch at which they are read."""

    chosen: Recalls
    last: Recalls | None = None
    legacy: Recalls | None = None


class MeasuredRow(_Checked):
    """A row of ``results.json``: what networks reach that were trained on one set.

    Args:
        pairs: in the set.
        storage: in plain pairs.
        networks: how many were trained.
        note: the loss and rates they were trained with.
        recall: what they reach.
    """

    pairs: int = Field(ge=0)
    storage: Finite
    networks: int = Field(ge=0)
    note: str
    recall: _Readings
