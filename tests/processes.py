"""Processes that start with all imported: that takes longer than most of what tests do in them."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from tests import devices

__all__ = ["loaded_processes", "slow_command", "started_command"]

PRELOADED = (
    *("pytest", "hypothesis", "sklearn.decomposition", "sklearn.feature_extraction.text"),
    *("lors.cli", "lors.comparison.run", "lors.encoders.lsa", "lors.matching.trajectory"),
    "lors.show.report",
)


class LoadedProcess(ForkServerProcess):
    """A fork of a server that has imported all, with the environment of whoever starts it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._environment = dict(os.environ)

    def run(self) -> None:
        os.environ.clear()  # that of the server is from when it started
        os.environ.update(self._environment)
        devices.prepare()
        super().run()


class _Context(ForkServerContext):
    Process = LoadedProcess


def loaded_processes() -> ForkServerContext:
    """What starts them, in place of ``multiprocessing.get_context(…)``."""
    context = _Context()
    context.set_forkserver_preload(list(PRELOADED))
    return context


@contextmanager
def started_command(
    said: Path, *words: str | Path, file_size: int | None = None, folder: Path = Path()
) -> Iterator[ForkServerProcess]:
    """A command of lors in the background; it is killed if it still runs after the block.

    Iterations after the fifth take a second, so that a signal comes before the last on any machine.

    Args:
        said: the file for what it prints.
        words: of the command.
        file_size: the limit that the system puts on files.
        folder: where it works, and from which Python does not import by itself.
    """
    process = loaded_processes().Process(
        target=_command, args=(said.resolve(), list(map(str, words)), file_size, folder.resolve())
    )
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _command(said: Path, words: list[str], file_size: int | None, folder: Path) -> None:
    os.chdir(folder)
    tests = Path(__file__).parent  # pytest adds folders of tests, which no user has
    places = {path: Path(path) for path in sys.path if path}
    sys.path[:] = [
        path
        for path, place in places.items()
        if place != folder and tests not in (place, *place.parents)
    ]
    with said.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    slow_command(words)


def slow_command(words: list[str]) -> None:
    """A command of lors in this process, at most one iteration a second after the fifth."""
    from lors.__main__ import main
    from lors.distillation.loop import Distillation
    from lors.matching.matcher import Matcher

    step = Distillation.step

    def slow_step(self: Distillation, matcher: Matcher) -> float:
        if self.iteration >= 5:
            time.sleep(1)
        return step(self, matcher)

    Distillation.step = slow_step  # type: ignore[method-assign]
    sys.argv = ["lors", *words]
    main()
