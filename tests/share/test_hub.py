"""The real client of the Hub against a small server that answers as the Hub does."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from lors.runs.opened import Run
from lors.share.hub import push
from lors.system.errors import InputError, LorsError

OID = "0" * 40


class Hub(ThreadingHTTPServer):
    """A Hub with one user, ``me``, whose token is ``good``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.files: dict[str, bytes] = {}
        self.created: list[dict[str, Any]] = []
        self.address = f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if "/tree/" in self.path:
            found = [{"type": "file", "path": p, "size": 1, "oid": OID} for p in self.server.files]
            return self._say(200, found)
        return self._say(404, {"error": "Repository not found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != "Bearer good":
            return self._say(401, {"error": "Invalid credentials"})
        path = self.path.partition("?")[0]
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return self._say(200, {"errors": [], "warnings": []})
        if path.endswith("/preupload/main"):
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            return self._say(200, {"files": files})
        assert path == "/api/datasets/me/set/commit/main"
        return self._commit([json.loads(line) for line in body.splitlines()])

    def _create(self, asked: dict[str, Any]) -> None:
        if asked["organization"] != "me":
            return self._say(403, {"error": "You don't have the rights to create here"})
        self.server.created.append(asked)
        status = 200 if len(self.server.created) == 1 else 409
        return self._say(status, {"url": f"{self.server.address}/datasets/me/set"})

    def _commit(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.server.files[line["value"]["path"]] = content
            elif line["key"] == "deletedFile":
                del self.server.files[line["value"]["path"]]
        url = f"{self.server.address}/datasets/me/set/commit/{OID}"
        return self._say(200, {"commitUrl": url, "commitOid": OID})

    def _say(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.address)
    monkeypatch.setenv("HF_TOKEN", "good")
    huggingface_hub.utils.disable_progress_bars()
    yield server
    server.shutdown()
    server.server_close()


def test_the_files_of_an_export_arrive(tiny_run: Path, hub: Hub) -> None:
    run = Run(tiny_run)
    assert push(run, "me/set", private=True) == f"{hub.address}/datasets/me/set"
    (asked,) = hub.created
    assert asked["type"] == "dataset"
    assert asked.get("visibility", "private" if asked.get("private") else "") == "private"
    images = {f"images/{i}.png" for i in range(7)}
    assert hub.files.keys() == images | {
        "README.md",
        "config.yaml",
        "distilled.safetensors",
        "metadata.jsonl",
        "similarity.csv",
        "texts.safetensors",
    }
    assert hub.files["README.md"].startswith(b"---\n# license")
    assert hub.files["images/0.png"].startswith(b"\x89PNG")


def test_what_an_earlier_push_left_goes(tiny_run: Path, hub: Hub) -> None:
    hub.created.append({})  # it is there already
    hub.files = {"images/99.png": b"old", "similarity.npy": b"old", "LICENSE": b"mine"}
    push(Run(tiny_run), "me/set")
    assert "images/0.png" in hub.files
    assert not {"images/99.png", "similarity.npy"} & hub.files.keys()
    assert hub.files["LICENSE"] == b"mine"


@pytest.mark.parametrize(
    ("token", "repo", "sentence"),
    [
        ("bad", "me/set", "the token is not accepted"),
        ("good", "they/set", "your token may not write there"),
        ("good", "no such name!", "no such name!"),
    ],
)
def test_a_refusal_says_what_to_do(
    token: str,
    repo: str,
    sentence: str,
    tiny_run: Path,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(InputError, match=sentence):
        push(Run(tiny_run), repo)
    assert not hub.files


def test_without_a_token_nothing_starts(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(InputError, match="hf auth login"):
        push(Run(tiny_run), "me/set")


def test_without_a_network_the_files_can_still_be_exported(
    tiny_run: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(LorsError, match="'lors export' writes the same files") as raised:
        push(Run(tiny_run), "me/set")
    assert not isinstance(raised.value, InputError)
