"""All figures of the registry, written as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lors.show.figures import FIGURES, make_figure
from lors.system.errors import InputError


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"variance", "histogram"}))
def test_a_figure_of_any_run_is_three_files(name: str, tiny_run: Path, tmp_path: Path) -> None:
    paths = make_figure(name, tiny_run, tmp_path)
    assert [path.name for path in paths] == [f"{name}.png", f"{name}.svg", f"{name}.csv"]
    assert all(path.stat().st_size > 100 for path in paths)


def test_a_run_gives_the_same_bytes_twice(tiny_run: Path, tmp_path: Path) -> None:
    first, again = (make_figure("examples", tiny_run, tmp_path / name) for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_an_unknown_figure_has_a_neighbour(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'spectrum'"):
        make_figure("spektrum", tiny_run, tmp_path)
