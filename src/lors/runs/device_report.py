"""A report of what works on a device and how fast, to be pasted into an issue."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

from lors.files import artifacts
from lors.runs.self_check import self_checks, timings
from lors.system.devices import Choice, choose_device
from lors.system.errors import out_of_memory, printable
from lors.system.progress import Progress, Silent

__all__ = ["anonymous", "device_report"]


def device_report(name: str = "auto", progress: Progress | None = None) -> tuple[str, bool]:
    """Versions, device, self-checks and timings as Markdown, and whether all checks went well.

    It names neither paths nor people nor hosts. It takes about a minute.

    Args:
        name: as of the setting ``device``.
        progress: reports long-running work.
    """
    progress, begun, choice = progress or Silent(), time.perf_counter(), choose_device(name)
    lines = ["# First run of lors on a device", "", "| | |", "|---|---|"]
    lines += [f"| {what} | {_cell(found)} |" for what, found in _about(choice)]
    lines += ["", "| check | found | |", "|---|---|---|"]
    well = True
    for check in self_checks(choice.device, progress):
        well &= check.well
        mark = "ok" if check.well else "**not as it should be**"
        lines.append(f"| {check.what} | {_cell(check.detail)} | {mark} |")
    lines += ["", "| timing | |", "|---|---|"]
    try:
        lines += [f"| {what} | {_cell(found)} |" for what, found in timings(choice.device)]
    except RuntimeError as error:
        short = out_of_memory(error)
        lines.append(f"| stopped | {'out of memory' if short else _cell(str(error))} |")
    lines += ["", f"All of this took {time.perf_counter() - begun:.0f} s."]
    return anonymous("\n".join(lines)) + "\n", well


def anonymous(text: str) -> str:
    """A text without the user's folders, name and host.

    >>> anonymous(f"cannot read {Path.home()}/photos/1.jpg")
    'cannot read PATH'
    """
    for folder in {Path.home(), Path.cwd(), Path(tempfile.gettempdir()), artifacts.home()}:
        if len(folder.parts) > 1:
            text = re.sub(re.escape(str(folder)) + r"[^\s'\",|)]*", "PATH", text)
    for name in {_user(), socket.gethostname()}:
        if len(name) > 1:
            text = re.sub(rf"\b{re.escape(name)}\b", "NAME", text)
    return text


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return ""


def _about(choice: Choice) -> Iterator[tuple[str, str]]:
    yield "versions", ", ".join(f"{name} {found}" for name, found in artifacts.versions().items())
    memory = psutil.virtual_memory().total / 2**30
    yield "system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    yield "machine", f"{os.cpu_count()} cores, {memory:.1f} GiB, {torch.get_num_threads()} threads"
    yield "device", f"{choice.device} ({choice.why})"
    if choice.device.type == "cuda":
        found = torch.cuda.get_device_properties(choice.device)
        yield "GPU", f"compute capability {found.major}.{found.minor}, CUDA {torch.version.cuda}"
        yield "cuDNN", str(torch.backends.cudnn.version())
        tf32 = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
        yield "TF32", f"convolutions: {tf32[0]}, matrix products: {tf32[1]}"


def _cell(text: str) -> str:
    return printable(text).replace("|", "/")
