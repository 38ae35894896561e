"""All figures of the registry, written as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lors.errors import InputError
from lors.figures import FIGURES, make_figure

OF_ANY_RUN = sorted(set(FIGURES) - {"variance", "histogram"})


@pytest.mark.parametrize("name", OF_ANY_RUN)
def test_a_figure_is_three_files_and_twice_the_same(
    name: str, tiny_run: Path, tmp_path: Path
) -> None:
    first = make_figure(name, tiny_run, tmp_path / "1")
    assert [path.name for path in first] == [f"{name}.png", f"{name}.svg", f"{name}.csv"]
    again = make_figure(name, tiny_run, tmp_path / "2")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_an_unknown_figure_has_a_neighbour(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'spectrum'"):
        make_figure("spektrum", tiny_run, tmp_path)
