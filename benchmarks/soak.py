"""Kill the chain at random moments, again and again, and compare what it ends with.

Experts, a distillation and a comparison of the smallest preset run once undisturbed. Then each is
started, killed with SIGKILL after a random time, and started again with the same command, for
longer and longer, until it ends by itself; what it leaves must have the bits of the undisturbed
one. Ends with an error if not.

    python benchmarks/soak.py --kills 100
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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

import lors.compare  # what the commands import late: forked processes find it there
import lors.report  # noqa: F401
from lors.artifacts import open_artifact
from lors.cli import main as command
from lors.folders import SET

SETTINGS = ["tiny", "experts.count=2", "experts.epochs=6", "distill.iterations=40"]
SETTINGS += ["distill.checkpoint_every=5", "distill.evaluate_every=10", "evaluate.seeds=1"]


@dataclass(frozen=True)
class Stage:
    """A command, and the files that it must leave.

    Args:
        name: of the command.
        arguments: beyond the settings.
        result: reads what counts from the folder of the stage.
    """

    name: str
    arguments: list[str]
    result: Callable[[Path], str]


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
    """The sets of a comparison, and its rows without their seconds."""
    with (folder / "out" / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    sets = tensors(*(folder / "out").glob(f"runs/*/{SET}"))
    return sets + str([{k: v for k, v in row.items() if "second" not in k} for row in rows])


COMPARE = ["--methods", "random,lors-wbce", "--budgets", "8", "--seeds", "1", "--jobs", "1"]
STAGES = [
    Stage("experts", [], experts),
    Stage("distill", ["--no-references"], lambda folder: tensors(folder / "out" / SET)),
    Stage("compare", COMPARE, comparison),
]


def start(stage: Stage, folder: Path) -> int:
    """The command in a process of its own, forked so that it need not import everything anew."""
    process = os.fork()
    if process:
        return process
    os.environ["LORS_HOME"] = str(folder / "home")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    out = [] if stage.name == "experts" else ["--out", str(folder / "out")]
    sys.argv = ["lors", stage.name, *SETTINGS, *stage.arguments, *out]
    code = 0
    try:
        command()
    except SystemExit as end:
        code = int(end.code or 0)
    os._exit(code)


def undisturbed(stage: Stage, folder: Path) -> tuple[str, float]:
    """What a stage leaves when nothing happens to it, and how long it takes."""
    begun = time.monotonic()
    _, status = os.waitpid(start(stage, folder), 0)
    if status:
        sys.exit(f"{stage.name} fails by itself")
    return stage.result(folder), time.monotonic() - begun


def killed_after(process: int, seconds: float) -> bool:
    """Kill a process after some time; false if it had ended well by then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            if status:
                sys.exit(f"it failed by itself with status {status}")
            return False
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100, help="stop after so many")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="or after so long")
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    draw, kills, rounds = random.Random(wanted.seed), Counter[str](), Counter[str]()
    end = time.monotonic() + 60 * wanted.minutes
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        expected = {stage.name: undisturbed(stage, root / f"{stage.name}-0") for stage in STAGES}
        while kills.total() < wanted.kills and time.monotonic() < end:
            for stage in STAGES:
                right, seconds = expected[stage.name]
                folder = root / stage.name
                limit = 0.3 * seconds
                while killed_after(start(stage, folder), draw.uniform(0, limit)):
                    kills[stage.name] += 1
                    limit *= 1.1  # it must end, also if the machine is busier than at the start
                rounds[stage.name] += 1
                if stage.result(folder) != right:
                    sys.exit(f"{stage.name} ended with other bits after {kills} kills")
                shutil.rmtree(folder)
            print(f"kills {dict(kills)}, ended with the same bits {dict(rounds)}", flush=True)


if __name__ == "__main__":
    main()
