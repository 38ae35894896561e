"""The page that the demo ends with: a search box that answers, the recalls, pairs before and after.

It is one HTML file without a server: the answers to all queries are computed beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from lors.evaluation.results import Row
from lors.files.artifacts import write_text
from lors.runs.opened import Run
from lors.setting.neighbours import shown_captions
from lors.share.search.finder import DISTILLED, FULL, Finder
from lors.share.search.models import full_data_retriever, set_retriever
from lors.share.search.page import Column, SearchPage, render
from lors.share.search.photos import run_photos
from lors.share.search.scenes import COMPLETIONS, picture_uri, prepared_answers
from lors.system.progress import Silent

EXAMPLES = (
    "a red circle",
    "a large yellow star",
    "a striped blue square",
    "a green ring on a pink background",
    "a tiny white cross",
    "a black triangle",
)


def write_demo_page(
    pixels: Path, features: Path, out: Path, groups: Mapping[str, Mapping[str, Row]], chance: float
) -> Path:
    """Write the page.

    Args:
        pixels: a run on pixels, whose pairs are shown.
        features: a run whose models answer.
        out: the HTML file.
        groups: what was measured, by name of the group and of the set.
        chance: the recall of a random ranking.
    """
    run = Run(features)
    config, photos = run.config.data, run_photos(run.config.data, "test", Silent())
    models = {
        DISTILLED: set_retriever(run, Silent()),
        FULL: full_data_retriever(run, Silent()),
    }
    finder = Finder(photos, models)
    distilled, full = run.results.distilled, run.results.full_data
    page = SearchPage(
        title=f"{distilled.pairs} synthetic pairs instead of {full.pairs:,} real ones",
        lead=[
            f"Both models below saw the same frozen image trunk. One was trained on all "
            f"{full.pairs:,} pairs of a picture and its captions, the other only on "
            f"{distilled.pairs} synthetic pairs, which take the storage of "
            f"{distilled.storage:.0f}. It reaches {100 * distilled.mean / full.mean:.0f} % of the "
            f"recall."
        ],
        heading="Search the test scenes",
        columns=[
            Column(f"Trained on {distilled.pairs} synthetic pairs", "Hindsight"),
            Column(f"Trained on all {full.pairs:,} real pairs", "Full data"),
        ],
        placeholder="a red circle",
        suggestions=EXAMPLES,
        completions=COMPLETIONS,
        tables=[_recalls(groups, chance)],
        pairs=_pairs(Run(pixels)),
        local=prepared_answers(finder, config.seed),
    )
    write_text(out, render(page))
    return out


def _recalls(groups: Mapping[str, Mapping[str, Row]], chance: float) -> dict[str, Any]:
    rows: list[list[str]] = []
    strong: list[int] = []
    for title, found in groups.items():
        for name, row in found.items():
            if name in ("LoRS", "Hindsight"):
                strong.append(len(rows))
            share = f"{100 * row.mean / found['full data'].mean:.0f} %"
            rows.append([name, title, f"{row.storage:,.0f}", str(row.recall.mean), share])
    rows.append(["chance", "", "", f"{chance:.1f}", ""])
    return {
        "title": "What the sets are worth",
        "words": "Mean recall on the test scenes, over image and text retrieval at 1, 5 and 10, "
        "with the deviation over networks. Compare rows of equal training.",
        "head": ["trained on", "what trains", "storage in pairs", "mean recall", "of full data"],
        "rows": rows,
        "strong": strong,
    }


def _pairs(run: Run) -> dict[str, Any]:
    """The synthetic pairs of a run on pixels, as they began and as they are now."""
    moments = {}
    for when, pairs in {"before": run.start, "after": run.distilled.pairs}.items():
        pixels = replace(run.distilled, pairs=pairs).pixels().permute(0, 2, 3, 1).numpy()
        words = shown_captions(run.setting, pairs)
        moments[when] = [
            {"picture": picture_uri(Image.fromarray(image), lossless=True), "words": text}
            for image, text in zip(pixels, words, strict=True)
        ]
    items = zip(moments["before"], moments["after"], strict=True)
    return {
        "title": f"What LoRS learned: {len(run.distilled)} pairs",
        "words": "Each pair began as a real picture with its caption. Distillation changed the "
        "picture, the text embedding (shown is the nearest real caption) and the similarity "
        "between all of them.",
        "items": [{"before": before, "after": after} for before, after in items],
    }
