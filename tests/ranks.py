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
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

__all__ = ["run_ranks", "start_ranks"]


def _context() -> ForkServerContext:
    """Processes that start with all imported: that takes longer than most tests."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["pytest", "hypothesis", "lors.pipeline"])
    return context


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
        given = (size, folder, function, arguments, dict(os.environ), limit)
        processes = [_context().Process(target=_work, args=(r, *given)) for r in range(size)]
        for process in processes:
            process.start()
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


def start_ranks(size: int, *words: str | Path) -> list[ForkServerProcess]:
    """A command of lors on several ranks, as torchrun starts them, but with nobody watching."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
    }
    processes = [
        _context().Process(
            target=_command,
            args=({**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, list(map(str, words))),
        )
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    return processes


def _command(environment: dict[str, str], words: list[str]) -> None:
    import torch

    from lors.cli import main

    os.environ.clear()
    os.environ.update(environment, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    torch.set_num_threads(1)
    sys.argv = ["lors", *words]
    main()


def _answer(folder: Path, rank: int) -> tuple[Any, str | None]:
    path = folder / f"{rank}.json"
    if not path.is_file():
        return None, "ended without an answer"
    result, error = json.loads(path.read_text())
    return result, error


def _work(
    rank: int,
    size: int,
    folder: str,
    function: str,
    arguments: tuple[Any, ...],
    environment: dict[str, str],
    limit: float,
) -> None:
    import torch
    import torch.distributed as dist

    os.environ.clear()  # that of the server is from when it started
    os.environ.update(environment, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
    torch.set_num_threads(1)
    result, error = None, None
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/init",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=limit),
        )
        module, _, name = function.partition(":")
        result = getattr(importlib.import_module(module), name)(*arguments)
    except BaseException:
        error = traceback.format_exc()
    Path(folder, f"{rank}.json").write_text(json.dumps([result, error]))
    sys.stdout.flush()
    if error is not None:
        os._exit(1)  # at once: the others learn of it by a broken connection
    dist.destroy_process_group()
