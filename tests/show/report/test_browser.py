"""The page in a real browser: it draws, it answers, and other people's text stays text."""

from __future__ import annotations

import csv
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from lors.comparison.results import write_results
from lors.config import load_config
from lors.runs.pipeline import run
from lors.show.report import write_report
from tests.show.report.test_tradeoffs import RECORDS, REFERENCE, TABLE

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a short run on photos whose captions are hostile."""
    folder = tmp_path_factory.mktemp("photos")
    draw = np.random.default_rng(0)
    with (folder / "captions.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("image", "caption"))
        for number in range(60):
            pixels = draw.integers(0, 256, (16, 16, 3), np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
            animal = ("dog", "cat", "owl")[number % 3]
            rows.writerow((f"{number}.png", f"{animal} {HOSTILE} near tree {number % 7}"))
    settings = [
        "data.source=table",
        f"data.root={folder}",
        "data.pairs={}",
        "distill.budget=30",
        "evaluate.epochs=2",
    ]
    run(load_config("tiny", settings), folder / "run")
    return write_report(folder / "run")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a comparison of two methods at two budgets."""
    folder = tmp_path_factory.mktemp("comparison")
    write_results(TABLE.model_copy(update={"title": HOSTILE}), RECORDS, [REFERENCE], folder)
    return write_report(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> list[str]:
    return []


def opened(
    browser: Browser, report: Path, complaints: list[str], phone: bool = False, dark: bool = False
) -> Page:
    context = browser.new_context(
        viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]
        color_scheme="dark" if dark else "light",
        has_touch=phone,
        offline=True,
    )
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready]")
    return page


@pytest.fixture
def page(browser: Browser, report: Path, complaints: list[str]) -> Iterator[Page]:
    page = opened(browser, report, complaints)
    yield page
    page.context.close()


def numbers(page: Page) -> list[int]:
    """The pairs in the gallery, in their order."""
    return [
        int(text) for text in page.locator(".gallery .foot span:first-child b").all_inner_texts()
    ]


def test_it_draws_without_complaint(page: Page, complaints: list[str]) -> None:
    assert page.locator("section h2").all_inner_texts() == [
        "Recall",
        "What it finds",
        "Map",
        "Pairs",
        "Similarity",
        "Learning curves",
        "Storage and time",
        "Do it again",
    ]
    assert page.locator(".bars .bar").count() == 3
    assert page.locator(".curves svg polyline").count() == 4
    assert page.locator(".gallery .card").count() == 24
    widths = page.locator(".gallery img").evaluate_all(
        "all => all.map(i => i.decode().then(() => i.naturalWidth))"
    )
    assert len(widths) == 48
    assert complaints == []
    ready = page.evaluate("performance.getEntriesByType('paint').at(-1).startTime")
    if ready > 2000:
        warnings.warn(f"the first view took {ready:.0f} ms", stacklevel=1)


def test_hostile_captions_are_text(page: Page, complaints: list[str]) -> None:
    assert HOSTILE in page.locator(".gallery .card").first.inner_text()
    assert page.locator("main script, img[src='x']").count() == 0
    page.wait_for_timeout(100)
    assert complaints == []


def test_the_gallery_sorts_and_shows_more(page: Page) -> None:
    assert numbers(page) == list(range(24))
    page.select_option("select", label="how far the text moved")
    moved = [float(t) for t in page.locator(".gallery .foot span:last-child b").all_inner_texts()]
    assert moved == sorted(moved, reverse=True)
    page.select_option("select", label="similarity of the pair")
    own = page.locator(".gallery .foot span:nth-child(2) b").all_inner_texts()
    assert own == sorted(own, key=lambda text: float(text.replace("−", "-")), reverse=True)
    page.click("text=Show more")
    assert page.locator(".gallery .card").count() == 29
    assert page.locator("text=Show more").is_hidden()


def test_the_gallery_searches_captions(page: Page) -> None:
    page.fill("input[type=search]", "OWL near")
    texts = page.locator(".gallery .card").all_inner_texts()
    assert texts
    assert all("owl" in text for text in texts)
    page.fill("input[type=search]", "no such words")
    assert page.locator(".gallery .card").count() == 0
    assert page.locator("[role=status]", has_text="0 of 29 pairs").count() == 1


def test_a_cell_of_the_heat_map_shows_image_text_and_value(page: Page) -> None:
    canvas, shown = page.locator("canvas.residual"), page.locator(".heatmap .card")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    cell = box["width"] / 29
    page.mouse.move(box["x"] + 4.5 * cell, box["y"] + 2.5 * cell)
    assert "image 2, text 4" in shown.inner_text()
    assert HOSTILE in shown.inner_text()
    assert shown.locator("img").count() == 1
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert "image 2, text 5" in shown.inner_text()


