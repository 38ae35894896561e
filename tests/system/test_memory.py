from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import psutil
import pytest

from lors.system.memory import _glibc, container_limit, keeping_freed_memory
from tests.processes import loaded_processes

SIZE = 2**26


def block_after_block() -> None:
    """Fails unless freed memory stays within the block and goes at its end."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

    def held() -> int:
        return int(psutil.Process().memory_info().rss)

    before = held()
    with keeping_freed_memory():
        block = library.malloc(SIZE)
        ctypes.memset(block, 1, SIZE)
        library.free(block)
        assert held() > before + SIZE // 2
    assert held() < before + SIZE // 2


@pytest.mark.skipif(sys.platform != "linux" or _glibc() is None, reason="needs glibc")
def test_freed_memory_stays_within_the_block_and_goes_at_its_end() -> None:
    """In a process of its own, whose heap other tests have not torn."""
    process = loaded_processes().Process(target=block_after_block)
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_limits_memory(name: str, tmp_path: Path) -> None:
    assert container_limit(tmp_path) > 2**60
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("1073741824\n")
    assert container_limit(tmp_path) == 2**30
    (tmp_path / name).write_text("max\n")
    assert container_limit(tmp_path) > 2**60
