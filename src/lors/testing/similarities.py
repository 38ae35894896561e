"""The promises of similarities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lors.config import SimilarityConfig
from lors.similarity import SIMILARITIES, Similarity
from lors.system.seeding import generator
from lors.testing.report import BrokenError, Checks, Report
from lors.testing.trying import (
    bits,
    named,
    title,
    with_other_global_seeds,
    without_global_generators,
)

__all__ = ["check_similarity"]

SIZES = (1, 2, 9)
TOLERANCE = 1e-5


def check_similarity(similarity: type[Similarity] | str, **settings: Any) -> Report:
    """Check that a similarity can be learned in batches, stored and paid for.

    >>> print(check_similarity("lowrank", rank=3))  # doctest: +ELLIPSIS
    similarity 'lowrank' keeps its promises
    ok      starts as pairs that belong together
    ...

    Args:
        similarity: the class, or the name that it is registered with.
        settings: of the section ``similarity``.

    Raises:
        BrokenPromiseError: a promise is broken; the message lists all.
        InputError: there is no such similarity.
    """
    with named(SIMILARITIES, similarity) as name:
        checks = Checks(title(SIMILARITIES, name))
        config = SimilarityConfig(**{"rank": 2, **settings, "kind": name})
        trial = _Trial(SIMILARITIES.choose(name), config)
        for promise, kept in PROMISES.items():
            checks.check(promise, partial(kept, trial))
        return checks.report()


class _Trial:
    """A similarity by its class and settings."""

    def __init__(self, cls: type[Similarity], config: SimilarityConfig) -> None:
        self.cls, self.config = cls, config

    def made(self, pairs: int, seed: int = 0) -> Similarity:
        """As at the start of a run."""
        return self.cls.from_config(self.config, pairs, generator("similarity", pairs, seed))

    def learned(self, pairs: int) -> Similarity:
        """With parameters that have moved."""
        made = self.made(pairs)
        for name, parameter in made.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator("learned", name))
            parameter.data += 0.3 * noise.to(parameter)
        return made


def _near(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b.to(a), rtol=TOLERANCE, atol=TOLERANCE)


def _start(trial: _Trial) -> None:
    for pairs in SIZES:
        found = trial.made(pairs).matrix().detach()
        if not (
            _near(found, torch.eye(pairs)) or _near(found, trial.config.omega * torch.eye(pairs))
        ):
            raise BrokenError(f"S of {pairs} pairs is not I at the start, nor ω I")


def _blocks(trial: _Trial) -> None:
    made = trial.learned(9)
    whole = made.matrix()
    if whole.shape != (9, 9):
        raise BrokenError(f"S of 9 pairs has shape {tuple(whole.shape)}")
    for index in (torch.tensor([4]), torch.tensor([7, 0, 3]), torch.arange(9).flip(0)):
        block = made(index)
        if block.shape != (len(index), len(index)) or not _near(block, whole[index][:, index]):
            raise BrokenError(
                f"called with the indices {index.tolist()} it does not give these rows and columns "
                "of S"
            )


def _stored(trial: _Trial) -> str:
    for pairs in SIZES:
        promised, numbers = trial.cls.stored(trial.config, pairs), trial.made(pairs).numbers()
        if promised != numbers:
            raise BrokenError(
                f"stored says {promised} numbers for {pairs} pairs, but there are {numbers} in its "
                "state_dict"
            )
    return f"{numbers} numbers for {pairs} pairs"


def _kept(trial: _Trial) -> None:
    made, other = trial.learned(9), trial.made(9, seed=1)
    other.load_state_dict({name: tensor.clone() for name, tensor in made.state_dict().items()})
    if bits(made.matrix()) != bits(other.matrix()):
        raise BrokenError(
            "S is another after its state_dict was saved and loaded: make everything that S "
            "depends on a parameter or a buffer"
        )


def _gradients(trial: _Trial) -> str:
    made = trial.learned(9)
    learned = dict(made.named_parameters())
    if not learned:
        return "nothing is learned"
    weights = torch.randn(9, 9, generator=generator("weights"))
    (made.matrix() * weights).sum().backward()
    for name, parameter in learned.items():
        if parameter.grad is None or not parameter.grad.isfinite().all():
            raise BrokenError(f"S has no finite gradient in its parameter {name}")
    return f"{', '.join(learned)} are learned"


def _types(trial: _Trial) -> None:
    for kind in (torch.float64, torch.bfloat16):
        block = trial.learned(9).to(kind)(torch.arange(4))
        if not block.isfinite().all():
            raise BrokenError(f"S is not finite in {kind}")


def _same_twice(trial: _Trial) -> None:
    def made() -> dict[str, Tensor]:
        return dict(trial.made(9).state_dict())

    if bits(made()) != bits(with_other_global_seeds(made)):
        raise BrokenError("from_config makes another S: draw everything from its generator")


def _global_generators(trial: _Trial) -> None:
    without_global_generators(lambda: trial.made(9).matrix())


PROMISES: Mapping[str, Callable[[_Trial], str | None]] = {
    "starts as pairs that belong together": _start,
    "a batch is a block of S": _blocks,
    "stores what it says": _stored,
    "is restored from its state_dict": _kept,
    "gradients in every parameter": _gradients,
    "works in other types": _types,
    "same bits twice": _same_twice,
    "leaves global generators alone": _global_generators,
}
