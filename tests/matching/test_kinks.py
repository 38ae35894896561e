from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lors.matching.kinks import Branches, noted, taken

OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "relu in place": lambda x: F.relu(x, inplace=True),
    "relu_": lambda x: x.relu_(),
    "leaky relu": lambda x: F.leaky_relu(x, 0.2),
    "relu6": F.relu6,
    "hardtanh in place": lambda x: F.hardtanh(x, -2.0, 1.0, inplace=True),
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "max pooling": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_same_input_gives_the_same(name: str) -> None:
    inputs = 5 * torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    branches: Branches = []
    with noted(branches):
        expected = OPERATIONS[name](inputs.clone())
    with taken(branches):
        found = OPERATIONS[name](inputs.clone())
    torch.testing.assert_close(found, expected)
    assert len(branches) == 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_branch_goes_on_beyond_its_kink(name: str) -> None:
    """Along a line, a branch is a polynomial of degree two at most: its third differences are 0."""
    draw = torch.Generator().manual_seed(0)
    inputs, direction = 5 * torch.randn(2, 2, 3, 8, 8, generator=draw).double()
    branches: Branches = []
    with noted(branches):
        OPERATIONS[name](inputs.clone())
    values = []
    for place in range(4):
        with taken(branches):
            values.append(OPERATIONS[name](inputs + place * direction))
    plain = [OPERATIONS[name](inputs + place * direction) for place in range(4)]
    assert _third_difference(values).abs().max() < 1e-9
    assert _third_difference(plain).abs().max() > 0.1


def test_a_value_in_place_is_seen_by_all_who_hold_the_tensor() -> None:
    inputs = torch.tensor([-1.0, 2.0])
    with noted(branches := []):
        F.relu(inputs.clone(), inplace=True)
    other = torch.tensor([3.0, -4.0])
    with taken(branches):
        F.relu(other, inplace=True)
    assert other.tolist() == [0.0, -4.0]


def _third_difference(values: list[Tensor]) -> Tensor:
    a, b, c, d = values
    return d - 3 * c + 3 * b - a
