"""Gradients of a matcher against central differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from lors.sets.synthetic import SyntheticPairs

__all__ = ["assert_gradient_is_slope"]


def assert_gradient_is_slope(
    match: Callable[[SyntheticPairs], float], pairs: SyntheticPairs, names: Iterable[str]
) -> None:
    """What ``match`` adds to the gradients is the slope of what it returns, part by part."""
    pairs.zero_grad()
    match(pairs)
    rng = torch.Generator().manual_seed(1)
    gradients = {k: p.grad.clone() for k, p in pairs.named_parameters() if p.grad is not None}
    for name in names:
        parameter = pairs.get_parameter(name)
        direction = torch.randn(parameter.shape, generator=rng, dtype=torch.double).to(parameter)
        values = []
        for sign in (1, -1):
            parameter.data += sign * 1e-6 * direction
            values.append(match(pairs))
            parameter.data -= sign * 1e-6 * direction
        slope = parameter.new_tensor((values[0] - values[1]) / 2e-6)
        expected = (gradients[name] * direction).sum()
        assert expected.abs() > 1e-6, name
        torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-8, msg=name)
