"""Functions run by several ranks at once: gloo processes on this machine, as torchrun starts them.

>>> from tests.ranks import run_ranks
>>> run_ranks(2, "operator:add", 1, 2)  # or a function of a test module, not of its inside
[3, 3]
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.processes import loaded_processes

__all__ = ["run_ranks", "start_ranks", "started_ranks"]


def run_ranks(
    size: int, function: Callable[..., Any] | str, *arguments: Any, limit: float = 120
) -> list[Any]:
    """What each rank returns, in their order.

    Args:
        size: how many processes.
        function: of a module, or ``module:name``; it must return JSON.
        arguments: the same for all ranks; JSON, or paths.
        limit: seconds after which those still running are ended.

    Raises:
        AssertionError: a rank raised, ended without an answer, or took too long.
    """
    if not isinstance(function, str):
        function = f"{function.__module__}:{function.__qualname__}"
    with tempfile.TemporaryDirectory() as folder:
        processes = _start(size, _work, folder, function, arguments)
        end = time.monotonic() + limit
        for process in processes:
            process.join(max(0, end - time.monotonic()))
        late = [rank for rank, process in enumerate(processes) if process.is_alive()]
        for rank in late:
            processes[rank].kill()
            processes[rank].join()
        answers = [_answer(Path(folder), rank) for rank in range(size)]
    failed = [f"rank {rank}: {error}" for rank, (_, error) in enumerate(answers) if error]
    if late:
        failed.insert(0, f"ranks {late} took over {limit} s")
    assert not failed, "\n".join(failed)
    return [result for result, _ in answers]


def start_ranks(size: int, *words: str | Path) -> AbstractContextManager[list[ForkServerProcess]]:
    """A command of lors on several ranks, as torchrun starts them, but with nobody watching."""
    return started_ranks(size, _command, list(map(str, words)))


@contextmanager
def started_ranks(
    size: int, function: Callable[..., None], *given: Any
) -> Iterator[list[ForkServerProcess]]:
    """A function of a test module on several processes that can join each other.

    Those that still run at the end of the block are killed.
    """
    processes = _start(size, function, *given)
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.join()


def _start(size: int, target: Callable[..., None], *given: Any) -> list[ForkServerProcess]:
    """Processes with the environment that torchrun would give them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
    }
    processes = [
        loaded_processes().Process(
            target=_begin,
            args=({**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, target, given),
        )
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    return processes


def _begin(
    environment: dict[str, str], target: Callable[..., None], given: tuple[Any, ...]
) -> None:
    import torch

    os.environ.update(environment)
    torch.set_num_threads(1)
    target(*given)


def _command(words: list[str]) -> None:
    from lors.cli import main

    sys.argv = ["lors", *words]
    main()


def _answer(folder: Path, rank: int) -> tuple[Any, str | None]:
    path = folder / f"{rank}.json"
    if not path.is_file():
        return None, "ended without an answer"
    result, error = json.loads(path.read_text())
    return result, error


def _work(folder: str, function: str, arguments: tuple[Any, ...]) -> None:
    from lors.system import ranks

    module, _, name = function.partition(":")
    answer = Path(folder, f"{os.environ['RANK']}.json")
    try:
        with ranks.joined():
            result = getattr(importlib.import_module(module), name)(*arguments)
            answer.write_text(json.dumps([result, None]))
    except BaseException:
        answer.write_text(json.dumps([None, traceback.format_exc()]))
        os._exit(1)  # at once: the others learn of it by a broken connection
