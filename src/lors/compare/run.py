"""Running a comparison: every cell a run of its own, in parallel, each continued if interrupted."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import psutil
import torch

from lors import artifacts
from lors.baselines import full_data
from lors.compare.results import Record, record_of, write_results
from lors.compare.table import Cell, Table
from lors.config import Config
from lors.errors import LorsError
from lors.evaluate import summarise
from lors.pipeline import SET, evaluate_set, run
from lors.progress import Progress, Silent
from lors.resolve import find_device, resolve
from lors.workbench import Workbench

__all__ = ["compare"]

SHARED = ("data", "encoder", "experts", "evaluate", "device", "dtype")
"""Cells that agree in these share their experts, features and full-data reference."""


def compare(
    table: Table,
    out: str | Path,
    seeds: Sequence[int] = (0, 1, 2),
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Fill a table: run every cell with every seed, and write the results.

    Interrupted, it continues where it stopped; what is finished is not repeated.

    Args:
        table: what to compare.
        out: the folder of the comparison; each run has a folder below it.
        seeds: one run of each cell per seed. Experts are shared by all.
        overrides: settings for all cells.
        jobs: processes at a time; default: as many as cores and memory allow, one on a GPU.
        progress: who to tell.

    Returns:
        One record per cell and seed; also in ``results.csv``, ``results.json``, ``table.md`` and
        ``table.tex`` below ``out``.
    """
    out, progress = Path(out), progress or Silent()
    cells = table.cells(seeds, overrides)
    runs: dict[str, list[Cell]] = {}
    for cell in cells:
        resolve(cell.config)
        runs.setdefault(cell.name, []).append(cell)
    references = _prepare(cells, out, progress)
    jobs = jobs or _affordable(cells[0].config, len(runs))
    threads = max(1, (psutil.cpu_count(logical=False) or 1) // jobs)
    records: list[Record] = []
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_worker, initargs=(threads,))
    with pool:
        pending = [pool.submit(_run, group, out / "runs" / name) for name, group in runs.items()]
        try:
            for done in progress.track(as_completed(pending), "runs", len(pending)):
                records += _collect(done, progress)
                write_results(table, _in_order(records, cells), references, out)
        except BaseException:
            for process in (pool._processes or {}).values():
                process.terminate()
            pool.shutdown(cancel_futures=True)
            raise
    return _in_order(records, cells)


def _worker(threads: int) -> None:
    """Set a worker process up: its share of the cores, and an end when its parent ends."""
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _run(cells: list[Cell], folder: Path) -> list[Record]:
    """One run and all its evaluations. A run that fails is a result too."""
    config = cells[0].config
    try:
        results = run(config, folder, references=False)
        return [_record(cell, results, folder) for cell in cells]
    except LorsError as error:
        return [Record(cell.row, cell.column, cell.seed, failed=str(error)) for cell in cells]


def _record(cell: Cell, results: dict[str, Any], folder: Path) -> Record:
    (row,) = (row for name, row in results["rows"].items() if name.endswith("set"))
    if cell.evaluate:
        row = evaluate_set(folder / SET, cell.evaluate)
    seconds = results["seconds_to_distil"]
    iterations = None if seconds is None else cell.config.distill.iterations
    return record_of(cell.row, cell.column, cell.seed, row, seconds, iterations)


def _collect(done: Future[list[Record]], progress: Progress) -> list[Record]:
    records = done.result()
    for record in records:
        outcome = record.failed or f"mean recall {record.mean:.1f}, {record.note}"
        progress.say(f"{record.row}, {record.column}, seed {record.seed}: {outcome}")
    return records


def _prepare(cells: Sequence[Cell], out: Path, progress: Progress) -> list[dict[str, Any]]:
    """Make what cells share, once: data, features and experts; and measure the full data."""
    settings: dict[str, list[Cell]] = {}
    for cell in cells:
        settings.setdefault(_shared(cell.config), []).append(cell)
    path = out / "full-data.json"
    known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    references = []
    for key, group in settings.items():
        if key not in known:
            bench = Workbench(group[0].config, progress)
            known[key] = summarise(full_data(bench))["chosen"]
            artifacts.write_text(path, json.dumps(known, indent=2))
        rows = list(dict.fromkeys(cell.row for cell in group))
        references.append({"rows": rows, "recall": known[key]})
    return references


def _shared(config: Config) -> str:
    values = config.model_dump(mode="json")
    return json.dumps({name: values[name] for name in SHARED}, sort_keys=True)


def _affordable(config: Config, runs: int) -> int:
    """How many runs at a time: each is taken to need twice what this process holds now."""
    if find_device(config.device).type != "cpu":
        return 1
    cores = psutil.cpu_count(logical=False) or 1
    each = 2 * psutil.Process().memory_info().rss
    return max(1, min(runs, cores, psutil.virtual_memory().available // each))


def _in_order(records: Sequence[Record], cells: Sequence[Cell]) -> list[Record]:
    order = {(cell.row, cell.column, cell.seed): place for place, cell in enumerate(cells)}
    return sorted(records, key=lambda r: order[r.row, r.column, r.seed])
