"""The device of the suite against the CPU: every loss, every matcher, and the checks of a report.

Many tests of formulas make their tensors on the CPU; this is where a GPU computes the same. On the
CPU there is nothing to compare with.
"""

from __future__ import annotations

import os

import pytest
import torch

from lors.losses import LOSSES
from lors.runs.self_check import self_checks
from lors.system.devices import find_device
from tests import devices
from tests.test_devices import CASES, ran

pytestmark = pytest.mark.skipif(devices.name() == "cpu", reason="it is the CPU")

DEVICE = os.environ.get("LORS_DEVICE", "cpu")


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_and_its_gradients_are_those_of_the_cpu(name: str) -> None:
    draw = torch.Generator().manual_seed(0)
    given = [torch.randn(6, 6, generator=draw), torch.rand(6, 6, generator=draw)]
    found = []
    for device in (find_device(DEVICE), torch.device("cpu")):
        logits, similarity = (tensor.to(device, copy=True).requires_grad_() for tensor in given)
        value = LOSSES[name](logits, similarity)
        found.append([value, *torch.autograd.grad(value, [logits, similarity], allow_unused=True)])
    assert [t is None for t in found[0]] == [t is None for t in found[1]]
    here, there = ([t for t in tensors if t is not None] for tensors in found)
    torch.testing.assert_close(here, there)


@pytest.mark.parametrize("name", CASES)
def test_a_matcher_learns_as_on_the_cpu(name: str) -> None:
    """Two iterations, by every way to second derivatives."""
    here, there = ran(DEVICE, CASES[name]), ran("cpu", CASES[name])
    assert there.error == ""
    assert here.error == ""
    assert here.losses == pytest.approx(there.losses, rel=devices.LEARNED[devices.name()])


def test_the_checks_of_a_report_go_well() -> None:
    assert [found for found in self_checks(find_device(DEVICE)) if not found.well] == []
