"""Two ranks against one process, one thread each, by turns: experts and distillation.

    python benchmarks/ranks.py --preset demo --rounds 5

Three processes are started once: one that works alone and two that work together over gloo. In
each round the one and then the two train the same experts and run the same iterations, so that
whatever else the machine does slows both. The ratio is that of experts, or of trajectories, per
second. Also times messages of several sizes between the two. Prints tables and JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lors.experts import experts_of
from lors.matching import matcher_of
from lors.setting import setting_of
from lors.starts import start_pairs

EXPERTS, ITERATIONS = 4, 10
NUMBERS = (1_000, 100_000, 1_000_000, 10_000_000)
"""In the messages."""


def work(rank: int, size: int, port: int, preset: str, folder: str, orders: Connection) -> None:
    """Do what is ordered, and answer with its seconds."""
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        GLOO_SOCKET_IFNAME="lo",
    )
    import torch

    from lors.system import ranks

    torch.set_num_threads(1)
    with ranks.joined():
        tasks = _tasks(preset, folder)
        while (order := orders.recv()) is not None:
            name, turn = order
            ranks.gather(None)  # ranks begin together
            begun = time.perf_counter()
            tasks[name](turn)
            ranks.gather(None)
            orders.send(time.perf_counter() - begun)


def _tasks(preset: str, folder: str) -> dict[str, Callable[[int], object]]:
    """What is timed; the turn makes the folder of experts a new one."""
    import torch

    from lors.config import load_config
    from lors.distillation.loop import Distillation
    from lors.system import ranks

    settings = [f"experts.count={EXPERTS}", "experts.epochs=5", "distill.trajectories=2"]
    bench = setting_of(load_config(preset, settings))
    experts_of(bench)
    matcher = matcher_of(bench)
    state = Distillation(start_pairs(bench), bench.config.distill, 0)

    def train(turn: int) -> None:
        where = Path(folder) / f"{turn}-{ranks.size()}"
        lean = [*settings, f"experts.folder={where}"]
        config = load_config(preset, lean)
        bench.config = config.model_copy(update={"encoder": bench.config.encoder})
        experts_of(bench)

    def distil(turn: int) -> None:
        for _ in range(ITERATIONS):
            state.step(matcher)
            ranks.any_of(False)

    def message(numbers: int) -> Callable[[int], None]:
        sums = [torch.zeros(numbers)]

        def send(turn: int) -> None:
            for _ in range(ITERATIONS):
                ranks.all_reduce(sums)

        return send

    messages = {f"message {numbers}": message(numbers) for numbers in NUMBERS}
    return {"experts": train, "distillation": distil, **messages}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ends, processes = [], []
        for rank, size in ((0, 1), (0, 2), (1, 2)):
            ours, theirs = spawn.Pipe()
            given = (rank, size, port, arguments.preset, folder, theirs)
            processes.append(spawn.Process(target=work, args=given))
            processes[-1].start()
            ends.append(ours)
        alone, together = ends[:1], ends[1:]
        seconds: dict[str, list[list[float]]] = {}
        for turn in range(arguments.rounds + 1):  # the first is not counted: it fills caches
            for name in ("experts", "distillation", *(f"message {n}" for n in NUMBERS)):
                groups = (together,) if name.startswith("message") else (alone, together)
                took = [_ordered(group, (name, turn)) for group in groups]
                if turn:
                    seconds.setdefault(name, []).append(took)
        for end in ends:
            end.send(None)
        for process in processes:
            process.join()
    _show(arguments.preset, seconds)


def _ordered(group: list[Connection], order: tuple[str, int]) -> float:
    for end in group:
        end.send(order)
    return max(end.recv() for end in group)


def _show(preset: str, seconds: dict[str, list[list[float]]]) -> None:
    table = Table("", "one process", "two ranks", "times the throughput", title=preset)
    found: dict[str, Any] = {"preset": preset}
    units = {"experts": EXPERTS, "distillation": 2 * ITERATIONS}
    for name, unit in units.items():
        one, two = (statistics.median(times) for times in zip(*seconds[name], strict=True))
        ratio = statistics.median(a / b for a, b in seconds[name])
        what = "experts" if name == "experts" else "trajectories"
        table.add_row(
            name, f"{unit / one:.3g} {what}/s", f"{unit / two:.3g} {what}/s", f"{ratio:.2f}"
        )
        found[name] = {"one_s": one, "two_s": two, "ratio": ratio}
    Console().print(table)
    messages = Table("bytes", "milliseconds", title="a sum over two ranks")
    for numbers in NUMBERS:
        each = statistics.median(took[0] for took in seconds[f"message {numbers}"]) / ITERATIONS
        messages.add_row(f"{4 * numbers:,}", f"{1000 * each:.2f}")
        found.setdefault("messages", []).append([4 * numbers, each])
    Console().print(messages)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
