"""A forked process that may hang or die without taking the fuzzing with it."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.limits import Outcome

Say = Callable[[dict[str, Any]], None]
STUCK = 1
"""The exit code with which faulthandler ends a process that does not react."""
FAILED = 70


class Child:
    """A process that reports in lines of JSON.

    Args:
        work: runs in the process; what it is given sends a report.
    """

    def __init__(self, work: Callable[[Say], None]) -> None:
        sys.stdout.flush()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._pipe, writing = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(self._pipe)
            _work(work, writing, self._log.fileno())
        os.close(writing)
        self._code, self._silent = 0, False

    def reports(self, patience: float) -> Iterator[dict[str, Any]]:
        """What it says until it ends; it is killed if it says nothing for so many seconds."""
        rest = b""
        while True:
            ready, _, _ = select.select([self._pipe], [], [], patience)
            if not ready:
                self._silent = True
                os.kill(self._process, signal.SIGKILL)
            part = os.read(self._pipe, 2**16)
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            yield from map(json.loads, lines)
        os.close(self._pipe)
        _, status = os.waitpid(self._process, 0)
        self._code = os.waitstatus_to_exitcode(status)

    def end(self) -> Outcome | None:
        """How it ended, and where as far as is known; None if all was well."""
        if self._code == 0:
            return None
        self._log.seek(0)
        log = self._log.read().decode("utf-8", "replace")
        if self._code == FAILED:
            raise RuntimeError(f"the fuzzing itself failed:\n{log}")
        kind = "hang" if self._silent or self._code == STUCK else f"exit code {self._code}"
        if self._code < 0 and not self._silent:
            kind = signal.Signals(-self._code).name
        place = re.search(r'/(lors/[^"]*)", line \d+ in (\w+)', log)
        return Outcome(
            f"{kind} below {' '.join(place.groups()) if place else 'no code of ours'}", log
        )


def _work(work: Callable[[Say], None], pipe: int, log: int) -> None:
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable(2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def say(report: dict[str, Any]) -> None:
        os.write(pipe, json.dumps(report).encode() + b"\n")

    try:
        work(say)
        os._exit(0)
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        os._exit(FAILED)
