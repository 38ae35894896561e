from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lors.losses import wbce
from lors.matching.second_order import DERIVATIVES
from lors.runs import self_check
from lors.runs.device_report import anonymous, device_report
from lors.runs.doctor import Finding
from lors.runs.self_check import self_checks


@pytest.fixture(scope="module")
def written() -> tuple[str, bool]:
    return device_report("cpu")


def test_a_report_says_that_all_is_well_and_names_nobody(
    written: tuple[str, bool], lors_home: Path
) -> None:
    text, well = written
    assert well
    assert text.count("| ok |") == 5
    assert "| device | cpu (as set) |" in text
    assert "TFLOP/s" in text
    for private in (str(Path.home()), str(Path.cwd()), str(lors_home), socket.gethostname()):
        assert private not in text
    assert f"{getpass.getuser()} " not in text


def test_names_and_paths_are_taken_out_of_errors(tmp_path: Path) -> None:
    text = f"OSError: '{tmp_path}/a b' on {socket.gethostname()}, {Path.cwd()}/x.py:3"
    found = anonymous(text)
    assert found.startswith("OSError: 'PATH")
    assert socket.gethostname() not in found
    assert str(Path.cwd()) not in found


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a device would be that computes wrong numbers."""

    def wrong(logits: Tensor, similarity: Tensor) -> Tensor:
        value = wbce(logits, similarity)
        return value if torch.is_grad_enabled() and logits.dtype == torch.float64 else 2 * value

    monkeypatch.setattr(self_check, "wbce", wrong)
    found = {check.what: check.well for check in _first(3)}
    assert found == {"exact = unrolled": True, "ways agree": True, "same as on the CPU": False}


def test_a_way_that_a_device_cannot_do_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise NotImplementedError

    ways: dict[str, object] = {**DERIVATIVES, "forward": cannot}
    monkeypatch.setattr(self_check, "DERIVATIVES", ways)
    _, agree = _first(2)
    assert agree.well
    assert "forward cannot (NotImplementedError), so auto takes another" in agree.detail


def _first(count: int) -> list[Finding]:
    checks = self_checks(torch.device("cpu"))
    return [next(checks) for _ in range(count)]
