"""How processes that were started together find each other, and none that is gone."""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import timedelta
from typing import Any

from lors.system.heartbeat import RankWatch

__all__ = ["start_name"]


def start_name(store: Any, own: int, count: int, timeout: timedelta, watch: RankWatch) -> str:
    """A name for this start of the processes that all of them find, and that none had before.

    torchrun may keep the store when it starts processes again, and with it where those that are
    gone could be reached. So each leaves a new token; the name is a hash of all tokens, and it is
    found when all have published the same: each of them has then seen all the new tokens.

    Args:
        store: what the processes share.
        own: which of them this is.
        count: how many there are.
        timeout: how long to wait for all of them.
        watch: is told whom this one waits for.
    """
    store.set(f"token/{own}", secrets.token_hex(8))
    end = time.monotonic() + timeout.total_seconds()

    def left(what: str, rank: int) -> bytes:
        watch.wait_for(f"rank {rank}")
        return bytes(store.get(f"{what}/{rank}"))

    while time.monotonic() < end:
        tokens = b" ".join(left("token", rank) for rank in range(count))
        name = hashlib.blake2b(tokens, digest_size=8).hexdigest()
        store.set(f"name/{own}", name)
        if all(left("name", rank).decode() == name for rank in range(count)):
            watch.wait_for("another process")
            return name
        time.sleep(0.02)
    raise RuntimeError("not all processes have started")
