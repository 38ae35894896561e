"""A space of configurations to choose from: settings, and the values that each may have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lors.config import Config, load_config
from lors.config.parsing import parse, read_text
from lors.system.errors import InputError, suggestion
from lors.system.seeding import derive_seed

__all__ = ["SEARCHED", "SPACE", "Candidate", "Space", "configured", "drawn", "read_space"]

Candidate = dict[str, Any]
"""A value for each setting of a space, by dotted name."""

Space = dict[str, tuple[Any, ...]]

SEARCHED = (
    "encoder.image",
    "encoder.image_weights",
    "encoder.image_head",
    "encoder.text_head",
    "encoder.embed_dim",
    "encoder.temperature",
    "experts.rate",
    "experts.text_rate",
    "experts.batch_size",
    "evaluate.momentum",
    "evaluate.weight_decay",
)
"""Settings of a model and its training on real pairs that a set can stand in for.

The loss is none of them: a set trains well with the loss it was made for, and badly with others.
"""

SPACE: Space = {
    "encoder.image_head": ("linear", "mlp"),
    "encoder.text_head": ("linear", "mlp"),
    "encoder.embed_dim": (16, 32, 64, 128),
    "encoder.temperature": (0.03, 0.07, 0.15, 0.3),
    "experts.rate": (0.003, 0.01, 0.03, 0.1, 0.3),
    "experts.batch_size": (128, 256),
    "evaluate.weight_decay": (0, 5e-4, 5e-3),
}
"""Heads on frozen features: 1,920 configurations."""


def read_space(source: str | Path | Mapping[str, Sequence[Any]] | None) -> Space:
    """A space from a YAML file, or from values by dotted name.

    >>> read_space({"experts.rate": [0.1, 0.3]})
    {'experts.rate': (0.1, 0.3)}

    Args:
        source: a file of lines such as ``experts.rate: [0.1, 0.3]``; None: ``SPACE``.

    Raises:
        InputError: it is no such mapping, or a setting is none that a set can stand in for.
    """
    if source is None:
        return SPACE
    given = source
    if not isinstance(source, Mapping):
        given = parse(read_text(Path(source)), f"the space {str(source)!r}")
    if not isinstance(given, Mapping) or not given:
        raise InputError("a space is lines such as 'experts.rate: [0.1, 0.3]', one per setting")
    for name, values in given.items():
        if name not in SEARCHED:
            raise InputError(
                f"{name!r} cannot be searched with a set{suggestion(str(name), SEARCHED)}"
            )
        if not isinstance(values, (list, tuple)) or not values:
            raise InputError(f"{name} needs a list of values to try, not {values!r}")
    return {name: tuple(values) for name, values in given.items()}


def drawn(space: Space, count: int, seed: int = 0) -> list[Candidate]:
    """Different configurations of a space, drawn at random; all, where there are no more.

    >>> drawn({"experts.rate": (0.1, 0.3)}, 40)
    [{'experts.rate': 0.1}, {'experts.rate': 0.3}]
    """
    sizes = [len(values) for values in space.values()]
    total = int(np.prod(sizes))
    if total <= count:
        return [dict(zip(space, each, strict=True)) for each in itertools.product(*space.values())]
    rng = np.random.default_rng(derive_seed(seed, "space"))
    chosen = rng.choice(total, count, replace=False)
    places = zip(*np.unravel_index(chosen, sizes), strict=True)
    return [
        {name: values[place] for (name, values), place in zip(space.items(), each, strict=True)}
        for each in places
    ]


def configured(base: Config, candidate: Candidate) -> Config:
    """A configuration with the settings of a candidate.

    >>> configured(lors.load_config("tiny"), {"experts.rate": 0.3}).experts.rate
    0.3

    Raises:
        InputError: a value does not fit.
    """
    return load_config(base.model_dump(mode="json"), candidate)
