"""Devices by name."""

from __future__ import annotations

import importlib
import os

import torch

from lors.system import ranks
from lors.system.errors import InputError

__all__ = ["find_device"]


def find_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is a GPU if there is one, for each rank its own.

    The environment variable ``LORS_DEVICE`` says what ``auto`` takes instead.

    Raises:
        InputError: it is not available here.
    """
    if name == "auto":
        name = os.environ.get("LORS_DEVICE", name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and ranks.size() > 1:
        name = f"cuda:{ranks.local()}"
    try:
        if name.partition(":")[0] == "xla":
            importlib.import_module("torch_xla")  # which makes it known
        torch.zeros(1, device=name).item()  # some devices exist but hold no numbers
        return torch.device(name)
    except (ImportError, RuntimeError, AssertionError, NotImplementedError):
        raise InputError(
            f"device {name!r} is not available here: set device=auto or device=cpu"
        ) from None
