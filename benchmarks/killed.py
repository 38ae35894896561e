"""One of two ranks killed in the middle of every command that torchrun can start.

    python benchmarks/killed.py

For each command: one process does it and gives the expected result; torchrun starts two ranks, one
of which gets SIGKILL while they are at work; the seconds until torchrun has ended in error are
taken; then the same command is run again and must end with the expected result. One case more lets
torchrun restart the ranks by itself (``--max-restarts``). Prints a table and JSON; ends in error if
anything was otherwise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np
import psutil
import torch
import transformers
from PIL import Image
from rich.console import Console
from rich.table import Table

from lors.files.artifacts import load
from lors.runs.folders import saved_results

SMALL = ["experts.epochs=20", "experts.count=4", "evaluate.seeds=4", "evaluate.epochs=200"]
LIMIT = 300


@dataclass
class Case:
    """A command and how to see that it is at work and what came out.

    Args:
        name: of the command.
        words: its arguments; OUT stands for the folder of the run.
        at_work: whether the ranks in a folder, with a home, are in the middle of it.
        result: what must be the same as that of one process.
        options: of torchrun.
        before: makes what the command needs.
    """

    name: str
    words: list[str]
    at_work: Callable[[Path, Path], bool]
    result: Callable[[Path, Path], object]
    options: list[str] = field(default_factory=list)
    before: Callable[[Path, Path], None] = lambda out, home: None


def experts_begun(out: Path, home: Path) -> bool:
    return len(list(home.glob("experts/*/unfinished-*/epoch-0003.safetensors"))) > 0


def expert_numbers(out: Path, home: Path) -> list[float]:
    files = sorted(home.glob("experts/*/expert-*.safetensors"))
    return [load(path, "trajectory")[1]["theta"].double().sum().item() for path in files]


def set_numbers(out: Path, home: Path) -> list[float]:
    tensors = load(out / "distilled.safetensors", "distilled set")[1]
    return [tensors[name].double().sum().item() for name in ("images", "texts")]


def recalls(out: Path, home: Path) -> object:
    return {name: round(row.mean, 1) for name, row in saved_results(out).rows.items()}


def after(seconds: float) -> Callable[[Path, Path], bool]:
    """At work since this long after its experts were there."""
    since: dict[Path, float] = {}

    def at_work(out: Path, home: Path) -> bool:
        if (out / "config.yaml").exists() or any(out.glob("runs/*/config.yaml")):
            since.setdefault(out, time.monotonic())
        return out in since and time.monotonic() - since[out] > seconds

    return at_work


def distil_first(out: Path, home: Path) -> None:
    """A set to evaluate."""
    words = ["tiny", "distill.iterations=2", "--no-references", "--out", str(out)]
    run_one(["distill", *words], home)


def write_tars(out: Path, home: Path) -> None:
    """Shards to encode, and a small text trunk."""
    rng = np.random.default_rng(0)
    (out / "bert").mkdir(parents=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "red", "circle"]
    (out / "bert/vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(out / "bert/vocab.txt")).save_pretrained(out / "bert")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    bert = transformers.BertConfig(vocab_size=len(words), intermediate_size=32, **sizes)
    torch.manual_seed(0)
    transformers.BertModel(bert).save_pretrained(out / "bert")
    for number in range(8):
        with tarfile.open(out / f"train-{number}.tar", "w") as tar:
            for key in range(100):
                image, file = (
                    Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)),
                    BytesIO(),
                )
                image.save(file, "png")
                for kind, data in (("png", file.getvalue()), ("txt", b"a red circle")):
                    member = tarfile.TarInfo(f"{key:03d}.{kind}")
                    member.size = len(data)
                    tar.addfile(member, BytesIO(data))


def shard_numbers(out: Path, home: Path) -> list[float]:
    files = sorted((out / "embeddings").glob("train/images-*.npy"))
    return [float(np.load(path, allow_pickle=False).sum()) for path in files]


def cases() -> list[Case]:
    distil = [*SMALL, "distill.iterations=300", "distill.trajectories=2"]
    distil += ["distill.evaluate_every=0", "evaluate.seeds=1", "--no-references", "--out", "OUT"]
    shards = ["data.source=webdataset", "data.root=OUT"]
    shards += ["data.annotations.train=train-{0..7}.tar"]
    trunks = ["encoder.image=nf_resnet_tiny", "encoder.image_size=32"]
    trunks += ["encoder.text=transformers:OUT/bert"]
    return [
        Case("experts", ["tiny", *SMALL], experts_begun, expert_numbers),
        Case(
            "experts",
            ["tiny", *SMALL],
            experts_begun,
            expert_numbers,
            ["--max-restarts", "2"],
        ),
        Case(
            "distill",
            ["tiny", *distil],
            lambda out, home: _lines(out / "metrics.jsonl") > 20,
            set_numbers,
        ),
        Case(
            "evaluate",
            ["OUT/distilled.safetensors", "evaluate.seeds=8", "evaluate.epochs=400"],
            after(25),
            lambda out, home: None,  # it writes nothing: that it ends is all
            before=distil_first,
        ),
        Case(
            "encode",
            ["features", "--out", "OUT/embeddings", *shards, *trunks],
            lambda out, home: len(list(out.glob("embeddings/train/images-*.npy"))) > 1,
            shard_numbers,
            before=write_tars,
        ),
        Case("select", ["herding", "tiny", *SMALL, "--out", "OUT"], after(2), recalls),
        Case(
            "compare",
            ["tiny", *SMALL, "--methods", "random,lors-wbce", "--seeds", "2", "--out", "OUT"],
            after(2),
            lambda out, home: (out / "table.md").read_text(),
        ),
    ]


def _lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def command(case: Case, out: Path, home: Path, ranks: int) -> tuple[list[str], dict[str, str]]:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    launch += case.options
    words = [word.replace("OUT", str(out)) for word in case.words]
    line = [sys.executable, *(launch if ranks > 1 else []), "-m", "lors", case.name, *words]
    return line, _environment(home)


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "LORS_HOME": str(home), "OMP_NUM_THREADS": "1"}


def run_one(words: list[str], home: Path) -> None:
    line = [sys.executable, "-m", "lors", *words]
    subprocess.run(line, env=_environment(home), check=True, capture_output=True, timeout=LIMIT)


def finish(case: Case, out: Path, home: Path, ranks: int) -> object:
    line, environment = command(case, out, home, ranks)
    subprocess.run(line, env=environment, check=True, capture_output=True, timeout=2 * LIMIT)
    return case.result(out, home)


def kill_one(case: Case, out: Path, home: Path) -> tuple[int, float]:
    """torchrun's exit code, and its seconds from the kill to the end."""
    line, environment = command(case, out, home, 2)
    with subprocess.Popen(
        line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as torchrun:
        end = time.monotonic() + LIMIT
        while not case.at_work(out, home):
            assert torchrun.poll() is None, f"{case.name} ended before it could be killed"
            assert time.monotonic() < end, f"{case.name} did not get to work"
            time.sleep(0.02)
        victim = psutil.Process(torchrun.pid).children()[1]
        victim.kill()
        begun = time.monotonic()
        code = torchrun.wait(LIMIT)
        return code, time.monotonic() - begun


def same(found: object, expected: object) -> bool:
    if isinstance(found, list) and isinstance(expected, list):
        ours, theirs = (torch.tensor(v, dtype=torch.float64) for v in (found, expected))
        return torch.allclose(ours, theirs, rtol=1e-3)
    return found == expected


def main() -> None:
    table = Table("command", "exit code", "seconds to the end", "same result in the end")
    rows = []
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            where = Path(folder)
            case.before(where / "one", where / "home of one")
            case.before(where / "two", where / "home of two")
            expected = finish(case, where / "one", where / "home of one", 1)
            code, seconds = kill_one(case, where / "two", where / "home of two")
            found = finish(case, where / "two", where / "home of two", 2)
        restarts = "--max-restarts" in case.options
        name = case.name + (", restarted by torchrun" if restarts else "")
        ended_as_it_should = (code == 0) == restarts
        rows.append(
            {
                "command": name,
                "exit_code": code,
                "seconds": round(seconds, 1),
                "same": same(found, expected),
            }
        )
        table.add_row(*map(str, rows[-1].values()))
        assert ended_as_it_should, rows[-1]
        assert rows[-1]["same"], (rows[-1], found, expected)
        print(rows[-1], flush=True)
    Console().print(table)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
