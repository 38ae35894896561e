from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lors.system import content
from lors.system.content import content_digest


def scaled(x: Tensor) -> Tensor:
    return FACTOR * x


FACTOR = 2.0


class Net(nn.Module):
    def __init__(self, activation: Callable[[Tensor], Tensor] = torch.relu) -> None:
        super().__init__()
        self.layer, self.activation = nn.Linear(2, 2), activation
        nn.init.ones_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return scaled(self.activation(self.layer(x)))


def test_the_same_content_has_one_digest() -> None:
    assert content_digest(Net()) == content_digest(Net()) == content_digest(copy.deepcopy(Net()))
    assert content_digest(Net().train()) == content_digest(Net().eval())
    table = {"a": np.ones(3), "b": {1, 2, 3}}
    assert content_digest(table) == content_digest(copy.deepcopy(table))


def moved(net: Net) -> Net:
    with torch.no_grad():
        net.layer.weight[0, 0] += 1e-6
    return net


@pytest.mark.parametrize(
    "other",
    [Net(torch.tanh), moved(Net()), Net().double(), nn.Sequential(Net())],
    ids=["activation", "weight", "type", "wrapped"],
)
def test_another_module_has_another_digest(other: nn.Module) -> None:
    assert content_digest(other) != content_digest(Net())


def test_code_is_followed_into_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    before = content_digest(Net())
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    after = content_digest(Net())
    monkeypatch.setattr(sys.modules[__name__], "scaled", lambda x: -x)
    assert len({before, after, content_digest(Net())}) == 3


def test_functions_differ_by_what_they_hold() -> None:
    def adds(number: Any) -> Callable[[Any], Any]:
        return lambda x: x + number

    one, two = (lambda: 1), (lambda: 2)
    assert content_digest(one) != content_digest(two)
    assert content_digest(adds(1)) == content_digest(adds(1)) != content_digest(adds(2))
    assert content_digest(adds(np.zeros(2))) != content_digest(adds(np.ones(2)))


def test_code_without_a_source_counts() -> None:
    def made(text: str) -> Any:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(text, names)
        return names["f"]

    plus, minus = (made(f"def f(x): return x {sign} 1") for sign in "+-")
    assert content_digest(plus) != content_digest(minus)
    assert content_digest(plus) == content_digest(made("def f(x): return x + 1"))


def test_what_holds_itself_ends() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert content_digest(circle)


def test_another_process_gives_the_same_digest() -> None:
    code = "import torch; from lors.system.content import content_digest as d; from torch import nn"
    code += "\nprint(d(nn.GELU(), {'b', 'a'}, torch.ones(2)))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert found == content.content_digest(nn.GELU(), {"b", "a"}, torch.ones(2))
