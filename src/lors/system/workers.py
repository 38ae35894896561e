"""Worker processes of this one: waiting for them and ending them, even when one is stopped."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psutil

from lors.system.errors import LorsError
from lors.system.heartbeat import CONTINUES, TIMEOUT, Silence, interval, timeout

__all__ = ["as_they_end", "worker_pool"]

T = TypeVar("T")


@contextmanager
def worker_pool(
    count: int, initializer: Callable[..., None] | None = None, initargs: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes to work in; an error or a signal that ends the block ends them, too.

    Args:
        count: how many.
        initializer: sets each of them up.
        initargs: its arguments.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, initializer, initargs) as pool:
        try:
            yield pool
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
                with suppress(psutil.Error):  # one that is stopped would not hear of it
                    psutil.Process(process.pid).resume()
            pool.shutdown(cancel_futures=True)
            raise


def as_they_end(pool: ProcessPoolExecutor, futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """The futures of a pool, each as soon as it is done.

    Raises:
        LorsError: a process has been stopped (SIGSTOP) for ``LORS_TIMEOUT`` seconds.
    """
    left, stopped = set(futures), dict[int, Silence]()
    while left:
        done, left = wait(left, interval(), FIRST_COMPLETED)
        yield from done
        for pid in list(pool._processes or ()):
            stopped[pid] = stopped.get(pid, Silence()) if _is_stopped(pid) else Silence()
            if stopped[pid].seconds("stopped") > timeout():
                raise LorsError(
                    f"the worker process {pid} has been stopped for {timeout():.0f} s ({TIMEOUT}): "
                    f"{CONTINUES}"
                )


def _is_stopped(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
