from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lors.matching.kinks import Branches, BranchesDifferError, noted, taken

SLOPE = torch.tensor([0.3, -0.2, 1.5], dtype=torch.double)
OTHER = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(7)).double()

OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "relu of torch": torch.relu,
    "relu of what is named": lambda x: F.relu(input=x),
    "relu of a module, in place": nn.ReLU(inplace=True),
    "relu in place": lambda x: F.relu(x, inplace=True),
    "relu_": lambda x: x.relu_(),
    "leaky relu": lambda x: F.leaky_relu(x, 0.2),
    "leaky relu of a module, in place": nn.LeakyReLU(0.2, inplace=True),
    "prelu": lambda x: F.prelu(x, SLOPE),
    "relu6": F.relu6,
    "relu6 of a module, in place": nn.ReLU6(inplace=True),
    "hardtanh in place": lambda x: F.hardtanh(x, -2.0, 1.0, inplace=True),
    "hardswish": F.hardswish,
    "hardswish of a module, in place": nn.Hardswish(inplace=True),
    "hardsigmoid": F.hardsigmoid,
    "abs": lambda x: x.abs(),
    "abs as a function": abs,
    "clamp": lambda x: x.clamp(-1.0, 2.0),
    "clamp to integers": lambda x: x.clamp(-1, 1),
    "clamp from below": lambda x: torch.clamp(input=x, min=0.5),
    "clamp_": lambda x: x.add_(3.0).clamp_(0.0, 6.0).div_(6.0),
    "clamp to tensors": lambda x: x.clamp(max=OTHER),
    "clamp_min": lambda x: x.clamp_min(0.3),
    "clamp_max": lambda x: x.clamp_max(-0.3),
    "max pooling": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
    "max pooling of a module": nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
    "max pooling in one dimension": lambda x: F.max_pool1d(x[0], 2),
    "max pooling in three dimensions": lambda x: F.max_pool3d(x, 2, padding=1),
    "adaptive max pooling": lambda x: F.adaptive_max_pool2d(x, 3),
    "amax": lambda x: x.amax((2, 3), keepdim=True),
    "amin": lambda x: torch.amin(x, dim=-1),
    "max of all": lambda x: x.max(),
    "max along a dimension": lambda x: x.max(dim=1)[0],
    "min along a dimension": lambda x: torch.min(x, 1, keepdim=True).values,
    "max of two": lambda x: torch.max(x, OTHER),
    "minimum": lambda x: torch.minimum(x, OTHER),
    "a comparison": lambda x: torch.where(x > 1, 3 * x, -x),
    "sign": lambda x: x * x.sign(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_same_input_gives_the_same_value_and_slope(name: str) -> None:
    inputs = 5 * torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    branches: Branches = []
    x, y = (inputs.clone().requires_grad_() for _ in range(2))
    with noted(branches):
        expected = OPERATIONS[name](x * 1)
    with taken(branches):
        found = OPERATIONS[name](y * 1)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        *(
            torch.autograd.grad(out.square().sum(), leaf)
            for out, leaf in ((found, y), (expected, x))
        )
    )
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


@pytest.mark.parametrize(
    "name", ["elu", "elu with another slope", "selu", "selu in place", "elu of a module, in place"]
)
def test_exponential_branches(name: str) -> None:
    """On the line below 0 they go on as exponentials, above 0 as lines."""
    operations: dict[str, Callable[[Tensor], Tensor]] = {
        "elu": F.elu,
        "elu with another slope": lambda x: F.elu(x, 0.4),
        "selu": F.selu,
        "selu in place": lambda x: F.selu(x, inplace=True),
        "elu of a module, in place": nn.ELU(inplace=True),
    }
    operation = operations[name]
    alpha, scale = {
        "elu with another slope": (0.4, 1.0),
        "selu": (1.6732632, 1.050701),
        "selu in place": (1.6732632, 1.050701),
    }.get(name, (1.0, 1.0))
    x = torch.tensor([-2.0, -0.1, 0.1, 200.0])
    branches: Branches = []
    with noted(branches):
        expected = operation(x.clone())
    with taken(branches):
        torch.testing.assert_close(operation(x.clone()), expected)
    moved = x + torch.tensor([0.0, 0.3, -0.3, 0.0])
    with taken(branches):
        found = operation(moved.clone())
    below = alpha * torch.expm1(moved)
    torch.testing.assert_close(found[:2], scale * below[:2])
    torch.testing.assert_close(found[2:], scale * moved[2:])


@pytest.mark.parametrize(
    "second",
    [
        lambda x: x.relu().relu(),
        lambda x: x,
        lambda x: x.abs(),
        lambda x: x[:1].relu(),
    ],
)
def test_another_second_pass_is_refused(second: Callable[[Tensor], Tensor]) -> None:
    """More, fewer, other operations, other shapes."""
    x = torch.tensor([-1.0, 2.0, 3.0])
    branches: Branches = []
    with noted(branches):
        x.relu()
    with pytest.raises(BranchesDifferError, match=r"set matching\.derivative"), taken(branches):
        second(x)


def test_a_value_in_place_is_seen_by_all_who_hold_the_tensor() -> None:
    inputs = torch.tensor([-1.0, 2.0])
    branches: Branches = []
    with noted(branches):
        F.relu(inputs.clone(), inplace=True)
    other = torch.tensor([3.0, -4.0])
    with taken(branches):
        F.relu(other, inplace=True)
    assert other.tolist() == [0.0, -4.0]


def _third_difference(values: list[Tensor]) -> Tensor:
    a, b, c, d = values
    return d - 3 * c + 3 * b - a
