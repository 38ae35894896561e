"""Devices by name, and which one ``auto`` takes."""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lors.system import ranks
from lors.system.errors import InputError, shortened

__all__ = ["Choice", "choose_device", "find_device"]

DIGITS = 1e-2
"""How far a trial on a device may be from the same on the CPU."""


class Choice(NamedTuple):
    """A device, and why it was taken.

    Args:
        device: it works.
        why: in words, without a full stop.
    """

    device: torch.device
    why: str

    def __str__(self) -> str:
        return f"Device: {self.device} ({self.why})."


def find_device(name: str, dtype: str = "float32") -> torch.device:
    """The device of that name; for ``auto`` see ``choose_device``.

    Raises:
        InputError: it is not available here.
    """
    return choose_device(name, dtype).device


def choose_device(name: str, dtype: str = "float32") -> Choice:
    """The device of that name, for each rank its own; ``auto`` is a GPU if there is one.

    That is CUDA, then MPS if a trial of what matching needs succeeds there, then the CPU. The
    environment variable ``LORS_DEVICE`` says what ``auto`` takes instead.

    >>> print(choose_device("cpu"))
    Device: cpu (as set).

    Args:
        name: as of the setting ``device``.
        dtype: of the numbers that it must hold.

    Raises:
        InputError: it is not available here.
    """
    if name == "auto" and (asked := os.environ.get("LORS_DEVICE", name)) != "auto":
        return choose_device(asked, dtype)._replace(why="as LORS_DEVICE says")
    if name == "auto":
        return _automatic(dtype)
    device, problem = _own(name), _refusal(_own(name), dtype)
    if problem is None:
        return Choice(torch.device(device), "as set")
    raise InputError(
        f"device {device!r} is not available here: set device=auto or device=cpu"
        if problem == ABSENT
        else f"device {device!r} cannot be used: {problem}; set device=auto or device=cpu"
    )


ABSENT = "it is not there"


def _automatic(dtype: str) -> Choice:
    why = _no_cuda()
    if torch.cuda.is_available():
        device = _own("cuda")
        if (problem := _refusal(device, dtype)) is None:
            return Choice(torch.device(device), _cuda_name(device))
        why = f"{device} is there, but {problem}"
    if torch.backends.mps.is_available():
        problem = _refusal("mps", dtype) or _unlike_cpu("mps", dtype)
        if problem is None:
            return Choice(torch.device("mps"), f"the GPU of this Mac; {why}")
        why = f"mps is there, but {problem}"
    return Choice(torch.device("cpu"), why)


def _own(name: str) -> str:
    """The GPU of this rank."""
    return f"cuda:{ranks.local()}" if name == "cuda" and ranks.size() > 1 else name


def _cuda_name(device: str) -> str:
    found = torch.cuda.get_device_properties(device)
    return f"{found.name}, {found.total_memory / 2**30:.1f} GiB"


def _no_cuda() -> str:
    if torch.version.cuda is None and torch.version.hip is None:
        return "this PyTorch is built without CUDA"
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    return f"PyTorch, built for {built}, finds no GPU"


def _refusal(device: str, dtype: str) -> str | None:
    """Why a device cannot hold such numbers; None if it can."""
    try:
        if device.partition(":")[0] == "xla":
            importlib.import_module("torch_xla")  # which makes it known
        torch.zeros(1, device=device).item()  # some devices exist but hold no numbers
    except (RuntimeError, AssertionError, ImportError):  # as of a device that torch only names
        return ABSENT
    try:
        (torch.ones(2, 2, device=device, dtype=getattr(torch, dtype)) * 2).sum().item()
    except (RuntimeError, TypeError):
        return f"it cannot compute in {dtype}"
    return None


@lru_cache
def _unlike_cpu(device: str, dtype: str) -> str | None:
    """Why a device cannot do what matching needs; None if it can."""
    try:
        there, here = (_trial(torch.device(each), dtype) for each in (device, "cpu"))
    except (RuntimeError, TypeError) as error:
        return f"it cannot do what matching needs: {shortened(str(error), 120)}"
    off = float((there - here).norm() / here.norm())
    return None if off < DIGITS else f"a trial there is off by {off:.0%}"


def _trial(device: torch.device, dtype: str) -> Tensor:
    """A second derivative of a small network: convolutions, pooling, attention, a contrastive loss.

    On the CPU, in double precision. Shape: (P,)
    """
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        values = torch.randn(*shape, generator=draw)
        return values.to(device, getattr(torch, dtype)).requires_grad_()

    images, texts, kernel, weight = (
        normal(4, 3, 8, 8),
        normal(4, 6),
        normal(6, 3, 3, 3),
        normal(6, 6),
    )
    features = F.gelu(F.conv2d(images.contiguous(memory_format=torch.channels_last), kernel))
    pooled = F.layer_norm(F.max_pool2d(features, 2).flatten(2).mean(-1), (6,))
    mixed = F.softmax(pooled @ weight @ pooled.T, -1) @ pooled
    logits = F.normalize(mixed, dim=-1) @ F.normalize(texts, dim=-1).T / 0.07
    loss = F.binary_cross_entropy_with_logits(logits, torch.eye(4).to(logits))
    first = torch.autograd.grad(loss, [kernel, weight], create_graph=True)
    product = torch.stack([g.square().sum() for g in first]).sum()
    found = torch.autograd.grad(product, [images, texts, kernel, weight])
    return torch.cat([g.detach().flatten().cpu().double() for g in found])
