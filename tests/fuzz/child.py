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
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.limits import Outcome

Say = Callable[[dict[str, Any]], None]
FAILED = 70
POLL = 0.5
"""Seconds between two looks at what a child says: to be woken for each report would slow both."""


class Child:
    """A process that reports in lines of JSON.

    Args:
        work: runs in the process; what it is given sends a report.
    """

    def __init__(self, work: Callable[[Say], None]) -> None:
        sys.stdout.flush()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._reports = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._process = os.fork()
        if self._process == 0:
            _work(work, self._reports.fileno(), self._log.fileno())
        self._code, self._stuck = 0, False

    def reports(self, patience: float) -> Iterator[dict[str, Any]]:
        """What it says until it ends; it is ended if it says nothing for so many seconds."""
        ended, heard, read, rest = os.pidfd_open(self._process), time.monotonic(), 0, b""
        while True:
            over = bool(select.select([ended], [], [], POLL)[0])
            part = os.pread(self._reports.fileno(), 2**24, read)
            read += len(part)
            *lines, rest = (rest + part).split(b"\n")
            yield from map(json.loads, lines)
            if over and not part:
                break
            heard = time.monotonic() if part else heard
            if time.monotonic() - heard > patience and not over:
                # At the first of these, faulthandler says where the process was.
                os.kill(self._process, signal.SIGKILL if self._stuck else signal.SIGABRT)
                self._stuck = True
        os.close(ended)
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
        kind = f"exit code {self._code}"
        if self._code < 0:
            kind = "hang" if self._stuck else signal.Signals(-self._code).name
        place = re.search(r'/(lors/[^"]*)", line \d+ in (\w+)', log)
        return Outcome(
            f"{kind} below {' '.join(place.groups()) if place else 'no code of ours'}", log
        )


def _work(work: Callable[[Say], None], reports: int, log: int) -> None:
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable(2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def say(report: dict[str, Any]) -> None:
        os.write(reports, json.dumps(report).encode() + b"\n")

    try:
        work(say)
        os._exit(0)
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        os._exit(FAILED)
