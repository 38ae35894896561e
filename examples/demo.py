"""Distil the built-in scenes, and check that the methods do what we say they do.

Two claims are checked, and the demo ends with an error if one does not hold:

1. LoRS does what its paper says. With an image trunk that trains along, it beats random pairs of
   equal storage, tuned on val, by half as much again, and the same run without a learned similarity
   by a clear margin.
2. Hindsight reaches 80 % of the full data with 3 % of the pairs, on features of a trunk that was
   trained on the training images and then frozen.

Run it with ``make demo``. It ends with a page to look at and to search in.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from demo_page import write_demo_page
from rich.live import Live
from rich.table import Table

from lors.cli.app import console
from lors.config import load_config
from lors.data import load_pairs
from lors.evaluation.recall import chance
from lors.evaluation.results import Row
from lors.runs.folders import saved_results
from lors.share.search.server import open_in_browser

TRAINED, FROZEN = "the image trunk trains along", "heads on a frozen image trunk"
LORS = [sys.executable, "-m", "lors"]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
RUNS = Path("runs")
DEMO, TWIN, HINDSIGHT = RUNS / "demo", RUNS / "demo-identity", RUNS / "demo-hindsight"
TRUNK, PAGE = RUNS / "demo-trunk.safetensors", RUNS / "demo.html"

COMMANDS: dict[str, list[list[str | Path]]] = {
    "LoRS": [["distill", "demo", "--out", DEMO]],
    "Hindsight": [
        ["experts", "demo", "experts.count=1", "experts.epochs=30", "--trunk", TRUNK],
        ["distill", "scenes-hindsight-60", f"encoder.image_weights={TRUNK}", "--out", HINDSIGHT],
    ],
    "LoRS with S = I": [
        ["distill", "demo", "similarity.kind=identity", "--no-references", "--out", TWIN],
    ],
}
"""What runs, two jobs at a time: one for each of two cores."""


def main() -> None:
    begun = time.monotonic()
    RUNS.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        jobs = {name: pool.submit(run_all, name) for name in COMMANDS}
        show_until_done(jobs)
    for job in jobs.values():
        job.result()

    chance_level = chance_of_test()
    trained, frozen = measured()
    console.print(recall_table({TRAINED: trained, FROZEN: frozen}, chance_level))
    page = write_demo_page(DEMO, HINDSIGHT, PAGE, {TRAINED: trained, FROZEN: frozen}, chance_level)
    lors, twin, random, _ = (row.mean for row in trained.values())
    hindsight, full = frozen["Hindsight"], frozen["full data"]
    reached, storage = hindsight.mean / full.mean, hindsight.storage / full.pairs
    sentences = (
        f"LoRS: {lors / random:.1f} times random pairs, {lors / twin:.1f} times S = I.",
        f"Hindsight: {100 * reached:.0f} % of the full data's recall with {100 * storage:.1f} % of "
        "its storage.",
        f"It took {time.monotonic() - begun:.0f} s. The page to look at, and to search in: {page}",
    )
    console.print("\n".join(sentences), soft_wrap=True)
    if lors < 1.5 * random or lors < 1.1 * twin or reached < 0.8 or storage > 0.05:
        sys.exit("that is less than it should be")
    open_in_browser(page.resolve().as_uri())


def log_of(name: str) -> Path:
    return RUNS / f"demo-{name.lower().replace(' ', '-').replace('=', 'is')}.log"


def run_all(name: str) -> None:
    """Run the commands of a job, and write what they say to its log."""
    with log_of(name).open("w", encoding="utf-8") as log:
        for command in COMMANDS[name]:
            done = subprocess.run(
                [*LORS, *command], env=ONE_THREAD, stdout=log, stderr=subprocess.STDOUT, check=False
            )
            if done.returncode:
                text = log_of(name).read_text("utf-8", "replace")
                sys.exit(f"{name} failed:\n{text[-2000:]}")


def show_until_done(jobs: dict[str, Future[None]]) -> None:
    """Show the last line of each log; where output is no terminal, say when a job is done."""
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        told: set[str] = set()
        while len(told) < len(jobs):
            table = Table.grid(padding=(0, 2))
            for name, job in jobs.items():
                state = ("failed" if job.exception() else "done") if job.done() else ""
                table.add_row(name, state or last_line(name))
                if state and name not in told:
                    told.add(name)
                    console.print(f"{name}: {state}")
            live.update(table)
            time.sleep(0.5)


def last_line(name: str) -> str:
    try:
        lines = log_of(name).read_text("utf-8", "replace").split("\n")
    except FileNotFoundError:
        return "waiting"
    said = [line for line in lines if line[:1].isdigit()]
    return said[-1] if said else "starting"


def measured() -> tuple[dict[str, Row], dict[str, Row]]:
    """What was reached with a trunk that trains along, and on the features of a frozen one."""
    demo, hindsight = saved_results(DEMO), saved_results(HINDSIGHT)
    trained = {
        "LoRS": demo.distilled,
        "LoRS with S = I": saved_results(TWIN).distilled,
        "random pairs": demo.random_pairs,
        "full data": demo.full_data,
    }
    frozen = {
        "Hindsight": hindsight.distilled,
        "random pairs": hindsight.random_pairs,
        "full data": hindsight.full_data,
    }
    return trained, frozen


def chance_of_test() -> float:
    """The mean recall of a random ranking of the test split."""
    config = load_config("demo")
    return chance(load_pairs(config.data, config.encoder.size()).splits["test"].owner).mean


def recall_table(groups: dict[str, dict[str, Row]], chance_level: float) -> Table:
    table = Table("", title="Mean recall on 250 test scenes (%)")
    for column in ("storage in pairs", "mean recall", "of full data"):
        table.add_column(column, justify="right")
    for title, rows in groups.items():
        table.add_row(f"[italic]{title}[/]")
        for name, row in rows.items():
            share = f"{100 * row.mean / rows['full data'].mean:.0f} %"
            style = "bold" if name in ("LoRS", "Hindsight") else ""
            table.add_row(name, f"{row.storage:,.0f}", str(row.recall.mean), share, style=style)
        table.add_section()
    table.add_row("chance", "", f"{chance_level:.1f}", "")
    return table


if __name__ == "__main__":
    main()
