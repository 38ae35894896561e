"""How much memory there is, and the peak of this process."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

from lors.system.errors import InputError

__all__ = [
    "available_memory",
    "check_fits",
    "container_limit",
    "forget_peak_memory",
    "keeping_freed_memory",
    "peak_memory",
    "total_memory",
]

TRIM, MMAP = -1, -3
"""glibc's names of when freed memory goes back to the system, and of what never stays."""
USUAL = 2**25
"""Where glibc's own rule ends: 32 MiB."""


def available_memory(device: torch.device) -> int:
    """Bytes that this process can hold, with those that it holds now."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    mine = psutil.Process().memory_info().rss
    return min(psutil.virtual_memory().available + mine, container_limit())


def total_memory(device: torch.device) -> int:
    """Bytes that the device has, whoever holds them: the same at every run."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return min(psutil.virtual_memory().total, container_limit())


def container_limit(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of main memory that a container lets its processes have; without a limit, a great many.

    Args:
        root: where the system shows the limits of control groups.
    """
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of their versions 2 and 1
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or it says "max"
            return int((root / name).read_text())
    return sys.maxsize


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
    if (library := _glibc()) is not None:  # other C libraries keep little
        library.malloc_trim(0)  # it keeps what was freed, as if it was in use
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@contextlib.contextmanager
def keeping_freed_memory() -> Iterator[None]:
    """Use freed memory again inside the block, instead of giving it back and asking for new pages.

    A step of a network frees what the next one needs: without this, a quarter of its time can go
    into clearing pages. It is given back at the end. Other systems than Linux with glibc do as they
    always do.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(MMAP, 2**30)
    library.mallopt(TRIM, 2**31 - 1)
    try:
        yield
    finally:
        library.mallopt(MMAP, USUAL)
        library.mallopt(TRIM, 2 * USUAL)
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """The C library, if it is one whose allocator can be told what to keep."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


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
