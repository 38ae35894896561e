"""Reading one input with limits on time and memory, and what came of it."""

from __future__ import annotations

import faulthandler
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from lors.data.problems import BadDataError
from lors.system.errors import LorsError
from tests.fuzz.target import Target

SECONDS = 20.0
"""Of CPU time for one input, as a busy machine may take any time for it. Python code is
interrupted; native code that hangs is ended from outside."""
WALL = 5
"""So many times as long by the clock, for what sleeps or waits."""
BYTES = 2 * 2**30
"""Of address space for one input, beyond what the process had: a file of kilobytes that asks for
gigabytes fails here, and swaps on a user's machine."""
SENTENCE = 1200
"""Characters that a person reads."""
LINES = 24
"""Of a report on bad data: counts, the first problems, and how many more there are."""


class Hang(BaseException):
    """A reader took too long; not an Exception, so that nothing swallows it."""


@dataclass(frozen=True)
class Outcome:
    """What came of one input.

    Args:
        kind: ``loaded``, ``refused``, or what is wrong, in a few words that name a place in the
            code: two inputs with the same words have found the same bug.
        details: the sentence or the traceback.
    """

    kind: str
    details: str = ""

    @property
    def wrong(self) -> bool:
        return self.kind not in ("loaded", "refused")


@contextmanager
def bounded_time(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt Python code after this time; native code comes to an end only by ``watched``."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Hang

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, WALL * seconds),
    }
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """End the process, and say where it was, if the block takes so long."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or 2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def bounded_memory(extra: int = BYTES) -> Iterator[None]:
    """Allow so much more address space than the process has now."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def attempt(target: Target, root: Path, data: bytes, seconds: float = SECONDS) -> Outcome:
    """Read one input."""
    file = root / target.file
    file.write_bytes(data)
    try:
        with bounded_time(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(root)
        return Outcome("loaded")
    except LorsError as error:
        return _judged(error)
    except BaseException as error:
        kind = "hang" if isinstance(error, Hang) else type(error).__name__
        return Outcome(f"{kind} in {_place(error)}", traceback.format_exc())


def _judged(error: LorsError) -> Outcome:
    """An error of ours counts if a person can read it."""
    sentence = str(error)
    if not sentence.strip():
        return Outcome(f"no words in {_place(error)}")
    lines = sentence.split("\n") if isinstance(error, BadDataError) else [sentence]
    if max(map(len, lines)) > SENTENCE or len(lines) > LINES:
        return Outcome(f"a sentence too long in {_place(error)}", sentence[:SENTENCE])
    if not all(line.isprintable() for line in lines):  # a control character, half a surrogate pair
        return Outcome(f"unprintable in {_place(error)}", repr(sentence))
    return Outcome("refused", sentence)


def _place(error: BaseException) -> str:
    """The innermost function of lors on the way to an error, or of whoever raised it."""
    steps = [s for s in traceback.extract_tb(error.__traceback__) if s.filename != __file__]
    ours = [step for step in steps if "/src/lors/" in step.filename]
    step = (ours or steps)[-1]
    return f"{'/'.join(Path(step.filename).parts[-2:])} {step.name}"
