"""The search page in a real browser: with a server, and as a file that needs none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lors.runs.opened import Run
from lors.share.search.finder import DISTILLED, Finder
from lors.share.search.page import Column, SearchPage, render
from lors.share.search.scenes import COMPLETIONS, prepared_answers
from lors.share.search.server import Server
from tests.share.search.conftest import SCRIPT

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> list[str]:
    return []


def opened(browser: Browser, address: str, complaints: list[str], phone: bool = False) -> Page:
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 900}
    dark = "dark" if phone else "light"
    context = browser.new_context(viewport=size, color_scheme=dark)  # type: ignore[arg-type]
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def ask(page: Page, query: str) -> None:
    page.fill("#query", query)
    page.keyboard.press("Enter")
    page.wait_for_function("query => document.documentElement.dataset.query === query", arg=query)


def test_words_find_photos_in_two_columns(
    browser: Browser, server: Server, complaints: list[str]
) -> None:
    page = opened(browser, server.address, complaints)
    ask(page, f"a red star {SCRIPT}")
    assert [column.locator("li").count() for column in page.locator(".hits").all()] == [6, 6]
    widths = page.locator(".hits img").evaluate_all(
        "all => Promise.all(all.map(i => i.decode().then(() => i.naturalWidth)))"
    )
    assert widths == [40] * 12
    assert SCRIPT in page.locator(".hits").first.inner_text()
    assert "6 of the first 6 photos are the same" in page.inner_text("[role=status]")
    page.locator(".hits button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog img").evaluate("i => i.decode().then(() => i.naturalWidth)") == 40
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert page.locator("main script, img[src='x']").count() == 0
    assert complaints == []
    page.context.close()


def test_a_query_that_fails_is_a_sentence(browser: Browser, server: Server) -> None:
    page = opened(browser, server.address, [])
    page.context.set_offline(True)
    ask(page, "a star")
    assert "does not answer" in page.inner_text("[role=status]")
    page.context.close()


@pytest.mark.parametrize("phone", [False, True])
def test_a_file_answers_without_a_server(
    browser: Browser, run: Run, tmp_path: Path, complaints: list[str], phone: bool
) -> None:
    finder = Finder.of_run(run)
    content = SearchPage(
        "Scenes",
        [Column("set")],
        completions=COMPLETIONS,
        suggestions=["a red circle"],
        local=prepared_answers(finder, run.config.data.seed),
    )
    (tmp_path / "page.html").write_text(render(content), "utf-8")
    page = opened(browser, (tmp_path / "page.html").as_uri(), complaints, phone)
    for query, same in (("a red circle",) * 2, ("show me two BIG blue balls", "a big blue ball")):
        ask(page, query)
        names = page.locator(".hits .label span").all_inner_texts()
        found = finder.find(same, 8)[DISTILLED]
        assert names == [match.caption for match in found]
    assert "no answers for two" in page.inner_text("[role=status]")
    right = page.locator(".hits .fits .label span").all_inner_texts()
    words = [" ".join(photo.captions) for photo in finder.photos if photo.captions[0] in right]
    assert all("blue" in text or "shape" in text for text in words)
    ask(page, "a dog on a beach")
    assert page.locator(".hits li").count() == 0
    assert "Try “a red circle”" in page.inner_text("[role=status]")
    assert page.evaluate("document.documentElement.scrollWidth") == (390 if phone else 1280)
    assert complaints == []
    page.context.close()
