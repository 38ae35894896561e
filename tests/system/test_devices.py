from __future__ import annotations

import pytest
import torch

from lors.system.devices import _trial, _unlike_cpu, choose_device
from lors.system.errors import InputError

GPU = torch.cuda.is_available() or torch.backends.mps.is_available()


@pytest.mark.skipif(GPU, reason="there is a GPU")
def test_without_a_gpu_auto_takes_the_cpu_and_says_why() -> None:
    found = choose_device("auto")
    assert found.device == torch.device("cpu")
    assert "built without CUDA" in found.why or "finds no GPU" in found.why


@pytest.mark.skipif(GPU, reason="there is a GPU")
@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_gpu_that_does_not_work_is_not_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = torch.cuda if kind == "cuda" else torch.backends.mps
    monkeypatch.setattr(where, "is_available", lambda: True)
    found = choose_device("auto")
    assert found.device.type == "cpu"
    assert f"{kind} is there, but" in found.why


def test_the_trial_needs_numbers_and_agrees_with_itself() -> None:
    assert _unlike_cpu("cpu", "float32") is None
    assert "cannot do what matching needs" in str(_unlike_cpu("meta", "float32"))
    single, double = (_trial(torch.device("cpu"), dtype) for dtype in ("float32", "float64"))
    assert (single - double).norm() < 1e-3 * double.norm()


@pytest.mark.parametrize("name", ["meta", "cuda:99", "hpu"])
def test_a_named_device_is_taken_or_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(InputError, match="is not available here: set device=auto or device=cpu"):
        choose_device(name)


def test_the_environment_says_what_auto_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORS_DEVICE", "cpu")
    assert str(choose_device("auto")) == "Device: cpu (as LORS_DEVICE says)."
    monkeypatch.setenv("LORS_DEVICE", "cuda:99")
    with pytest.raises(InputError, match="'cuda:99' is not available here"):
        choose_device("auto")
    assert choose_device("cpu").why == "as set"
