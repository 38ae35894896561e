from __future__ import annotations

from pathlib import Path

import pytest

from lors.show.analysis.rows import write_rows
from lors.show.figures.canvas import style
from lors.show.figures.variance import make
from lors.system.errors import InputError


def rows() -> list[dict[str, object]]:
    about = {"images": 10, "dimensions": 4}
    return [
        {"dataset": name, "kind": kind, "encoder": encoder, "variance": value, **about}
        for encoder in ("open_clip:ViT-B-32/openai", "lite0@/some/$where/model.safetensors")
        for name, kind, value in (("cifar10", "labelled", 0.04), ("flickr8k", "pairs", 0.1))
    ]


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_panel_for_each_encoder_with_pairs_first(ending: str, tmp_path: Path) -> None:
    write_rows(tmp_path / f"table.{ending}", rows())
    with style():
        figure = make(tmp_path / f"table.{ending}").figure
    assert [axes.get_title("left") for axes in figure.axes] == [
        "open_clip:ViT-B-32/openai",
        "lite0",
    ]
    labels = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert labels == ["flickr8k", "cifar10"]
    heights = [bar.get_height() for bar in figure.axes[1].patches]  # type: ignore[attr-defined]
    assert heights == [0.1, 0.04]


def test_another_table_is_refused(tmp_path: Path) -> None:
    bad = [{**row, "kind": "videos"} for row in rows()]
    write_rows(tmp_path / "bad.csv", bad)
    (tmp_path / "empty.json").write_text("[]")
    for name in ("bad.csv", "empty.json"):
        with pytest.raises(InputError, match="holds no variances"), style():
            make(tmp_path / name)
