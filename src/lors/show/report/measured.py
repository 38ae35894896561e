"""What a run measured: recall against what it is compared with, and the curves of the way there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lors.evaluation.results import MADE, Row, other_readings, recall_table
from lors.show.report import blocks
from lors.show.report.blocks import Block

__all__ = ["curves_section", "recall_section"]

POINTS = 400
"""Of a long curve, so many averages are drawn: as many as there are pixels to see them."""


def recall_section(rows: Mapping[str, Row]) -> Block | None:
    if not rows:
        return None
    means = {name: row.recall.mean for name, row in rows.items()}
    bars = (blocks.bar(n, m.mean, m.std, str(m), n in MADE) for n, m in means.items())
    networks = max(row.networks for row in rows.values())
    (head, *lines), others = recall_table(rows), other_readings(rows)
    return blocks.section(
        "Recall",
        blocks.text(
            "Mean of image retrieval (IR) and text retrieval (TR) at 1, 5 and 10 on the test "
            f"split in percent, ± deviation over {networks} networks, at the epoch that is best "
            "on the validation split."
        ),
        blocks.bars(blocks.group("", bars)),
        blocks.table(
            "recalls",
            head,
            ([blocks.cell(word, line[0] in MADE) for word in line] for line in lines),
        ),
        blocks.table(
            "training",
            ["", "storage in pairs", "trained with", "networks", *others],
            (
                _protocol_row(name, row, [str(means[name]) for means in others.values()])
                for name, row in rows.items()
            ),
            fold="How they were trained, and other readings",
        ),
    )


def _protocol_row(name: str, row: Row, readings: Sequence[str]) -> list[Block]:
    words = (name, f"{row.storage:,.2f}", row.note, str(row.networks), *readings)
    return [blocks.cell(word, name in MADE) for word in words]


def curves_section(metrics: list[dict[str, Any]]) -> Block | None:
    if not metrics:
        return None
    charts = [
        blocks.lines("Matching loss", {"loss": _curve(metrics, "loss")}),
        blocks.lines(
            "Inner learning rates",
            {"image": _curve(metrics, "rate_image"), "text": _curve(metrics, "rate_text")},
        ),
    ]
    measured = [record for record in metrics if "recall" in record]
    if measured:
        charts.append(
            blocks.lines("Mean recall on val (%)", {"recall": _curve(measured, "recall")})
        )
    return blocks.section("Learning curves", {"kind": "curves", "charts": charts})


def _curve(records: list[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    """A metric over iterations; a long one as averages of stretches."""
    known = [(r["iteration"], r[name]) for r in records if math.isfinite(r.get(name, math.nan))]
    cuts = np.linspace(0, len(known), min(POINTS, len(known)) + 1).astype(int)
    stretches = (np.mean(known[a:b], axis=0) for a, b in pairwise(cuts))
    return [(round(x, 1), float(f"{y:.5g}")) for x, y in (s.tolist() for s in stretches)]
