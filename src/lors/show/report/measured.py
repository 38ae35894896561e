"""What a run measured: recall against what it is compared with, and the curves of the way there."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from lors.evaluation.recall import METRICS, metric_label
from lors.show.report import blocks
from lors.show.report.blocks import Block

__all__ = ["MADE", "curves_section", "recall_section"]

POINTS = 400
"""Of a long curve, so many averages are drawn: as many as there are pixels to see them."""
MADE = ("distilled set", "selected set")


def recall_section(rows: dict[str, Any]) -> Block | None:
    if not rows:
        return None
    chosen = {name: row["recall"]["chosen"] for name, row in rows.items()}
    bars = (
        blocks.bar(n, r["mean"]["mean"], r["mean"]["std"], _plus_minus(r["mean"]), n in MADE)
        for n, r in chosen.items()
    )
    networks = max(row["networks"] for row in rows.values())
    return blocks.section(
        "Recall",
        blocks.text(
            "Mean of image retrieval (IR) and text retrieval (TR) at 1, 5 and 10 on the test "
            f"split in percent, ± deviation over {networks} networks, at the epoch that is best "
            "on the validation split."
        ),
        blocks.bars(blocks.group("", bars)),
        blocks.table(
            ["", "pairs", *map(metric_label, METRICS), "mean"],
            (_recall_row(name, row["pairs"], chosen[name]) for name, row in rows.items()),
        ),
        blocks.table(
            ["", "storage in pairs", "trained with", "networks", *_readings(rows).values()],
            (_protocol_row(name, row, rows) for name, row in rows.items()),
            fold="How they were trained, and other readings",
        ),
    )


def _recall_row(name: str, pairs: int, recall: dict[str, Any]) -> list[Block]:
    numbers = (_plus_minus(recall[metric]) for metric in (*METRICS, "mean"))
    return [blocks.cell(text, name in MADE) for text in (name, f"{pairs:,}", *numbers)]


def _protocol_row(name: str, row: dict[str, Any], rows: dict[str, Any]) -> list[Block]:
    readings = (_plus_minus(row["recall"][reading]["mean"]) for reading in _readings(rows))
    words = (name, f"{row['storage']:,.2f}", row["note"], str(row["networks"]), *readings)
    return [blocks.cell(word, name in MADE) for word in words]


def _readings(rows: dict[str, Any]) -> dict[str, str]:
    """Readings besides the chosen epoch that all rows have, with their titles."""
    titles = {"last": "mean, last epoch", "legacy": "mean, best on test (legacy)"}
    return {k: t for k, t in titles.items() if all(k in row["recall"] for row in rows.values())}


def _plus_minus(value: dict[str, float]) -> str:
    return f"{value['mean']:.1f} ± {value['std']:.1f}"


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
