from __future__ import annotations

import base64
import hashlib
import re

import pytest

from lors.show.report.page import render
from tests.show.report.reading import content_of

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\u2028\u2029\ud800 ünï"


@pytest.fixture(scope="module")
def page() -> str:
    return render(f"run {HOSTILE[:-5]}", {"caption": HOSTILE})


def test_text_with_markup_stays_text(page: str) -> None:
    assert "<script>alert" not in page
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert content_of(page) == {"caption": HOSTILE}


def test_data_is_ascii_without_line_separators(page: str) -> None:
    (data,) = re.findall(r'json">(.*?)</script>', page)
    assert data.isascii()
    assert not set("<>&\u2028\u2029") & set(data)


@pytest.mark.parametrize("tag", ["script", "style"])
def test_only_our_own_script_and_style_may_run(page: str, tag: str) -> None:
    (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_nothing_comes_from_elsewhere(page: str) -> None:
    addresses = set(re.findall(r"https?://[^\"')\s]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"url\(|@import|<link[^>]+href=\"(?!data:)", page)
