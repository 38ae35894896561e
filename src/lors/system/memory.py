"""How much memory there is, and the peak of this process."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path

import psutil
import torch

from lors.system.errors import InputError

__all__ = ["available_memory", "check_fits", "forget_peak_memory", "peak_memory", "total_memory"]


def available_memory(device: torch.device) -> int:
    """Bytes that this process can hold, with those that it holds now."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    return psutil.virtual_memory().available + psutil.Process().memory_info().rss


def total_memory(device: torch.device) -> int:
    """Bytes that the device has, whoever holds them: the same at every run."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return psutil.virtual_memory().total


def peak_memory(device: torch.device) -> int:
    """Bytes that this process held at most: on a GPU by torch, or in main memory by everything."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    for line in lines:
        if line.startswith("VmHWM"):  # ru_maxrss would count the parent process at its start
            return 1024 * int(line.split()[1])
    import resource  # which Windows has not

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak_memory(device: torch.device) -> None:
    """Let the peak be that of what follows; where the system cannot, it stays that of all."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # other C libraries keep little
            ctypes.CDLL(None).malloc_trim(0)  # glibc keeps what was freed, as if it was in use
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def check_fits(size: int, what: str) -> None:
    """Refuse to read a file into memory that cannot hold it: a sparse one costs its maker nothing.

    Args:
        size: in bytes.
        what: the file, for the message.

    Raises:
        InputError: there is less memory.
    """
    free = psutil.virtual_memory().available
    if size > free:
        raise InputError(
            f"{what} has {size / 2**30:,.1f} GiB, and of memory {free / 2**30:,.1f} GiB are free: "
            "check that it is what it should be"
        )
