from __future__ import annotations

from pathlib import Path

from lors.comparison.references import prepare
from lors.comparison.table import Table, Variant
from lors.system.progress import Silent


def test_the_full_data_is_measured_once_and_not_of_other_trunks(tmp_path: Path) -> None:
    other = {"encoder.image": "resnet10t"}
    table = Table(
        title="",
        rows=(
            Variant(label="same", preset="tiny"),
            Variant(label="other", preset="tiny", evaluate=other),
        ),
        columns=(
            Variant(label="one", set={"experts.count": 1}),
            Variant(label="two", set={"experts.count": 2}),
        ),
    )
    (reference,) = prepare(table.cells([0]), tmp_path, Silent())
    assert (reference.rows, reference.columns) == (["same"], ["one", "two"])
    assert reference.recall.mean.std > 0  # of two networks
