"""Running a comparison: every cell a run of its own, in parallel, each continued if interrupted."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path

import psutil
import torch

from lors.comparison.cell import Cell
from lors.comparison.references import prepare
from lors.comparison.results import Filled, Record, record_of, write_results
from lors.comparison.table import Table
from lors.config import Config
from lors.data import Pairs
from lors.evaluation.evaluate import evaluate_set
from lors.evaluation.results import Results, Row
from lors.evaluation.statistic import Value
from lors.files import artifacts
from lors.runs.folders import SET, check_folder
from lors.runs.pipeline import run
from lors.setting import resolve
from lors.system import ranks
from lors.system.devices import find_device
from lors.system.errors import InputError, LorsError
from lors.system.locks import sole_user
from lors.system.progress import Progress, Silent
from lors.system.stopping import Terminated
from lors.system.workers import as_they_end, worker_pool

__all__ = ["fill_table"]

FAILURES = (LorsError, RuntimeError, AssertionError, ValueError, MemoryError, OSError)
"""How a run may end that cannot be done; timm refuses sizes by assertions."""


def fill_table(
    table: Table,
    out: str | Path,
    seeds: Sequence[int] = (0, 1, 2),
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
    pairs: Pairs | None = None,
) -> Filled:
    """Fill a table: run every cell with every seed, and write the results.

    Interrupted, it continues where it stopped; what is finished is not repeated. Ranks divide the
    runs.

    Args:
        table: what to compare.
        out: the folder of the comparison; each run has a folder below it.
        seeds: one run of each cell per seed. Experts are shared by all.
        overrides: settings for all cells.
        jobs: processes of each rank at a time; default: as many as cores and memory allow, one on
            a GPU; 0: in this process, one after the other.
        progress: reports long-running work.
        pairs: the real pairs, where they are in memory; all runs are then in this process.

    Returns:
        One record per cell and seed, and the recall of the full data; also in ``results.csv``,
        ``results.json``, ``table.md`` and ``table.tex`` below ``out``.
    """
    out, progress = Path(out), progress or Silent()
    cells = table.cells(seeds, overrides)
    runs = _runs(cells)
    folders = [out / "runs" / group[0].name for group in runs]
    ranks.from_rank_zero(lambda: _check(runs, folders))
    timed = table.measure == "seconds"
    if timed and ranks.size() > 1:
        raise InputError("a table of times is for one process at a time: run it without torchrun")
    records: list[Record] = []
    with sole_user(out):
        if ranks.rank() == 0:
            artifacts.remove_leftovers(out)
        references = prepare(cells, out, progress, pairs)
        mine, where = ranks.my_share(runs), ranks.my_share(folders)
        if jobs is None:
            jobs = 1 if timed else _affordable(cells[0].config, len(mine))

        def keep(found: list[Record]) -> None:
            records.extend(found)
            if ranks.rank() == 0:
                write_results(table, _in_order(records, cells), references, out)

        if mine and (pairs is not None or not jobs):
            _run_here(mine, where, keep, progress, pairs)
        elif mine:
            _run_all(mine, where, jobs, keep, progress)
        gathered = ranks.gather([asdict(record) for record in records])
        records.clear()
        keep([Record(**values) for found in gathered for values in found])
    return Filled(table, _in_order(records, cells), references)


def _check(runs: Sequence[list[Cell]], folders: Sequence[Path]) -> None:
    for group, folder in zip(runs, folders, strict=True):
        check_folder(folder, resolve(group[0].config))
        for cell in group:
            resolve(cell.evaluated())


def _run_all(
    runs: Sequence[list[Cell]],
    folders: Sequence[Path],
    jobs: int,
    keep: Callable[[list[Record]], None],
    progress: Progress,
) -> None:
    """Do all runs, some at a time, and hand over the records of each as it ends."""
    threads = max(1, _cores() // ranks.neighbours() // jobs)
    device = find_device(runs[0][0].config.device, runs[0][0].config.dtype)
    if device.type == "cuda" and ranks.size() > 1:  # workers know nothing of other ranks
        visible = _devices(os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count())
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[ranks.local()]
    with worker_pool(jobs, _worker, (threads,)) as pool:
        pending = {
            pool.submit(_run, group, folder): group
            for group, folder in zip(runs, folders, strict=True)
        }
        for done in progress.track(as_they_end(pool, pending), "runs", len(pending)):
            keep(_collect(done, pending[done], progress))


def _run_here(
    runs: Sequence[list[Cell]],
    folders: Sequence[Path],
    keep: Callable[[list[Record]], None],
    progress: Progress,
    pairs: Pairs | None,
) -> None:
    """Do all runs in this process, which has what the caller has given."""
    todo = list(zip(runs, folders, strict=True))
    for group, folder in progress.track(todo, "runs", len(todo)):
        try:
            records = _run(group, folder, pairs)
        except FAILURES as error:
            records = [_failed(cell, error) for cell in group]
        _say(records, progress)
        keep(records)


def _runs(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells by run: those with the same configuration share it, whatever their labels.

    All runs of a seed come before those of the next: stopped later, a comparison has every cell.
    """
    runs: dict[str, list[Cell]] = {}
    for cell in cells:
        runs.setdefault(cell.config.model_dump_json(), []).append(cell)
    return sorted(runs.values(), key=lambda group: group[0].seed)


