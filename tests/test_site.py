"""The site builds strictly, without a network, and has everything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lors

ROOT = Path(__file__).resolve().parents[1]
pytest.importorskip("material")
pytest.importorskip("mkdocstrings")


def test_the_site_builds_and_is_complete(tmp_path: Path) -> None:
    """Strictly: a broken link, anchor or reference ends it. One test, because it is built once."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    pages = {
        path.relative_to(tmp_path / "site").as_posix(): path.read_text("utf-8")
        for path in (tmp_path / "site").rglob("*.html")
    }
    sources = (ROOT / "docs").rglob("*.md"), (ROOT / "docs").rglob("*.ipynb")
    for source in (path for kind in sources for path in kind):
        name = source.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert name in pages
        assert f'href="{os.path.relpath(name, "methods")}"' in pages["methods/index.html"], name

    for name, page in pages.items():  # nothing is loaded from elsewhere
        loaded = re.findall(
            r'<(?:script|img|iframe|link rel="stylesheet")[^>]*?(?:src|href)="(.*?)"', page
        )
        assert not [each for each in loaded if re.match(r"(https?:)?//", each)], name

    api = pages["reference/api.html"]
    assert not [name for name in lors.__all__ if f'id="lors.{name}"' not in api]
    commands = pages["reference/cli.html"]
    assert all(f'id="lors-{name}"' in commands for name in ("distill", "compare", "doctor"))
    assert "<!-- commands -->" not in commands
