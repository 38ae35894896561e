from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lors.comparison.cell import cell_name
from lors.comparison.results import Record, Reference
from lors.comparison.table import Table, Variant
from lors.evaluation.recall import Recall
from lors.evaluation.statistic import Chance, MeanRecall, Statistic
from lors.runs.folders import SET
from lors.sets.distilled import DistilledSet
from lors.show.report.reached import groups_of
from lors.show.report.tradeoffs import budget_section, cost_section

LABELS = ("8 pairs", "80 pairs")
TABLE = Table(
    title="",
    rows=tuple(Variant(label=label, preset="tiny") for label in LABELS),
    columns=(Variant(label="Random"), Variant(label="LoRS")),
)
REFERENCE = Reference(
    rows=list(LABELS),
    columns=["Random", "LoRS"],
    recall=MeanRecall(mean=Statistic(mean=43.0, std=0.5)),
    chances=Chance.of(Recall(1.5, 1.5, 1.5, 1.5, 1.5, 1.5)),
)
RECORDS = [
    Record("8 pairs", "Random", 0, storage=8.0, mean=10.0),
    Record("8 pairs", "Random", 1, storage=8.0, mean=12.0),
    Record("80 pairs", "Random", 0, storage=80.0, mean=9.0),
    Record("8 pairs", "LoRS", 0, storage=7.5, mean=21.0, seconds=60.0),
    Record("80 pairs", "LoRS", 0, storage=79.0, mean=30.0, seconds=90.0),
    Record("80 pairs", "LoRS", 1, failed="the loss diverged"),
]


def plots(section: Any) -> list[dict[str, Any]]:
    return [block for block in section["blocks"] if block["kind"] == "plot"]


def test_curves_go_over_budgets_between_chance_and_full_data(tmp_path: Path) -> None:
    groups = groups_of(TABLE, RECORDS, [REFERENCE], tmp_path)
    (plot,) = plots(budget_section(groups))
    assert {s["name"]: [p[:2] for p in s["points"]] for s in plot["series"]} == {
        "LoRS": [(8, 21.0), (80, 30.0)],
        "Random": [(8, 11.0), (80, 9.0)],
    }
    assert plot["series"][1]["points"][0][2] == pytest.approx(2**0.5)
    assert plot["levels"] == [
        {"name": "full data", "value": 43.0},
        {"name": "chance", "value": 1.5},
    ]
    assert plot["x"]["ratio"]
    texts = [[cell["text"] for cell in row] for row in plot["table"]["rows"]]
    assert ["Random", "11.0 ± 1.4", "9.0"] in texts
    assert ["chance", "1.5", "1.5"] in texts


def test_the_front_holds_what_none_beats_at_its_cost(tmp_path: Path) -> None:
    storage, seconds = plots(cost_section(groups_of(TABLE, RECORDS, [REFERENCE], tmp_path)))
    assert storage["x"]["label"] == "storage in plain pairs"  # the sets are gone
    assert storage["front"] == [(7.5, 21.0), (79.0, 30.0)]
    assert seconds["front"] == [(0.0, 11.0), (60.0, 21.0), (90.0, 30.0)]


def test_bytes_are_those_of_images_texts_and_similarity(tmp_path: Path, tiny_run: Path) -> None:
    for record in RECORDS[:-1]:
        folder = tmp_path / "runs" / cell_name(record.row, record.column, record.seed)
        folder.mkdir(parents=True)
        (folder / SET).write_bytes((tiny_run / SET).read_bytes())
    (group,) = groups_of(TABLE, RECORDS, [REFERENCE], tmp_path)
    pairs = DistilledSet.load(tiny_run / SET).pairs
    tensors = (pairs.images, pairs.texts, *pairs.similarity.state_dict().values())
    assert {each.size for each in group.reached} == {4 * sum(t.numel() for t in tensors)}


def test_one_budget_has_no_curve() -> None:
    one = [record for record in RECORDS if record.row == "8 pairs"]
    assert budget_section(groups_of(TABLE, one, [], Path())) is None
