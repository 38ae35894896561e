from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

from torch.distributed import FileStore

from lors.system.heartbeat import RankWatch
from lors.system.rendezvous import start_name


def test_processes_that_are_started_again_do_not_meet_those_of_before(tmp_path: Path) -> None:
    """As torchrun does it: the store outlives them, and one is quicker than the other."""
    store, patience = FileStore(str(tmp_path / "store"), 2), timedelta(seconds=20)

    def start(rank: int, late: float) -> str:
        time.sleep(late)
        return start_name(store, rank, 2, patience, RankWatch())

    names = []
    for late in (0.0, 0.3, 0.1):
        with ThreadPoolExecutor() as pool:
            first, second = pool.map(start, (0, 1), (0.0, late))
        assert first == second
        names.append(first)
    assert len(set(names)) == 3
