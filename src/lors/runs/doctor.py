"""The doctor: looks at the machine, the caches and, if asked, runs, and repairs what is safe.

Everything below ``home()`` can be made again, so what is damaged there may be removed. In a run
directory only what killed processes left is removed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from lors.files import artifacts
from lors.files.arrays import read_array
from lors.files.artifacts import home
from lors.runs.folders import CONFIG, SET, saved_results
from lors.system.devices import choose_device
from lors.system.errors import InputError
from lors.system.locks import locked
from lors.system.progress import Progress, Silent

__all__ = ["Finding", "examine", "remove"]

LITTLE = 2 * 2**30
"""Bytes of free space below which a disk is nearly full."""

KINDS = {
    "images": "decoded images",
    "features": "features of image trunks",
    "texts": "embedded captions",
    "experts": "experts",
    "digests": "digests of data files",
    "embeddings": "unpacked embeddings",
    "photos": "encoded photos",
    "skipped": "lists of rows that were left out",
}
"""The folders below ``home()``."""

TRY_LOCK = """
import sys
from filelock import FileLock, Timeout
try:
    FileLock(sys.argv[1]).acquire(timeout=0)
except Timeout:
    sys.exit(9)
"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        what: was looked at.
        detail: what was found.
        well: whether it is as it should be.
        removable: files and folders that can be removed, and with them the problem.
    """

    what: str
    detail: str
    well: bool = True
    removable: tuple[Path, ...] = ()


def examine(runs: Sequence[Path] = (), progress: Progress | None = None) -> list[Finding]:
    """Look at the machine, the caches below ``home()`` and the given run directories.

    Args:
        runs: run directories, or folders of comparisons.
        progress: reports long-running work: every file is read.
    """
    progress = progress or Silent()
    found = [*_machine(), *_disk(home(), "caches"), *_space()]
    found += [*_begun(), _leftovers("caches", home()), _damaged_caches(progress)]
    for run in runs:
        found += [*_disk(run, str(run)), *_run(run, progress)]
    return found


def remove(findings: Iterable[Finding]) -> list[Path]:
    """Remove what can be removed, unless a process works on it now; returns what is gone."""
    gone = []
    for path in (path for finding in findings for path in finding.removable):
        with locked(_lock_of(path)) as mine:
            if mine and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif mine:
                path.unlink(missing_ok=True)
            if not path.exists():
                gone.append(path)
    return gone


def _machine() -> Iterator[Finding]:
    memory = psutil.virtual_memory()
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    cores = f"{os.cpu_count()} cores, {_size(memory.available)} of {_size(memory.total)} free"
    yield Finding("machine", f"{system}; {cores}")
    versions = (f"{name} {version}" for name, version in artifacts.versions().items())
    yield Finding("versions", ", ".join(versions))
    yield Finding("devices", "; ".join(_devices()))
    chosen = choose_device("auto")
    yield Finding("device=auto takes", f"{chosen.device} ({chosen.why})")


def _devices() -> Iterator[str]:
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        yield f"cuda:{index} {found.name}, {_size(found.total_memory)}"
    if torch.backends.mps.is_available():
        yield "mps"
    yield f"cpu, {torch.get_num_threads()} threads"


def _disk(folder: Path, name: str) -> Iterator[Finding]:
    """Room, rights and locks of the disk that a folder is on."""
    if name == "caches":
        yield Finding("caches are in", f"{folder} (set LORS_HOME to move them)")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    yield Finding(f"{name}: free space", _size(free), free >= LITTLE)
    probe = folder / f".doctor-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        with locked(probe.with_suffix(".lock")):
            yield _locks_work(name, probe.with_suffix(".lock"))
    except OSError as error:
        yield Finding(f"{name}: writing", f"not possible: {error.strerror}", well=False)
    finally:
        for path in (probe, probe.with_suffix(".lock")):
            try:
                path.unlink(missing_ok=True)
            except OSError:  # a disk that cannot be written, of which was told above
                continue


def _locks_work(name: str, lock: Path) -> Finding:
    """Whether a second process is kept from a lock that this one holds."""
    command = [sys.executable, "-c", TRY_LOCK, str(lock)]
    kept_out = subprocess.run(command, capture_output=True, check=False).returncode == 9
    if kept_out:
        return Finding(f"{name}: locks", "work")
    return Finding(
        f"{name}: locks",
        "do not keep other processes out on this file system: start one process at a time",
        well=False,
    )


def _space() -> Iterator[Finding]:
    for kind, what in KINDS.items():
        files = (path for path in (home() / kind).rglob("[!.]*") if path.is_file())
        sizes = [path.stat().st_size for path in files]
        if sizes:
            yield Finding(f"caches: {what}", f"{_size(sum(sizes))}, files: {len(sizes):,}")


def _begun() -> Iterator[Finding]:
    """Experts that are not finished: whoever needs them goes on from there."""
    folders = [folder for folder in _unfinished() if not _expert(folder).exists()]
    if folders:
        sizes = sum(path.stat().st_size for folder in folders for path in folder.iterdir())
        detail = f"{len(folders)}, {_size(sizes)}: the next run that needs them continues them"
        yield Finding("caches: begun experts", detail)


def _leftovers(name: str, folder: Path) -> Finding:
    """What killed processes left and no process is working on."""
    found = [path for path in folder.rglob(".*.tmp") if _free(path)]
    if name == "caches":
        found += [f for f in _unfinished() if _expert(f).exists() and _free(f)]
    return _problem(f"{name}: leftovers of killed processes", found)


def _damaged_caches(progress: Progress) -> Finding:
    kinds = {".npy": read_array, ".safetensors": _read_artifact, ".json": _read_json}
    return _problem("caches: damaged files", _damaged(home(), kinds, progress))


def _run(run: Path, progress: Progress) -> Iterator[Finding]:
    if not any(run.rglob(CONFIG)):
        yield Finding(str(run), f"holds no run: there is no {CONFIG}", well=False)
        return
    yield _leftovers(str(run), run)
    damaged = _damaged(run, {".safetensors": _read_artifact}, progress)
    for folder in {path.parent for path in run.rglob(CONFIG)}:
        try:
            saved_results(folder)
        except InputError:
            damaged.append(folder / "results.json")
    bad = ", ".join(str(path.relative_to(run)) for path in damaged)
    sets = sum(1 for _ in run.rglob(SET))
    yield Finding(f"{run}: damaged files", bad or f"none; {sets} sets are whole", well=not bad)


def _damaged(
    folder: Path, kinds: Mapping[str, Callable[[Path], object]], progress: Progress
) -> list[Path]:
    """The files that cannot be read, of those with these endings."""
    paths = [p for p in sorted(folder.rglob("*")) if p.suffix in kinds and p.name[0] != "."]
    damaged = []
    for path in progress.track(paths, f"read {folder.name or folder}", len(paths)):
        try:
            kinds[path.suffix](path)
        except (InputError, OSError, ValueError):
            damaged.append(path)
    return damaged


def _read_artifact(path: Path) -> None:
    with artifacts.open_artifact(path) as (header, _):
        kind = header["kind"]
    artifacts.load(path, kind)


def _read_json(path: Path) -> None:
    json.loads(path.read_bytes())


def _problem(what: str, paths: Sequence[Path]) -> Finding:
    if not paths:
        return Finding(what, "none")
    sizes = sum(path.stat().st_size for path in paths if path.is_file())
    names = ", ".join(str(path) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
    return Finding(what, f"{len(paths)}, {_size(sizes)}: {names}", False, tuple(paths))


def _unfinished() -> list[Path]:
    return sorted((home() / "experts").glob("*/unfinished-*"))


def _expert(unfinished: Path) -> Path:
    number = unfinished.name.removeprefix("unfinished-")
    return unfinished.with_name(f"expert-{number}.safetensors")


def _free(path: Path) -> bool:
    """Whether no process works on a file now."""
    try:
        with locked(_lock_of(path)) as mine:
            return mine
    except OSError:
        return False


def _lock_of(path: Path) -> Path:
    """The lock that a process holds while it writes this file or folder, or one for it."""
    expert = re.search(r"(?:\.?expert|unfinished)-(\d+)", f"{path.parent.name} {path.name}")
    if expert:
        inside = path.parent.name.startswith("unfinished-")
        return (path.parent.parent if inside else path.parent) / f".expert-{expert[1]}.lock"
    name = re.sub(r"\.\d+\.tmp$", "", path.name.removeprefix("."))
    if path.parent.name == "digests":
        return path.with_name(Path(name).stem + ".lock")
    if path.parent.parent == home():
        return path.with_name(f".{name}.lock")
    return path.with_name(".lock")


def _size(count: float) -> str:
    """Bytes in words.

    >>> _size(1536), _size(3 * 2**30)
    ('1.5 KB', '3.0 GB')
    """
    for unit in ("bytes", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"
