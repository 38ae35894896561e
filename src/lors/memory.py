"""Peak memory of this process."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import torch

__all__ = ["forget_peak_memory", "peak_memory"]


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
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
