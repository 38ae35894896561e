"""A disk that fails, or a process that dies, at a chosen file operation, all in this process.

The functions through which ``lors`` touches files are replaced while a ``Disk`` is open. They count
the operations below a folder and let one of them, or all from one on, go wrong.
"""

from __future__ import annotations

import builtins
import errno
import io
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from unittest import mock

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lors.files import artifacts

__all__ = ["Disk", "Fault", "How", "Killed", "When"]

T = TypeVar("T")
How = Literal["error", "lasting", "kill", "power"]
When = Literal["before", "middle", "after"]

WRITES = {"create", "write", "sync", "rename", "unlink", "mkdir", "rmdir", "chmod"}
_PIDS = itertools.count(2**22 + 1)  # beyond what Linux gives, so that none is alive


class Killed(BaseException):
    """The process is dead: what tidies up behind it cannot touch a file any more."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    Args:
        at: the number of the operation, counted from 0.
        how: ``error``, and the program goes on; ``lasting``, an error of this and every later
            operation that writes; ``kill``, the process dies; ``power``, the machine does, and of
            what was not synced only zeros are left.
        when: before the operation, after it, or in its middle: half of the bytes are written.
            Errors are before or in the middle.
        number: of an error.
    """

    at: int
    how: How
    when: When = "before"
    number: int = errno.EIO


