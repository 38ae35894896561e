"""Damaged and hostile files: an error of ours or a correct load, never anything else.

``LORS_FUZZ=5000 pytest tests/fuzz`` tries 5,000 mutants of each kind of file instead of 200. A
failure names the mutant's number and keeps it in the temporary folder.
"""

from __future__ import annotations

import os
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from lors.errors import LorsError
from tests.fuzz.mutate import mutants
from tests.fuzz.targets import TARGETS

COUNT = int(os.environ.get("LORS_FUZZ", "200"))
SECONDS = 20
BYTES = 2 * 2**30


class Hang(BaseException):
    """A reader took too long; not an Exception, so that nothing swallows it."""


@contextmanager
def bounded_time() -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    """A file of kilobytes that asks for gigabytes fails here, and on a user's machine swaps."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="bounds are those of Linux")
@pytest.mark.usefixtures("bounded_memory")
@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_refused_with_a_sentence_or_read_correctly(
    name: str, tmp_path: Path
) -> None:
    target, root = TARGETS[name], tmp_path / "root"
    root.mkdir()
    originals = target.originals(root)
    (root / target.file).write_bytes(originals[0])
    target.read(root)
    outcomes: Counter[str] = Counter()
    for number, mutant in enumerate(mutants(originals, target.aware, COUNT, name)):
        (root / target.file).write_bytes(mutant)
        try:
            with bounded_time(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                target.read(root)
            outcomes["loaded"] += 1
        except LorsError as error:
            outcomes["refused" if str(error).strip() else "refused without a word"] += 1
        except BaseException as error:
            kept = tmp_path / f"mutant-{number}"
            kept.write_bytes(mutant)
            raise AssertionError(f"mutant {number} of {name}, kept as {kept}") from error
    print(f"{name}: {dict(outcomes)}")
    assert outcomes["refused"]
    assert not outcomes["refused without a word"]
