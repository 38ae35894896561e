"""Do two commits make the same bits? For changes that should change nothing.

    python benchmarks/bits.py main~5 .

Runs the same commands with the code of both (``.`` is the code as it is now, with what is not
committed) on one thread each and compares every tensor of every distilled set and expert, every
recall, every selection, and the settings of every preset. Prints what differs; the exit code says
whether anything does. About six minutes per commit on two cores; what a commit made is kept below
``runs/bits``.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "runs" / "bits"

FEATURES = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
FROZEN = ["encoder.scope=heads", "encoder.image_head=linear"]
SHORT = ["evaluate.seeds=1", "evaluate.epochs=4", "distill.iterations=4", "experts.epochs=11"]
DISTILLED = (
    "hindsight,dc,dm,mtt-vl,tesla-nce,tesla-wbce,parallax,lors-bce,lors-ence,lors-wbce,mining-wbce,"
    "covmatch,repblend,amd,ptm-st,mdm,apm,covmatch-lors,mdm-lors,apm-lors,lors-k-means,lors-herding,"
    "lors-cross-covariance,fixed-cross-covariance,lors-r1,lors-diagonal,lors-identity,"
    "lors-fix-image,lors-fix-both"
)
SELECTED = "random,herding,k-center,forgetting,clip-score"
PIXELS = "random,herding,dc,dm,mtt-vl,lors-wbce,covmatch,amd,ptm-st,mdm,parallax"
SCORED = ["scorer=expert", "distill.init=real", "similarity.kind=fixed"]

CASES = {
    "tiny": ["distill", "tiny"],
    "demo": [
        *("distill", "demo", "distill.iterations=4", "experts.count=2", "experts.epochs=5"),
        *("evaluate.seeds=1", "evaluate.epochs=10", "distill.evaluate_every=2"),
    ],
    "features": ["compare", "tiny", *FEATURES, *SHORT, "--methods", f"{DISTILLED},{SELECTED}"],
    "pixels": ["compare", "tiny", *SHORT, "--methods", PIXELS],
    "frozen": ["distill", "tiny", *FROZEN, "distill.trajectories=2"],
    "fixed": ["distill", "tiny", *SCORED, "--no-references"],
    "centroids": ["distill", "tiny", *FEATURES, "distill.init=centroids", "--no-references"],
    "replicas": ["distill", "tiny", "distill.init=replicas", "--no-references"],
    "noise": ["distill", "tiny", "distill.init=noise", "distill.averaging=0.5", "--no-references"],
    "canonical": ["distill", "tiny", *FROZEN, "distill.init=canonical", "--no-references"],
    "unrolled": ["distill", "tiny", "matching.gradient=unrolled", "matching.ratio=separate"],
    "adam": ["distill", "tiny", "distill.optimizer=adam", "distill.schedule=cosine"],
    "compact": ["distill", "tiny", "experts.compact=true", "--no-references"],
    "table": [
        *(
            "compare",
            "--table",
            "pixels",
            "--scale",
            "small",
            "--methods",
            "random,lors-wbce,mtt-vl",
        ),
        *(*SHORT, "data.pairs={train: 300, val: 50, test: 50}", "experts.count=2"),
    ],
}
"""Commands by name; each gets an ``--out`` of its own."""

PRESETS = """
import json
from lors.config import load_config, presets
print(json.dumps({n: json.loads(load_config(n).model_dump_json()) for n in presets()}))
"""

TIMES = ("seconds", "gigabytes", "peak_memory", "versions", "description")
"""Columns and keys whose names begin like this differ from run to run, or say nothing."""


def main() -> None:
    commits = sys.argv[1:]
    if len(commits) != 2:
        sys.exit("give two commits, such as HEAD~1 and . (the files as they are)")
    before, after = (made_by(commit) for commit in commits)
    differing = {name: (before.get(name), after.get(name)) for name in sorted({*before, *after})}
    differing = {name: both for name, both in differing.items() if both[0] != both[1]}
    for name, (old, new) in differing.items():
        print(f"{name}: {old} -> {new}")
    print(f"{len(before)} facts before, {len(after)} after, {len(differing)} differ")
    sys.exit(bool(differing))


def made_by(commit: str) -> dict[str, Any]:
    """Every fact about what the code of a commit makes; those of an earlier call, if there are."""
    if commit == ".":
        return facts(ROOT)
    name = subprocess.check_output(["git", "rev-parse", commit], cwd=ROOT, text=True).strip()
    kept = KEPT / f"{name}-{digest(Path(__file__).read_bytes())}.json"
    if not kept.is_file():
        with tempfile.TemporaryDirectory() as folder:
            tree = str(Path(folder, "tree"))
            subprocess.run(["git", "worktree", "add", "--detach", tree, name], cwd=ROOT, check=True)
            try:
                found = facts(Path(tree))
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found, indent=1))
    return dict(json.loads(kept.read_text()))


def facts(tree: Path) -> dict[str, Any]:
    """What the code below ``tree`` makes, run by run."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree / "src"),
            "OMP_NUM_THREADS": "1",
            "LORS_HOME": f"{folder}/home",
        }

        def run(case: str) -> dict[str, Any]:
            out = Path(folder, case)
            command = [sys.executable, "-m", "lors", *CASES[case], "--out", str(out)]
            command += ["--jobs", "1", "--seeds", "1"] if CASES[case][0] == "compare" else []
            done = subprocess.run(
                command, env=environment, cwd=folder, capture_output=True, text=True
            )
            print(f"{tree.name}: {case} ended with {done.returncode}", file=sys.stderr, flush=True)
            found: dict[str, Any] = {f"{case}: exit code": done.returncode}
            if done.returncode:
                found[f"{case}: error"] = done.stderr[-500:]
            return found | {f"{case}: {name}": fact for name, fact in files(out)}

        command = [sys.executable, "-c", PRESETS]
        text = subprocess.check_output(command, env=environment, cwd=folder, text=True)
        found = {f"preset {name}": fact for name, fact in leaves(json.loads(text))}
        with ThreadPoolExecutor(2) as pool:
            for each in pool.map(run, CASES):
                found |= each
        home = Path(folder, "home")
        experts = sorted(digest(tensors(path)) for path in home.rglob("expert-*.safetensors"))
        return found | {f"experts: {number}": each for number, each in enumerate(experts)}


