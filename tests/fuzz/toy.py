"""A reader with bugs, to fuzz the fuzzing: ``python -m tests.fuzz.toy FOLDER`` says what is found.

It is a process of its own, without threads, so that it can be forked at any time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from lors.system.errors import InputError
from tests.fuzz.explore import Exploration, isolated, minimised
from tests.fuzz.limits import attempt
from tests.fuzz.mutate import BYTES, mutants
from tests.fuzz.target import Target

INPUTS = 2000
BUG = "KeyError in fuzz/toy.py read"
DEADLY = (b"hang", b"native", b"abort", b"memory", b"long", b"escape", b"fine", b"exit")


def read(root: Path) -> None:
    """Steps that lead to a bug one after the other, so that each can be found from the last."""
    data = (root / "file").read_bytes()
    if data[:1] == b"\x80":
        if data[1:2] == b"\xef":
            if data[2:3] == b"\t":
                raise KeyError("found")
            return
        return
    raise InputError("it does not begin as it should")


def spoken(sentence: str) -> InputError:
    """An error whose words did not go through the hands of ``LorsError``."""
    error = InputError("")
    error.args = (sentence,)
    return error


def read_deadly(root: Path) -> None:
    data = (root / "file").read_bytes()
    if data == b"hang":
        while True:
            pass
    if data == b"native":  # as code that never comes back to Python
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGPROF})
        time.sleep(1000)
    if data == b"abort":
        os.abort()
    if data == b"exit":
        sys.exit("enough")
    if data == b"memory":
        bytearray(2**42)
    if data == b"long":
        raise spoken("x" * 10_000)
    if data == b"escape":
        raise spoken("\x1b[2J")


def read_mortal(root: Path) -> None:
    """Ends its process now and then."""
    if b"\0" in (root / "file").read_bytes():
        os.abort()


def target(reader: Any) -> Target:
    return Target("file", lambda root: [b"abcdefgh"], (), reader)


def explore(folder: Path, reader: Any = read, *counts: int) -> dict[str, Any]:
    """Explore so many inputs, and then so many; what is known at the end."""
    exploration = Exploration("toy", target(reader), folder, package=__file__)
    for count in counts:
        tally = exploration.run(count)
    corpus = [path.read_bytes().hex() for path in sorted((folder / "corpus").iterdir())]
    return {"inputs": tally.inputs, "kinds": dict(tally.kinds), "corpus": corpus}


def blind(folder: Path) -> list[str]:
    """What as many inputs find that are damaged without a look at the code."""
    folder.mkdir()
    damaged = mutants([b"abcdefgh"], BYTES, INPUTS, "toy")
    return sorted({attempt(target(read), folder, data).kind for data in damaged})


def main(folder: Path) -> None:
    soon = {"hang": 1.0, "native": 0.2}
    report = {
        "once": explore(folder / "once", read, INPUTS),
        "again": explore(folder / "again", read, 100, 1200, INPUTS),
        "blind": blind(folder / "blind"),
        "mortal": explore(folder / "mortal", read_mortal, 200),
        "deadly": {
            data.decode(): isolated(
                target(read_deadly), data, folder / "there", soon.get(data.decode(), 60.0)
            ).kind
            for data in DEADLY
        },
    }
    noise = random.Random(0).randbytes(20)
    found = minimised(target(read), b"\x80\xef\t" + noise, BUG, folder / "there")
    print(json.dumps({**report, "minimised": found.hex()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
