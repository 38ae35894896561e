from __future__ import annotations

import socket
import time

import pytest
from huggingface_hub import constants

from lors.system import hub


@pytest.fixture(autouse=True)
def endpoint(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(hub, "_known", {})
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    return monkeypatch


def test_a_hub_that_listens_answers_and_is_used(endpoint: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        with hub.hub_or_cache() as answers:
            assert answers
            assert not constants.HF_HUB_OFFLINE


def test_a_hub_that_does_not_answer_leaves_the_cache(endpoint: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    endpoint.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")  # nobody listens now
    with hub.hub_or_cache() as answers:
        assert not answers
        assert constants.HF_HUB_OFFLINE
    assert not constants.HF_HUB_OFFLINE


def test_no_name_or_packet_is_waited_for_longer_than_patience(
    endpoint: pytest.MonkeyPatch,
) -> None:
    def hang(*_: object) -> None:
        time.sleep(2)
        raise OSError

    endpoint.setattr(hub, "PATIENCE", 0.1)
    endpoint.setattr(socket, "create_connection", hang)
    started = time.monotonic()
    assert not hub.hub_answers()
    assert time.monotonic() - started < 1.5


def test_behind_a_proxy_the_proxy_counts(endpoint: pytest.MonkeyPatch) -> None:
    endpoint.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy:3128"})
    endpoint.setattr("urllib.request.proxy_bypass", lambda host: False)
    assert hub._first_stop("https://huggingface.co") == ("proxy", 3128)
    endpoint.setattr("urllib.request.proxy_bypass", lambda host: True)
    assert hub._first_stop("https://huggingface.co") == ("huggingface.co", 443)


def test_a_user_who_wants_to_be_offline_is(endpoint: pytest.MonkeyPatch) -> None:
    endpoint.setattr(constants, "HF_HUB_OFFLINE", True)
    endpoint.setattr(socket, "create_connection", pytest.fail)
    assert not hub.hub_answers()
