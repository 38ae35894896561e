"""A local server of the search page, which only programs on this machine can reach.

Photos are known by number, never by path, and are sent as new JPEG files that hold pixels and
nothing else. What a page of another site may ask for is nothing: names of other hosts are refused,
which DNS rebinding needs, and so are requests that another site has made.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from PIL import Image

from lors.evaluation.results import FULL_DATA
from lors.runs.opened import Run
from lors.share.retriever import Retriever
from lors.share.search.finder import FULL, Finder
from lors.share.search.page import Column, SearchPage, policy, render
from lors.system.errors import InputError, LorsError

__all__ = ["Server", "Site", "open_in_browser", "site_of"]

PORT = 8765
COUNT = 24
"""Photos per model."""
QUERY, EXAMPLE = 300, 60
"""Characters that a query, and one that is suggested, may have."""
SIDES = {"": 360, "/large": 1600}
"""Pixels of the longer side, by how the address of a photo ends."""
PHOTO = re.compile(r"/photo/([0-9]{1,9})(/large)?")
OURS = ("same-origin", "none")
"""Where a browser says that a request of the page itself, or of its user, comes from."""


@dataclass(frozen=True)
class Site:
    """What a server shows: a page, and the finder behind it."""

    page: SearchPage
    finder: Finder

    def answer(self, query: str) -> dict[str, Any]:
        """The photos that fit a query, by column of the page."""
        found = self.finder.find(query, COUNT)
        return {
            "columns": [
                [
                    {
                        "photo": match.place,
                        "name": match.name,
                        "score": round(match.score, 4),
                        "caption": match.caption,
                    }
                    for match in matches
                ]
                for matches in found.values()
            ],
            "message": self._agreement([{m.place for m in hits} for hits in found.values()]),
        }

    def _agreement(self, places: list[set[int]]) -> str:
        if len(places) < 2:
            return ""
        both = len(set.intersection(*places))
        return f"{both} of the first {len(places[0])} photos are the same in both columns."


def site_of(finder: Finder, opened: Run | Retriever) -> Site:
    """The page of a run: the model of its set, and that of the full data where there is one."""
    count = len(finder.photos)
    title = f"Search {count:,} photo{'' if count == 1 else 's'}"
    if isinstance(opened, Retriever):
        return Site(SearchPage(title, [Column("Results")]), finder)
    distilled = opened.distilled
    kind = "synthetic" if opened.config.selection.kind is None else "selected"
    storage = f"The storage of {distilled.storage():.3g} plain pairs"
    columns = [Column(f"Trained on {len(distilled):,} {kind} pairs", storage)]
    if FULL in finder.models:
        rows = opened.results.rows
        pairs = f"all {rows[FULL_DATA].pairs:,}" if FULL_DATA in rows else "all"
        columns.append(Column(f"Trained on {pairs} real pairs", "The full data"))
    return Site(SearchPage(title, columns, suggestions=_examples(distilled.captions)), finder)


def _examples(captions: Sequence[str], count: int = 5) -> list[str]:
    """Some captions of the set, in different words: of those that are short, every so many."""
    texts = {caption.rstrip(" .") for caption in captions if len(caption) <= EXAMPLE}
    short = sorted(texts, key=lambda text: (len(text), text))
    return short[:: max(1, len(short) // count)][:count]


class Server:
    """Serves a site at an address of this machine until it is stopped.

    >>> with Server(site) as server: server.run()  # doctest: +SKIP

    Args:
        site: what to show.
        port: of the address; default: 8765, or a free one if that is taken.

    Raises:
        InputError: the port is taken.
    """

    def __init__(self, site: Site, port: int | None = None) -> None:
        handler = type("Handler", (_Handler,), {"site": site, "html": render(site.page).encode()})
        try:
            self._server = _listening(PORT if port is None else port, handler)
        except OSError as error:
            if port is not None:
                raise InputError(f"port {port} cannot be used: {error.strerror}") from None
            self._server = _listening(0, handler)
        self.port: int = self._server.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}/"

    def run(self) -> None:
        """Answer until Ctrl-C, or until ``stop`` is called from another thread."""
        try:
            self._server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            return

    def stop(self) -> None:
        self._server.shutdown()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.server_close()


def open_in_browser(address: str) -> None:
    """Open an address where there is a screen to show it on; say nothing where there is none."""
    screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if screen or sys.platform in ("darwin", "win32"):
        webbrowser.open(address)


def _listening(port: int, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    server = _Listener(("127.0.0.1", port), handler, bind_and_activate=False)
    server.daemon_threads = True
    server.allow_reuse_address = os.name != "nt"
    try:
        server.server_bind()
        server.server_activate()
    except OSError:
        server.server_close()
        raise
    return server


class _Listener(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # the browser has left
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    site: Site
    html: bytes
    server_version, sys_version = "lors", ""
    timeout = 30

    def do_GET(self) -> None:
        if not self._is_ours():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"Open this page by its own address.")
            return
        path, _, query = self.path.partition("?")
        photo = PHOTO.fullmatch(path)
        if path == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.html)
        elif path == "/search":
            self._search(parse_qs(query).get("q", [""])[0])
        elif photo and int(photo[1]) < len(self.site.finder.photos):
            self._photo(int(photo[1]), SIDES[photo[2] or ""])
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"Not found.")

    def _is_ours(self) -> bool:
        assert isinstance(self.server, ThreadingHTTPServer)
        port = self.server.server_port
        hosts = [name if port == 80 else f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
        given = [host.lower() for host in self.headers.get_all("Host", [])]
        from_us = self.headers.get("Sec-Fetch-Site", "none") in OURS
        followed = self.path == "/" and self.headers.get("Sec-Fetch-Mode") == "navigate"
        return len(given) == 1 and given[0] in hosts and (from_us or followed)

    def _search(self, query: str) -> None:
        try:
            status, found = HTTPStatus.OK, self.site.answer(query[:QUERY])
        except LorsError as error:
            status, found = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        self._send(status, "application/json", json.dumps(found).encode())

    def _photo(self, place: int, side: int) -> None:
        try:
            sent = _jpeg(self.site.finder, place, side)
        except LorsError:
            self._send(HTTPStatus.GONE, "text/plain", b"This photo cannot be read any more.")
        else:
            self._send(HTTPStatus.OK, "image/jpeg", sent, cached=True)

    def _send(self, status: HTTPStatus, kind: str, body: bytes, cached: bool = False) -> None:
        headers: Mapping[str, str] = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{policy()}; frame-ancestors 'none'",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, max-age=600" if cached else "no-store",
        }
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):  # the browser has left
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what a user searches for is nobody's business."""


@lru_cache(maxsize=512)
def _jpeg(finder: Finder, place: int, side: int) -> bytes:
    """A photo with nothing but its pixels: no place, time or camera."""
    image = finder.photos[place].load().convert("RGB")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    Image.frombytes("RGB", image.size, image.tobytes()).save(file, "JPEG", quality=85)
    return file.getvalue()