def files(out: Path) -> Iterator[tuple[str, Any]]:
    """The facts in the files of a run or a comparison."""
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.name == "distilled.safetensors":
            yield name, digest(tensors(path))
        elif path.name == "selection.csv":
            yield name, digest(path.read_bytes())
        elif path.name == "results.csv":
            with path.open(encoding="utf-8") as file:
                for number, row in enumerate(csv.DictReader(file)):
                    yield from ((f"{name} {number} {k}", v) for k, v in leaves(row))
        elif path.name in ("results.json", "full-data.json") and path.parent == out:
            values = json.loads(path.read_text("utf-8"))
            if path.name == "full-data.json":
                values = list(values.values())  # their names hold whole configurations
            values = (
                {k: v for k, v in values.items() if k == "rows"} if "table" in values else values
            )
            yield from ((f"{name} {k}", v) for k, v in leaves(values))
        elif path.name == "metrics.jsonl":
            for number, line in enumerate(path.read_text("utf-8").splitlines()):
                yield from ((f"{name} {number} {k}", v) for k, v in leaves(json.loads(line)))


def leaves(values: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested containers by dotted name, without times."""
    if isinstance(values, dict):
        for key, value in values.items():
            if not str(key).startswith(TIMES):
                yield from leaves(value, f"{name}.{key}" if name else str(key))
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from leaves(value, f"{name}.{number}")
    else:
        yield name, values


def tensors(path: Path) -> bytes:
    """Names, shapes and bits of all tensors of a file; what its header says does not count."""
    with safe_open(path, "pt") as file:
        parts = [(name, file.get_tensor(name)) for name in sorted(file.keys())]
    return b"".join(
        f"{name}{tuple(part.shape)}{part.dtype}".encode()
        + part.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        for name, part in parts
    )


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


if __name__ == "__main__":
    main()
