from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

from torch.distributed import FileStore  # type: ignore[attr-defined]

from lors.system.heartbeat import RankWatch
from lors.system.rendezvous import start_name


def test_processes_that_are_started_again_do_not_meet_those_of_before(tmp_path: Path) -> None:
    """As torchrun does it: the store outlives them, and one is quicker than the other."""
    store, patience = FileStore(str(tmp_path / "store"), 2), timedelta(seconds=20)

    def start(rank: int, late: bool) -> str:
        while late and store.get("name/0").decode() == names[-1]:
            time.sleep(0.001)  # until rank 0 has gone by what rank 1 left behind
        return start_name(store, rank, 2, patience, RankWatch())

    names: list[str] = []
    for late in (False, True, True):
        with ThreadPoolExecutor() as pool:
            first, second = pool.map(start, (0, 1), (False, late))
        assert first == second
        names.append(first)
    assert len(set(names)) == 3