def _worker(threads: int) -> None:
    """Set a worker process up: its share of the cores, and an end when its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers itself
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _run(cells: list[Cell], folder: Path, pairs: Pairs | None = None) -> list[Record]:
    """One run and all its evaluations."""
    try:
        results = run(cells[0].config, folder, references=False, pairs=pairs)
    except Terminated:  # the step is saved; a worker that lived on would begin the next run
        os._exit(143)
    return [_record(cell, folder, results, pairs) for cell in cells]


def _record(cell: Cell, folder: Path, results: Results, pairs: Pairs | None = None) -> Record:
    """What one cell shows of a run; an evaluation of its own that fails, fails alone."""
    try:
        row = _evaluated(cell, folder, pairs) if cell.read_again else results.distilled
    except FAILURES as error:
        return _failed(cell, error)
    return record_of(cell.row, cell.column, cell.seed, row, results)


class _Evaluation(Value):
    """An evaluation that is kept beside the set, with what it is of."""

    evaluate: list[str]
    set: str
    row: Row
    control: str | None = None


def _evaluated(cell: Cell, folder: Path, pairs: Pairs | None) -> Row:
    """The set of a run evaluated in another way; once, as it is kept beside it."""
    path, made = folder / f"{cell.name}.json", folder / SET
    evaluate, digest = list(cell.evaluate), hashlib.sha256(made.read_bytes()).hexdigest()
    kept = _kept(path) if path.is_file() else None
    if kept is not None and (kept.evaluate, kept.set, kept.control) == (
        evaluate,
        digest,
        cell.control,
    ):
        return kept.row
    row = evaluate_set(made, cell.evaluate, control=cell.control, pairs=pairs)
    new = _Evaluation(evaluate=evaluate, set=digest, row=row, control=cell.control)
    artifacts.write_text(path, json.dumps(new.content(), indent=2))
    return new.row


def _kept(path: Path) -> _Evaluation | None:
    """An evaluation that was kept; None if the file is damaged: it is then done again."""
    try:
        return _Evaluation.model_validate(json.loads(path.read_text("utf-8")))
    except (ValueError, RecursionError):
        return None


def _failed(cell: Cell, error: BaseException) -> Record:
    first = str(error).partition("\n")[0]  # of bad data, the counts
    why = f"{'' if isinstance(error, LorsError) else type(error).__name__ + ': '}{first}"
    return Record(cell.row, cell.column, cell.seed, failed=why)


def _collect(done: Future[list[Record]], cells: Sequence[Cell], progress: Progress) -> list[Record]:
    """The records of a run. One that fails is a result too, and does not stop the others."""
    try:
        records = done.result()
    except BrokenProcessPool:
        raise LorsError(
            "a run was killed, probably for lack of memory: the same command with --jobs 1 goes on"
        ) from None
    except FAILURES as error:
        records = [_failed(cell, error) for cell in cells]
    _say(records, progress)
    return records


def _say(records: Sequence[Record], progress: Progress) -> None:
    for record in records:
        result = record.failed or f"mean recall {record.mean:.1f}, {record.note}"
        progress.say(f"{record.row}, {record.column}, seed {record.seed}: {result}")


def _affordable(config: Config, runs: int) -> int:
    """How many runs at a time: each is taken to need twice what this process holds now."""
    if find_device(config.device, config.dtype).type != "cpu":
        return 1
    each = 2 * psutil.Process().memory_info().rss
    most = min(_cores(), psutil.virtual_memory().available // each)
    return max(1, min(runs, most // ranks.neighbours()))


def _devices(visible: str | None, count: int) -> list[str]:
    """The names of the GPUs that this process sees.

    >>> _devices(None, 2), _devices("4,7", 2)
    (['0', '1'], ['4', '7'])
    """
    return visible.split(",") if visible else [str(number) for number in range(count)]


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count(logical=False) or 1


def _in_order(records: Sequence[Record], cells: Sequence[Cell]) -> list[Record]:
    order = {(cell.row, cell.column, cell.seed): place for place, cell in enumerate(cells)}
    return sorted(records, key=lambda r: order[r.row, r.column, r.seed])