class Disk:
    """Files below a folder, with one fault at most.

    Args:
        folder: what is watched; all else works as ever.
        fault: what goes wrong; none only counts.

    Attributes:
        operations: the kinds of all operations so far.
        struck: the kind of that which went wrong.
    """

    def __init__(self, folder: Path, fault: Fault | None = None) -> None:
        self.folder, self.fault = f"{folder.resolve()}{os.sep}", fault
        self.operations: list[str] = []
        self.struck: str | None = None
        self.dead = False
        self._descriptors: dict[int, str] = {}
        self._unsynced: dict[str, int] = {}  # how many of its first bytes are safe

    @contextmanager
    def open(self) -> Iterator[None]:
        """Replace the functions for the length of the block, as those of another process."""
        process = next(_PIDS)
        with ExitStack() as stack:
            if self.fault is not None and self.fault.how == "power":
                stack.callback(self._lose_unsynced)  # last, with the real functions

            def replace(where: Any, name: str, by: Any) -> None:
                stack.enter_context(mock.patch.object(where, name, by))

            for name, kind in SIMPLE.items():
                replace(os, name, self._watched(getattr(os, name), kind))
            replace(os, "open", self._os_open(os.open))
            replace(os, "fsync", self._os_fsync(os.fsync))
            replace(os, "replace", self._os_replace(os.replace))
            replace(os, "getpid", lambda: process)
            for module in (builtins, io):
                replace(module, "open", self._open(io.open))
            replace(np, "save", _save_by_writing(np.save))
            replace(artifacts, "save_file", self._save_file(save_file))
            replace(artifacts, "safe_open", self._safe_open(safe_open))
            yield

    def perform(
        self,
        kind: str,
        path: str,
        action: Callable[[], T],
        half: Callable[[], object] = lambda: None,
        failure: Callable[[int, str, str], Exception] = OSError,
    ) -> T:
        """An operation, or what becomes of it."""
        if self.dead:
            raise Killed
        here, fault = len(self.operations), self.fault
        self.operations.append(kind)
        lasting = fault is not None and fault.how == "lasting" and kind in WRITES
        if fault is None or not (here == fault.at or (lasting and here > fault.at)):
            return action()
        self.struck = self.struck or kind
        if fault.when == "middle":
            half()
        if fault.how in ("error", "lasting"):
            raise failure(fault.number, os.strerror(fault.number), path)
        if fault.when == "after":
            with suppress(OSError):  # as of a folder that is there already
                made = action()
                if isinstance(made, int) and kind in ("open", "create"):
                    os.close(made)
        self.dead = True
        raise Killed

    def where(self, path: Any, folder: int | None = None) -> str | None:
        """The path of what an operation is about; none if it is not watched."""
        if isinstance(path, int):
            return self._descriptors.get(path)
        name = os.fsdecode(path)
        if folder is not None:
            name = os.path.join(self._descriptors.get(folder, ""), name)
        name = os.path.abspath(name)
        return name if f"{name}{os.sep}".startswith(self.folder) else None

    def written(self, path: str, safe: int) -> None:
        """A file is changed from this byte on; nothing of it is safe until the next sync."""
        self._unsynced[path] = min(safe, self._unsynced.get(path, safe))

    def register(self, descriptor: int, path: str) -> None:
        """Remember what an open file is called."""
        self._descriptors[descriptor] = path

    def _lose_unsynced(self) -> None:
        """What a power cut leaves of files that were written and not synced."""
        if not self.dead:
            return
        for path, safe in self._unsynced.items():
            if os.path.isfile(path):
                content = Path(path).read_bytes()
                Path(path).write_bytes(content[:safe] + bytes(len(content) - safe))

    def _watched(self, real: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def watched(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            there = self.where(path, options.get("dir_fd"))
            if there is None:
                return real(path, *arguments, **options)
            made = self.perform(kind, there, lambda: real(path, *arguments, **options))
            if kind == "unlink":
                self._unsynced.pop(there, None)
            return made

        return watched

    def _os_open(self, real: Callable[..., int]) -> Callable[..., int]:
        def watched(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            there = self.where(path, dir_fd)
            if there is None:
                return real(path, flags, mode, dir_fd=dir_fd)
            kind = "create" if flags & os.O_CREAT else "open"
            descriptor = self.perform(kind, there, lambda: real(path, flags, mode, dir_fd=dir_fd))
            self.register(descriptor, there)
            return descriptor

        return watched

    def _os_fsync(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def watched(descriptor: int) -> None:
            there = self.where(descriptor)
            if there is None:
                return real(descriptor)

            def sync() -> None:
                real(descriptor)
                self._unsynced.pop(there, None)

            return self.perform("sync", there, sync)

        return watched

    def _os_replace(self, real: Callable[..., None]) -> Callable[..., None]:
        def watched(source: Any, target: Any) -> None:
            there, old = self.where(target), self.where(source)
            if there is None or old is None:
                return real(source, target)

            def rename() -> None:
                real(source, target)
                self._unsynced.pop(there, None)
                if old in self._unsynced:
                    self._unsynced[there] = self._unsynced.pop(old)

            return self.perform("rename", there, rename)

        return watched

    def _open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            *more: Any,
            **options: Any,
        ) -> Any:
            there = None if isinstance(file, int) else self.where(file)
            if there is None:
                return real(file, mode, buffering, encoding, errors, newline, *more, **options)
            if not set(mode) & set("wax+"):
                return self.perform(
                    "open", there, lambda: real(file, mode, buffering, encoding, errors, newline)
                )
            raw = self.perform("create", there, lambda: WatchedFile(self, there, mode))
            if buffering == 0:
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            if "b" in mode:
                return buffered
            return io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

        return watched

    def _save_file(self, real: Callable[..., None]) -> Callable[..., None]:
        def watched(tensors: Any, path: Any, metadata: Any = None) -> None:
            there = self.where(path)
            if there is None:
                return real(tensors, path, metadata=metadata)

            def write() -> None:
                self.written(there, 0)
                real(tensors, path, metadata=metadata)

            def half() -> None:
                write()
                os.truncate(there, os.path.getsize(there) // 2)

            return self.perform("write", there, write, half, _safetensors_error)

        return watched

    def _safe_open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(path: Any, framework: str) -> Any:
            there = self.where(path)
            if there is None:
                return real(path, framework)
            return self.perform("open", there, lambda: real(path, framework))

        return watched


SIMPLE = {
    "unlink": "unlink",
    "remove": "unlink",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
    "chmod": "chmod",
    "scandir": "list",
    "listdir": "list",
}
"""Functions of ``os`` that take a path and need no more than watching."""


class WatchedFile(io.FileIO):
    """A file open for writing, below Python's buffers: what they still hold dies with a process."""

    def __init__(self, disk: Disk, path: str, mode: str) -> None:
        before = os.path.getsize(path) if os.path.exists(path) and "w" not in mode else 0
        super().__init__(path, mode.replace("b", "").replace("t", ""))
        self._disk, self._path = disk, path
        disk.register(self.fileno(), path)
        if before == 0:
            disk.written(path, 0)

    def write(self, data: Any) -> int:
        if self._disk.dead:
            return len(data)

        def put(count: int) -> int:
            self._disk.written(self._path, os.path.getsize(self._path))
            return super(WatchedFile, self).write(bytes(data)[:count])

        return self._disk.perform(
            "write", self._path, lambda: put(len(data)), lambda: put(len(data) // 2)
        )


def _save_by_writing(real: Callable[..., None]) -> Callable[..., None]:
    """``np.save`` through the file object: by itself it writes past it."""

    def save(file: Any, array: np.ndarray, **options: Any) -> None:
        content = io.BytesIO()
        real(content, array, **options)
        if hasattr(file, "write"):
            file.write(content.getvalue())
        else:
            Path(file).write_bytes(content.getvalue())

    return save


def _safetensors_error(number: int, reason: str, path: str) -> Exception:
    return SafetensorError(f"Error while serializing: I/O error: {reason} (os error {number})")
