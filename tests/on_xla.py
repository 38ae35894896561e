"""A run of every matcher on XLA, against the CPU: ``make test-xla``, which takes minutes.

Not a part of the suite: it needs ``torch_xla``, in an environment of its own, and XLA compiles
every program that it meets for seconds. Give names of ``CASES`` to run only those.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from lors.config import load_config
from lors.evaluation.protocol import measure, train_on
from lors.setting import setting_of
from lors.starts import start_pairs
from tests.test_devices import CASES, HEADS, SMALL, learned, ran

TOLERANCE = 1e-3
RELATION = 1e-2
"""Of relational matching: rounding turns its singular vectors, on the CPU, too."""
FEWEST = ["matching.steps=2", "evaluate.epochs=2", "evaluate.batch_size=4"]


def off(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


def losses_off(name: str) -> float:
    """How far the losses of two iterations are from those on the CPU."""
    fewest = FEWEST[:1] if "kind=" not in " ".join(CASES[name]) else []
    found = [ran(device, [*CASES[name], *fewest]) for device in ("xla", "cpu")]
    for each in found:
        if each.error:
            raise RuntimeError(each.error)
    return off(*(torch.tensor(each.losses) for each in found))


def resume_off() -> float:
    """How far a set is off that was learned on the CPU, then on XLA, then on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        ours = learned(("cpu", "xla", "cpu"), Path(folder) / "moved.safetensors")
        theirs = learned(["cpu"] * 3, Path(folder) / "cpu.safetensors")
    return max(off(ours[name], theirs[name]) for name in ours)


def evaluation_off() -> float:
    """How far the recall of a network is off that was trained on a set there."""
    recalls = []
    for device in ("xla", "cpu"):
        setting = setting_of(load_config("tiny", [f"device={device}", *SMALL, *HEADS, *FEWEST]))
        config, pairs = setting.config, start_pairs(setting)
        model = train_on(pairs, setting.model(0), setting.loss, config.evaluate, 0)
        recalls.append(measure(model, setting.real["val"]).mean)
    return abs(recalls[0] / recalls[1] - 1)


def main(names: list[str]) -> int:
    """Print how far each case is off; 1 if one is too far."""
    torch.zeros(1, device="xla").item()  # before the first backward pass on the CPU
    checks: dict[str, Callable[[], float]] = {n: partial(losses_off, n) for n in CASES}
    checks |= {"resume": resume_off, "evaluation": evaluation_off}
    worst = 0
    for name in names or checks:
        begun = time.monotonic()
        try:
            found = checks[name]()
            limit = RELATION if name == "relation" else TOLERANCE
            line, bad = f"off by {found:.1e}", not found < limit
        except Exception as error:
            line, bad = f"{type(error).__name__}: {str(error).strip()[-300:]}", True
        worst |= bad
        seconds = time.monotonic() - begun
        print(f"{'FAILED' if bad else 'ok':7}{name:24}{line} ({seconds:.0f} s)", flush=True)
    return worst


if __name__ == "__main__":
    importlib.import_module("torch_xla")  # which makes the device known
    sys.exit(main(sys.argv[1:]))
