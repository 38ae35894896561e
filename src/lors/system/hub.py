"""The Hugging Face Hub where it answers; where it does not, what was downloaded before."""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["cache_folder", "hub_answers", "hub_or_cache", "megabytes", "on_hub"]

PATIENCE = 4.0
"""Seconds to wait for a connection; the client itself would retry for half a minute and more."""

REMEMBERED = 60.0
"""Seconds for which an answer holds."""

_known: dict[str, tuple[float, bool]] = {}


def hub_answers() -> bool:
    """Whether the Hub, or the proxy on the way there, takes a connection within seconds."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    asked, answer = _known.get(constants.ENDPOINT, (0.0, False))
    if constants.ENDPOINT not in _known or time.monotonic() - asked > REMEMBERED:
        try:
            answer = _connects(*_first_stop(constants.ENDPOINT))
        except ValueError:  # a proxy that is no address: the client itself says what is wrong
            answer = True
        _known[constants.ENDPOINT] = (time.monotonic(), answer)
    return answer


@contextmanager
def hub_or_cache() -> Iterator[bool]:
    """Let libraries use the Hub if it answers, and at once their caches alone if it does not.

    Yields:
        Whether it answers.
    """
    from huggingface_hub import constants

    before, answers = constants.HF_HUB_OFFLINE, hub_answers()
    constants.HF_HUB_OFFLINE = not answers
    try:
        yield answers
    finally:
        constants.HF_HUB_OFFLINE = before


def on_hub(name: str) -> bool:
    """Whether a name can only be one of the Hub: no path, and nothing of that name is here.

    >>> on_hub("sentence-transformers/all-MiniLM-L6-v2"), on_hub("/absent"), on_hub("./absent")
    (True, False, False)
    """
    return bool(re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", name)) and not Path(name).exists()


def cache_folder() -> str:
    """Where downloads of the Hub go."""
    from huggingface_hub import constants

    return str(constants.HF_HUB_CACHE)


def megabytes(repository: str, file: str, revision: str | None = None) -> float | None:
    """The size of a file on the Hub; None if it does not say."""
    import huggingface_hub as hub

    try:
        found = hub.get_hf_file_metadata(hub.hf_hub_url(repository, file, revision=revision)).size
    except Exception:  # the client raises its own errors and those of its HTTP library
        return None
    return None if found is None else found / 1e6


def _first_stop(endpoint: str) -> tuple[str, int]:
    """The host and port that a request connects to: those of a proxy, if there is one."""
    target = urlsplit(endpoint)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(target.scheme) or proxies.get("all")
    if proxy and not urllib.request.proxy_bypass(target.hostname or ""):
        target = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return target.hostname or "", target.port or (80 if target.scheme == "http" else 443)


def _connects(host: str, port: int) -> bool:
    """Whether a connection is made in time; also looking up a name can take minutes."""
    reached = threading.Event()

    def connect() -> None:
        try:
            socket.create_connection((host, port), PATIENCE).close()
        except OSError:
            return
        reached.set()

    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(PATIENCE)
    return reached.is_set()
