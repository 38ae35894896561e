"""The server answers its own page and nobody else, and gives nothing but the photos."""

from __future__ import annotations

import io
import json
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from PIL import Image

from lors import Retriever
from lors.share.search.finder import Finder
from lors.share.search.server import Server, Site, site_of
from lors.system.errors import InputError
from tests.share.search.conftest import SCRIPT


def get(server: Server, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_it_answers_by_number(server: Server, hostile: Path) -> None:
    response, body = get(server, "/search?q=a%20red%20circle")
    found = json.loads(body)
    assert response.headers["Content-Type"] == "application/json"
    assert [len(column) for column in found["columns"]] == [6, 6]
    hits = found["columns"][0]
    assert {hit["name"] for hit in hits} >= {SCRIPT, "two\nlines.PNG"}
    assert str(hostile).encode() not in body
    response, body = get(server, f"/photo/{hits[0]['photo']}")
    assert response.headers["Content-Type"] == "image/jpeg"
    assert Image.open(io.BytesIO(body)).size == (40, 30)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil", ""],
)
@pytest.mark.parametrize("path", ["/", "/search?q=star", "/photo/0"])
def test_another_host_is_refused(server: Server, host: str, path: str) -> None:
    response, body = get(server, path, Host=host.format(port=server.port))
    assert response.status == 403
    assert b"lors" not in body


def test_its_own_names_are_accepted(server: Server) -> None:
    for host in ("127.0.0.1", "LocalHost"):
        assert get(server, "/", Host=f"{host}:{server.port}")[0].status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_get_nothing(server: Server, site: str) -> None:
    for path in ("/photo/0", "/search?q=star", "/"):
        assert get(server, path, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0].status == 403
    # A link to the page is a link.
    assert get(server, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/../../../../etc/passwd", "/etc/passwd", "//etc/passwd", "/photo/", "/photo", "/photos"),
        *(
            "/photo/..%2f..%2fetc%2fpasswd",
            "/photo/../0",
            "/photo/6",
            "/photo/-1",
            "/photo/0/other",
        ),
        *(
            "/photo/%D9%A3",
            "/photo/999999999999999999999",
            "/photo/plain.webp",
            "/%00",
            "/page.html",
        ),
    ],
)
def test_there_is_nothing_but_the_page_and_the_photos(server: Server, path: str) -> None:
    response, body = get(server, path)
    assert response.status == 404
    assert body == b"Not found."


def test_headers_let_nothing_else_in(server: Server) -> None:
    response, body = get(server, "/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert b"http://" not in body
    assert b"https://" not in body


def test_what_is_no_query_is_a_sentence(server: Server) -> None:
    response, body = get(server, "/search")
    assert response.status == 400
    assert "one or more words" in json.loads(body)["error"]
    assert get(server, f"/search?q={'star' * 2000}")[0].status == 200
    assert get(server, "/search?q=%ff%00%3Cscript%3E")[0].status == 200


@pytest.fixture
def site(retriever: Retriever, tmp_path: Path) -> Site:
    """One photo that says where it was taken, and stops being one."""
    exif = Image.Exif()
    exif[0x010F] = "a secret camera"
    Image.new("RGB", (40, 30), "red").save(tmp_path / "a.jpg", exif=exif)
    finder = Finder.of_folder(tmp_path, {"": retriever})
    return site_of(finder, retriever)


def test_photos_tell_nothing_but_their_pixels(site: Site, tmp_path: Path) -> None:
    from lors.share.search.server import _jpeg

    assert b"a secret camera" in (tmp_path / "a.jpg").read_bytes()
    assert b"a secret camera" not in _jpeg(site.finder, 0, 360)


def test_a_port_that_is_taken_is_named(site: Site, server: Server) -> None:
    with pytest.raises(InputError, match=f"port {server.port} cannot be used"):
        Server(site, server.port)
