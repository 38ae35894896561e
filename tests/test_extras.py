"""Without any extra, every command works or names the one that it lacks, with the line for pip."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import typer

MODULES = {
    *("IPython", "datasets", "matplotlib", "open_clip", "pandas", "pyarrow"),
    *("tensorboard", "transformers", "wandb"),
}
"""What the extras bring; ``tests/test_source.py`` says that they are imported lazily."""

HUB = ["data.source=huggingface", "data.name=owner/name"]
BERT, CLIP = "encoder.text=transformers:owner/name", "encoder.text=open_clip:ViT-B-32/openai"
TABLE = ["data.root=.", "data.annotations.images=x.parquet", "data.annotations.texts=x.parquet"]
SHARDS = ["data.source=webdataset", "data.root=.", "data.annotations={train: x.tar}"]

LACKING = {
    "distill": [
        (["distill", "tiny", *HUB], "huggingface"),
        (["distill", "tiny", BERT], "transformers"),
        (["distill", "tiny", CLIP], "open_clip"),
        (["distill", "tiny", "trackers=tensorboard"], "tensorboard"),
        (["distill", "tiny", "trackers=wandb"], "wandb"),
        (["distill", "features", *TABLE], "huggingface"),
    ],
    "select": [(["select", "random", "features", *TABLE], "huggingface")],
    "experts": [(["experts", "tiny", BERT], "transformers")],
    "encode": [(["encode", "tiny", *SHARDS, CLIP, "--out", "shards"], "open_clip")],
    "evaluate": [(["evaluate", "run/distilled.safetensors", *HUB], "huggingface")],
    "compare": [
        (["compare", "tiny", "--methods", "random", "--budgets", "8", BERT], "transformers")
    ],
    "figure": [(["figure", "spectrum", "run"], "figures")],
    "plan": [(["plan", "tiny", CLIP], "open_clip")],
    "check": [(["check", "tiny", *HUB], "huggingface")],
    "analyze": [(["analyze", "variance", "tiny", *HUB], "huggingface")],
}
"""By command: calls that lack an extra, and its name."""

WORKING = {
    "report": ["report", "run"],
    "export": ["export", "run", "--out", "export"],
    "info": ["info", "run"],
    "presets": ["presets", "tiny"],
    "settings": ["settings", "distill"],
    "check": ["check", "tiny"],
    "doctor": ["doctor"],
    "analyze": ["analyze", "spectrum", "run"],
}

ELSEWHERE = {"audit", "import", "merge", "push", "search", "serve", "use"}
"""Commands that need no extra of their own and are tested elsewhere."""


class WithoutExtras(PathFinder):
    """Finds what is installed, but not the modules of the extras."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.partition(".")[0] in MODULES:
            return None
        return super().find_spec(fullname, path, target)


def commands_without_extras(commands: list[list[str]]) -> list[tuple[Any, str]]:
    """The exit code and the output of each command, in a process that cannot import extras."""
    sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutExtras
    from lors.cli import main

    answers = []
    for words in commands:
        sys.argv = ["lors", *words]
        code: Any = 0
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                main()
            except SystemExit as end:
                code = end.code
            except Exception as error:
                code = repr(error)
        answers.append((code, output.getvalue()))
    return answers


def answers_without_extras(tiny_run: Path, folder: Path) -> dict[str, tuple[Any, str]]:
    """The exit code and the output of every command above, by its words."""
    calls = [words for rows in LACKING.values() for words, _ in rows] + list(WORKING.values())
    shutil.copytree(tiny_run, folder / "run")
    (folder / "x.parquet").write_bytes(b"PAR1")
    tarfile.open(folder / "x.tar", "w").close()
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(calls),
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {" ".join(call): each for call, each in zip(calls, json.loads(done.stdout), strict=True)}


def test_every_command_is_tried() -> None:
    from lors.cli import app

    assert set(typer.main.get_command(app).commands) == {*LACKING, *WORKING, *ELSEWHERE}  # type: ignore[attr-defined]


def test_a_command_works_or_names_the_extra_that_it_lacks(tiny_run: Path, tmp_path: Path) -> None:
    """One process asks for all of them, because torch takes seconds to load."""
    answers = answers_without_extras(tiny_run, tmp_path)
    for words, extra in (row for rows in LACKING.values() for row in rows):
        code, output = answers[" ".join(words)]
        assert code == 2, output
        (error,) = (line for line in output.splitlines() if line.startswith("error: "))
        assert error.endswith(f": pip install 'lors[{extra}]'")
    for words in WORKING.values():
        code, output = answers[" ".join(words)]
        assert code == 0, output


if __name__ == "__main__":
    json.dump(commands_without_extras(json.load(sys.stdin)), sys.stdout)
