"""End the chain at random moments, again and again, and compare what it ends with.

Experts, a distillation and a comparison of the smallest preset run once undisturbed. Then each is
started, ended by a random signal (SIGKILL, SIGTERM, SIGINT or SIGHUP) after a random time, and
started again with the same command, for longer and longer, until it ends by itself; what it leaves
must have the bits of the undisturbed one. Most processes are forked from this one, which has
imported everything; those of the stage ``import`` start from nothing, so that imports are hit, too.

Ends with an error if there are other bits, another exit code, or a traceback.

    python benchmarks/soak.py --kills 300
    python benchmarks/soak.py --kills 1000000 --minutes 600
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import lors.comparison  # what the commands import late: forked processes find it there
import lors.show.report  # noqa: F401
from lors.__main__ import main as command
from lors.files.artifacts import open_artifact
from lors.runs.folders import SET

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
PATIENCE = 300
"""Seconds until a process that was asked to end, and has not, counts as stuck."""

SETTINGS = ["tiny", "experts.count=2", "experts.epochs=6", "distill.iterations=40"]
SETTINGS += ["distill.checkpoint_every=5", "distill.evaluate_every=10", "evaluate.seeds=1"]


@dataclass(frozen=True)
class Stage:
    """A command, and the files that it must leave.

    Args:
        name: of the stage.
        command: of lors.
        arguments: beyond the settings.
        result: reads what counts from the folder of the stage.
        fresh: whether each process imports everything anew.
    """

    name: str
    command: str
    arguments: list[str]
    result: Callable[[Path], str]
    fresh: bool = False


def tensors(*paths: Path) -> str:
    """A digest of all tensors of these artefacts."""
    if not paths:
        sys.exit("nothing is left to compare")
    digest = hashlib.sha256()
    for path in sorted(paths):
        with open_artifact(path) as (_, handle):
            for name in sorted(handle.keys()):
                digest.update(name.encode() + handle.get_tensor(name).numpy().tobytes())
    return digest.hexdigest()


def experts(folder: Path) -> str:
    return tensors(*(folder / "home").glob("experts/*/expert-*.safetensors"))


def comparison(folder: Path) -> str:
    """The sets of a comparison, and its rows without their time and memory."""
    with (folder / "out" / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    sets = tensors(*(folder / "out").glob(f"runs/*/{SET}"))
    costs = {"seconds", "seconds_per_iteration", "gigabytes"}
    return sets + str([{k: v for k, v in row.items() if k not in costs} for row in rows])


COMPARE = ["--methods", "random,lors-wbce", "--budgets", "8", "--seeds", "1", "--jobs", "1"]


def distilled(folder: Path) -> str:
    return tensors(folder / "out" / SET)


STAGES = [
    Stage("experts", "experts", [], experts),
    Stage("distill", "distill", ["--no-references"], distilled),
    Stage("compare", "compare", COMPARE, comparison),
    Stage("import", "distill", ["--no-references"], distilled, fresh=True),
]


def start(stage: Stage, folder: Path) -> int:
    """The command in a process of its own; what it says of errors is kept in ``errors``."""
    folder.mkdir(parents=True, exist_ok=True)
    process = os.fork()
    if process:
        return process
    for number in SIGNALS:  # a shell may have started this program so that it ignores some
        signal.signal(number, signal.SIG_DFL)
    os.environ["LORS_HOME"] = str(folder / "home")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(folder / "errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    out = [] if stage.command == "experts" else ["--out", str(folder / "out")]
    words = [stage.command, *SETTINGS, *stage.arguments, *out]
    if stage.fresh:
        os.execv(sys.executable, [sys.executable, "-m", "lors", *words])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as Python does when it starts
    sys.argv = ["lors", *words]
    code = 0
    try:
        command()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 70
    os._exit(code)


def undisturbed(stage: Stage, folder: Path) -> tuple[str, float]:
    """What a stage leaves when nothing happens to it, and how long it takes."""
    begun = time.monotonic()
    _, status = os.waitpid(start(stage, folder), 0)
    if status:
        sys.exit(f"{stage.name} fails by itself")
    return stage.result(folder), time.monotonic() - begun


def code_within(process: int, seconds: float) -> int | None:
    """The exit code of a process, negative after a signal; none if it has not ended by then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return None


def ended_by(number: signal.Signals, process: int, seconds: float, errors: Path) -> bool:
    """Send a process a signal after some time; false if it had ended well by then.

    It may also be about to end well, and then does, or be loading, and then ends by the signal.
    """
    code = code_within(process, seconds)
    if code is None:
        os.kill(process, number)
        code = code_within(process, PATIENCE)
        if code not in (0, -number, 128 + number):
            sys.exit(f"it ended with {code} after {number.name}:\n{errors.read_text()}")
    elif code:
        sys.exit(f"it failed by itself with {code}:\n{errors.read_text()}")
    if "Traceback" in errors.read_text():
        sys.exit(f"a traceback after {number.name}:\n{errors.read_text()}")
    return code != 0


def table(kills: Counter[tuple[str, str]], rounds: Counter[str]) -> Table:
    names = [number.name for number in (signal.SIGKILL, *SIGNALS)]
    shown = Table("stage", *names, "ended with the same bits")
    for stage in rounds:
        counts = [str(kills[stage, name]) for name in names]
        shown.add_row(stage, *counts, f"{rounds[stage]} of {rounds[stage]}")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100, help="stop after so many")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="or after so long")
    names = [stage.name for stage in STAGES]
    parser.add_argument("--stages", nargs="+", choices=names, default=names)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    draw, rounds = random.Random(wanted.seed), Counter[str]()
    kills = Counter[tuple[str, str]]()
    end = time.monotonic() + 60 * wanted.minutes
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        stages = [stage for stage in STAGES if stage.name in wanted.stages]
        expected = [undisturbed(stage, root / f"{stage.name}-whole") for stage in stages]
        spent = [0.0] * len(stages)
        while kills.total() < wanted.kills and time.monotonic() < end:
            turn = spent.index(min(spent))  # each stage gets about the same time
            stage, (right, seconds) = stages[turn], expected[turn]
            folder, begun, limit = root / "disturbed", time.monotonic(), 0.3 * seconds
            while True:
                process, after = start(stage, folder), draw.uniform(0, limit)
                number = draw.choice((signal.SIGKILL, *SIGNALS))
                if not ended_by(number, process, after, folder / "errors"):
                    break
                kills[stage.name, number.name] += 1
                limit *= 1.1  # it must end, also if the machine is busier than at the start
            if stage.result(folder) != right:
                sys.exit(f"{stage.name} ended with other bits after {kills}")
            rounds[stage.name] += 1
            spent[turn] += time.monotonic() - begun
            shutil.rmtree(folder)
            print(f"{kills.total()} kills, {dict(rounds)}", flush=True)
    Console().print(table(kills, rounds))


if __name__ == "__main__":
    main()