def test_a_tap_does_what_a_pointer_does(
    browser: Browser, report: Path, complaints: list[str]
) -> None:
    page = opened(browser, report, complaints, phone=True)
    page.locator("canvas.strip").tap()
    assert "image 14, text 14: a pair" in page.locator(".heatmap .card").inner_text()
    page.context.close()


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overflows(
    browser: Browser, report: Path, complaints: list[str], phone: bool, dark: bool
) -> None:
    page = opened(browser, report, complaints, phone, dark)
    width = PHONE["width"] if phone else DESKTOP["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") != dark
    assert complaints == []
    page.context.close()


def test_a_picture_opens_large_by_enter_and_escape_closes_it(page: Page) -> None:
    page.locator(".gallery .zoom").first.focus()
    page.keyboard.press("Enter")
    large = page.locator("dialog.large")
    assert large.locator("img").evaluate("image => image.decode().then(() => image.width)") > 300
    assert HOSTILE in large.inner_text()
    page.keyboard.press("Escape")
    large.wait_for(state="detached")
    assert page.evaluate("document.activeElement.className") == "zoom"


def test_the_map_answers_pointer_keys_and_zoom(page: Page, complaints: list[str]) -> None:
    views, shown = page.locator("svg.mapview"), page.locator(".map-views .card")
    views.first.focus()
    page.keyboard.press("ArrowRight")
    assert "Pair 0 of the set" in shown.inner_text()
    marked = "all => all.map(view => view.querySelector('.ring-out').getAttribute('d'))"
    assert all(views.evaluate_all(marked))  # in both views
    page.keyboard.press("+")
    sides = [float(views.nth(i).get_attribute("viewBox").split()[2]) for i in (0, 1)]  # type: ignore[union-attr]
    assert sides[0] < sides[1]
    page.get_by_role("button", name="Show all").first.click()
    assert views.first.get_attribute("viewBox") == views.nth(1).get_attribute("viewBox")
    place = views.nth(1).evaluate(
        "view => { const [x, y] = view.querySelector('.real').getAttribute('d').match(/[\\d.]+/g);"
        " const p = new DOMPoint(x, y).matrixTransform(view.getScreenCTM()); return [p.x, p.y]; }"
    )
    page.mouse.move(*place)
    assert "Real pair" in shown.inner_text() or "of the set" in shown.inner_text()
    assert HOSTILE in shown.inner_text()
    assert complaints == []


def saved(page: Page, name: str) -> bytes:
    """The file that a button saves."""
    button = page.get_by_role("button", name=name, exact=True)
    with page.expect_download() as download:
        button.click()
    return Path(download.value.path()).read_bytes()


def test_figures_and_tables_are_saved_as_files(page: Page, complaints: list[str]) -> None:
    for name in ("bars", "map of images", "Matching loss"):
        drawing = ElementTree.fromstring(saved(page, f"Save {name} as SVG"))
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert saved(page, f"Save {name} as PNG").startswith(b"\x89PNG")
    assert saved(page, "Save similarity as PNG").startswith(b"\x89PNG")
    recalls = list(csv.reader(saved(page, "Save recalls as CSV").decode("utf-8-sig").splitlines()))
    assert recalls[0][1:3] == ["pairs", "IR@1"]
    places = saved(page, "Save places on the map as CSV").decode("utf-8-sig")
    assert len(places.splitlines()) == 1 + 29 + page.evaluate(
        "document.querySelector('.mapview .real').getAttribute('d').split('M').length - 1"
    )
    assert complaints == []


def test_a_comparison_answers_keys_and_names(
    browser: Browser, comparison: Path, complaints: list[str]
) -> None:
    page = opened(browser, comparison, complaints)
    drawing = page.locator("svg.plot").first
    drawing.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".readout").first.inner_text() == "LoRS 80 pairs: 30.0"
    assert drawing.locator(".levelname").all_text_contents() == ["full data 43.0", "chance 1.5"]
    page.locator(".names button", has_text="Random").first.focus()
    assert drawing.locator(".series.lifted").count() == 1
    assert b">LoRS</text>" in saved(page, "Save Recall over budgets as SVG")
    assert complaints == []
    page.context.close()


def test_embeddings_have_maps_instead_of_pictures(
    browser: Browser, embeddings_run: Path, tmp_path: Path, complaints: list[str]
) -> None:
    page = opened(browser, write_report(embeddings_run, out=tmp_path / "page.html"), complaints)
    cards = page.locator(".gallery .card")
    assert cards.count() > 0
    assert page.locator(".gallery svg.mapview").count() == 2 * cards.count()
    assert page.locator(".gallery img").count() == 0
    assert complaints == []
    page.context.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", ["report", "comparison"])
def test_axe_finds_nothing(
    browser: Browser, kind: str, dark: bool, request: pytest.FixtureRequest
) -> None:
    page = opened(browser, request.getfixturevalue(kind), [], dark=dark)
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []
    page.context.close()


def test_it_prints_with_everything_unfolded(page: Page) -> None:
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.locator("details:not([open])").count() == 0
