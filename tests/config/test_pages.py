from __future__ import annotations

from pathlib import Path

import pytest

from lors.config import methods, presets
from lors.config.describing import sections
from lors.config.pages import pages

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", pages())
def test_a_written_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == pages()[name], "run 'make docs'"


def test_pages_have_everything() -> None:
    for section in sections():
        assert all(
            f"| `{setting.name}` |" in pages()["settings.md"] for setting in section.settings
        )
    shown = [name for name in presets() if not name.endswith("-base")]
    assert all(f"| `{name}` |" in pages()["presets.md"] for name in [*shown, *methods()])


def test_no_cell_of_a_table_breaks_it() -> None:
    for text in pages().values():
        tables = [block for block in text.split("\n\n") if block.startswith("| ")]
        for table in tables:
            assert len({line.count("|") for line in table.splitlines()}) == 1
