from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import leaderboard
from lors.config import methods, presets
from lors.config.describing import sections
from lors.config.method_blocks import filled
from lors.config.pages import pages

DOCS = Path(__file__).resolve().parents[2] / "docs"
METHODS = {path.stem: path.read_text("utf-8") for path in sorted(DOCS.glob("methods/*.md"))}


@pytest.mark.parametrize("name", pages())
def test_a_written_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == pages()[name], "run 'make docs'"


@pytest.mark.parametrize("name", METHODS)
def test_the_settings_on_a_page_of_a_method_are_up_to_date(name: str) -> None:
    assert METHODS[name] == filled(METHODS[name]), "run 'make docs'"


def test_what_was_measured_is_on_the_pages_as_the_records_have_it() -> None:
    for path, page in leaderboard.pages().items():
        assert path.read_text("utf-8") == page, "run 'make docs'"


def test_pages_have_everything() -> None:
    made = pages()
    for section in sections():
        for setting in section.settings:
            assert f"| `{setting.name}` |" in made["reference/settings.md"]
    shown = [name for name in presets() if not name.endswith("-base")]
    assert all(f"| `{name}` |" in made["reference/presets.md"] for name in [*shown, *methods()])
    words = "".join(METHODS.values())
    assert not [name for name in methods() if f"`{name}`" not in words]


def test_no_cell_of_a_table_breaks_it() -> None:
    for text in [*pages().values(), *METHODS.values()]:
        tables = [block for block in text.split("\n\n") if block.startswith("| ")]
        for table in tables:
            assert len({line.count("|") for line in table.splitlines()}) == 1
