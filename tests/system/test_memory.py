from __future__ import annotations

import ctypes
import sys

import psutil
import pytest

from lors.system.memory import _glibc, keeping_freed_memory
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
