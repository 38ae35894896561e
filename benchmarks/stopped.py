"""One of two ranks stopped (SIGSTOP) at every place where the other one waits for it.

    python benchmarks/stopped.py --timeout 10 [--without-torchrun] [--to-the-end]

Of two ranks of a command, one stops itself when it comes to a given function, or to a lock that it
has just taken, and stays so: alive, but silent, as on a frozen machine. Taken are the seconds until
the other rank has ended by itself, which should be those of LORS_TIMEOUT and few more, and what it
said. Then all that is left is killed; ``--to-the-end`` lets torchrun end the stopped rank and takes
those seconds, too. Without torchrun, rank 0 keeps the store through which ranks find each other.
Prints a table and JSON; ends in error if a rank ended late or without a sentence.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

SETTINGS = ["experts.count=4", "experts.epochs=4", "evaluate.seeds=2", "evaluate.epochs=5"]
DISTIL = ["distill", "tiny", *SETTINGS, "distill.iterations=40", "distill.checkpoint_every=5"]
DISTIL += ["distill.evaluate_every=20", "--out", "OUT"]
COMPARE = ["compare", "tiny", *SETTINGS, "distill.iterations=4", "--seeds", "2", "--out", "OUT"]
COMPARE += ["--methods", "random,lors-wbce"]
LIMIT = 240


@dataclass
class Case:
    """Which rank stops where.

    Args:
        moment: in words.
        place: ``module:function`` at whose call it stops, ``lock:part of its name``, or ``start``.
        call: at which call, counted from 1.
        rank: which of the two.
        words: the command.
        work: seconds that the other one may need to come to where it waits.
    """

    moment: str
    place: str
    call: int = 1
    rank: int = 1
    words: tuple[str, ...] = tuple(DISTIL)
    work: float = 20


CASES = [
    Case("before lors is imported", "start"),
    Case("before lors is imported", "start", rank=0),
    Case("before it reaches the store", "lors.system.ranks:rendezvous"),
    Case("before it says that it is there", "lors.system.ranks:_this_start"),
    Case("before the first group", "torch.distributed:init_process_group"),
    Case("before the second group", "torch.distributed:new_group"),
    Case("before the second group", "torch.distributed:new_group", rank=0),
    Case("before the first message", "lors.system.ranks:any_of"),
    Case("in the first gather", "lors.system.ranks:gather"),
    Case("in the first gather", "lors.system.ranks:gather", rank=0),
    Case("with the lock of a cache", "lock:.npy.lock", rank=0),
    Case("with the lock of an expert", "lock:expert-"),
    Case("with the lock of an expert", "lock:expert-", rank=0),
    Case("in a step", "lors.system.ranks:total", call=20),
    Case("in a step", "lors.system.ranks:total", call=20, rank=0),
    Case("in a checkpoint", "lors.system.ranks:check_equal", call=4),
    Case("in an evaluation", "lors.system.ranks:divide"),
    Case("in an evaluation", "lors.system.ranks:divide", rank=0),
    Case("in a comparison", "lors.comparison.run:_run_all", words=tuple(COMPARE), work=120),
    Case("in a comparison", "lors.comparison.run:_run_all", 1, 0, tuple(COMPARE), work=120),
]


def stop_here() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def be_a_rank(place: str, call: int, rank: int, words: list[str]) -> None:
    """Run the command in this process, which stops itself at the given place if it is the one."""
    mine = int(os.environ["RANK"]) == rank
    if place != "start":
        importlib.import_module("lors.comparison.run")  # takes seconds: now, on both
    if mine and place == "start":
        stop_here()
    elif mine and place.startswith("lock:"):
        _stop_with_lock(place.removeprefix("lock:"))
    elif mine:
        _stop_at_call(place, call)
    sys.argv = ["lors", *words]
    runpy.run_module("lors", run_name="__main__")


def _stop_at_call(place: str, call: int) -> None:
    where, _, name = place.partition(":")
    module = importlib.import_module(where)
    function: Callable[..., Any] = getattr(module, name)
    calls: list[None] = []

    def stops(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) == call:
            stop_here()
        return function(*arguments, **named)

    setattr(module, name, stops)


def _stop_with_lock(part: str) -> None:
    from lors.system import locks

    held = locks._held

    @contextmanager
    def stops(path: Path) -> Iterator[None]:
        with held(path):
            if part in path.name:
                stop_here()
            yield

    setattr(locks, "_held", stops)  # noqa: B010


def start(case: Case, folder: str, timeout: float, torchrun: bool) -> list[subprocess.Popen[bytes]]:
    """torchrun, or two ranks."""
    words = [word.replace("OUT", f"{folder}/out") for word in case.words]
    line = [__file__, "--place", case.place, "--call", str(case.call), "--rank", str(case.rank)]
    line += ["--", *words]
    environment = {**os.environ, "LORS_HOME": f"{folder}/home", "OMP_NUM_THREADS": "1"}
    environment |= {"LORS_TIMEOUT": str(timeout), "COLUMNS": "1000"}
    with Path(folder, "said").open("w") as said:
        if torchrun:
            launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
            line = [sys.executable, *launch, *line]
            return [subprocess.Popen(line, env=environment, stdout=said, stderr=said)]
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
        environment |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
        return [
            subprocess.Popen(
                [sys.executable, *line],
                env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=said,
                stderr=said,
            )
            for rank in range(2)
        ]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def measure(case: Case, timeout: float, torchrun: bool, to_the_end: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"stopped": case.moment, "rank": case.rank}
    with tempfile.TemporaryDirectory() as folder:
        launched = start(case, folder, timeout, torchrun)
        try:
            longest = 1.2 * timeout + case.work
            row["seconds"] = seconds_to_the_end(launched, 1 - case.rank, longest)
            begun = time.monotonic()
            if to_the_end:
                launched[0].wait(LIMIT)
                row["torchrun adds"] = round(time.monotonic() - begun, 1)
        finally:
            end_all(launched)
        said = Path(folder, "said").read_text()
    row["said"] = next((line for line in said.splitlines() if "error: " in line), "")
    if not row["said"]:
        print(said[-3000:])
    return row


def seconds_to_the_end(
    launched: list[subprocess.Popen[bytes]], other: int, longest: float
) -> float | None:
    """From the stop of one rank to the end of the other; none if that takes too long."""
    found: dict[int, psutil.Process] = {}
    end = time.monotonic() + LIMIT
    while 1 - other not in found or not _is(found[1 - other], psutil.STATUS_STOPPED):
        assert time.monotonic() < end, "no rank stopped"
        assert all(process.poll() is None for process in launched), "ended before a rank stopped"
        found = _ranks(launched)
        time.sleep(0.01)
    begun = time.monotonic()
    while not _is(found[other], psutil.STATUS_ZOMBIE):
        if time.monotonic() - begun > longest:
            return None
        time.sleep(0.01)
    return round(time.monotonic() - begun, 1)


def _ranks(launched: list[subprocess.Popen[bytes]]) -> dict[int, psutil.Process]:
    """The processes that are ranks; their own children, if any, come after them."""
    found: dict[int, psutil.Process] = {}
    for one in launched:
        process = psutil.Process(one.pid)
        for candidate in (process, *process.children()):
            with suppress(psutil.Error, KeyError):
                found.setdefault(int(candidate.environ()["RANK"]), candidate)
    return found


def _is(process: psutil.Process, status: str) -> bool:
    try:
        return bool(process.status() == status)
    except psutil.NoSuchProcess:
        return status == psutil.STATUS_ZOMBIE


def end_all(launched: list[subprocess.Popen[bytes]]) -> None:
    for one in launched:
        if one.poll() is None:
            for child in psutil.Process(one.pid).children(recursive=True):
                child.kill()
            one.kill()
            one.wait()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--timeout", type=float, default=10, help="LORS_TIMEOUT")
    parser.add_argument("--without-torchrun", action="store_true")
    parser.add_argument("--to-the-end", action="store_true")
    parser.add_argument("--only", default="", help="the moments that have this in them")
    for hidden in ("--place", "--call", "--rank"):  # for the ranks, which are this file, too
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.place:
        be_a_rank(given.place, int(given.call), int(given.rank), given.words)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("stopped", "rank", "seconds", *(["torchrun adds"] if given.to_the_end else []))
    table.add_column("said")
    rows = []
    for case in CASES:
        if given.only in case.moment:
            row = measure(case, given.timeout, not given.without_torchrun, given.to_the_end)
            print(row, flush=True)
            rows.append(row)
            table.add_row(*map(str, row.values()))
    Console().print(table)
    print(json.dumps(rows))
    assert all(row["seconds"] is not None and row["said"] for row in rows)


if __name__ == "__main__":
    main()
