"""A matcher in use: on a small setting, for a few calls."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lors.matching import MATCHERS, Matcher
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.similarity import build_similarity
from lors.system.seeding import generator
from lors.testing.report import BrokenError
from lors.testing.trying import bits, small_setting

__all__ = ["Seen", "Trial", "all_bits", "check_finite", "shared_network", "step"]

STEP = 0.01
"""How far every part moves in a step of the set."""


@dataclass(frozen=True)
class Seen:
    """One call of ``backward``."""

    loss: float
    gradients: Mapping[str, Tensor | None]
    state: Any


class Trial:
    """A matcher in one scope and space.

    Args:
        kind: its name.
        place: one of ``PLACES``.
        settings: by keyword.
    """

    def __init__(self, kind: str, place: str, settings: Mapping[str, Any]) -> None:
        self.kind, self.place, self.settings = kind, place, settings
        self._setting: Setting | None = None
        self.networks: list[nn.Module] = []
        self.shared: Any = None

    @property
    def setting(self) -> Setting:
        if self._setting is None:
            made = small_setting(self.place, self.kind, {}, self.settings)
            draw = made.model

            def model(*keys: int | str) -> Any:
                self.networks.append(draw(*keys))
                return self.networks[-1]

            vars(made)["model"] = model  # to see what is left on networks
            self._setting, self.shared = made, shared_network(made)
        return self._setting

    def matcher(self) -> Matcher:
        """A new one, as a run begins with it."""
        return MATCHERS.choose(self.kind)(self.setting, self.setting.config.matching)

    def pairs(self, count: int = 7, similarity: str = "lowrank") -> SyntheticPairs:
        """A set to learn: real pairs that have moved a little."""
        images = np.arange(count)
        real = self.setting.real["train"]
        plain = self.setting.plain_pairs(
            images, real.draw_captions(images, np.random.default_rng(0))
        )
        config = self.setting.config.similarity.model_copy(update={"kind": similarity})
        built = build_similarity(config, count, generator("similarity"))
        pairs = SyntheticPairs(plain.images.data, plain.texts.data, built, (0.1, 0.1))
        for parameter in pairs.parameters():
            noise = torch.randn(parameter.shape, generator=generator("noise"))
            parameter.data += 0.01 * noise.to(parameter)
        return pairs.to(self.setting.device, self.setting.dtype)

    def steps(
        self,
        count: int,
        pairs: SyntheticPairs | None = None,
        matcher: Matcher | None = None,
        first: int = 0,
        seed: int = 0,
    ) -> list[Seen]:
        """Call ``backward`` so often, and let the set learn a little after each."""
        pairs = self.pairs() if pairs is None else pairs
        matcher = self.matcher() if matcher is None else matcher
        return [step(matcher, pairs, generator("check", seed, first + i)) for i in range(count)]


def step(matcher: Matcher, pairs: SyntheticPairs, draw: torch.Generator) -> Seen:
    pairs.zero_grad()
    loss = _number(matcher.backward(pairs, draw))
    gradients = _gradients(pairs)
    with torch.no_grad():
        for name, parameter in pairs.named_parameters():
            gradient = gradients[name]
            if gradient is not None and bool(gradient.any()):
                parameter.sub_(STEP * gradient / gradient.norm())
    return Seen(loss, gradients, copy.deepcopy(matcher.state))


def _number(loss: object) -> float:
    if isinstance(loss, Tensor) and loss.numel() == 1 and not loss.requires_grad:
        return loss.item()
    if isinstance(loss, float):
        return loss
    what = "a tensor that keeps its graph" if isinstance(loss, Tensor) else type(loss).__name__
    raise BrokenError(
        f"backward returned {what}: it must return a float, or a detached tensor of one number"
    )


def _gradients(pairs: SyntheticPairs) -> dict[str, Tensor | None]:
    return {
        name: None if parameter.grad is None else parameter.grad.clone()
        for name, parameter in pairs.named_parameters()
    }


def shared_network(setting: Setting) -> Any:
    """The weights of the network that everybody shares, and which of them require gradients."""
    model = setting.flat.model
    flags = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    return bits(dict(model.state_dict())), flags


def check_finite(seen: Seen) -> None:
    if not math.isfinite(seen.loss):
        raise BrokenError(f"backward returned {seen.loss:.4g}: it must return a finite number")
    for name, gradient in seen.gradients.items():
        if gradient is not None and not gradient.isfinite().all():
            raise BrokenError(f"the gradient of {name} is not finite")


def all_bits(seen: Sequence[Seen]) -> Any:
    return [(bits(each.loss), bits(each.gradients)) for each in seen]
