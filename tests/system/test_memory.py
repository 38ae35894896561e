from __future__ import annotations

import ctypes
import sys

import psutil
import pytest

from lors.system.memory import _glibc, keeping_freed_memory


@pytest.mark.skipif(sys.platform != "linux" or _glibc() is None, reason="needs glibc")
def test_freed_memory_stays_within_the_block_and_goes_at_its_end() -> None:
    library, size = ctypes.CDLL(None), 2**26
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

    def held() -> int:
        return int(psutil.Process().memory_info().rss)

    library.malloc_trim(0)
    before = held()
    with keeping_freed_memory():
        block = library.malloc(size)
        ctypes.memset(block, 1, size)
        library.free(block)
        assert held() > before + size // 2
    assert held() < before + size // 2
