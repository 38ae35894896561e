"""The report of a run, or of a set alone: what was done, what came of it, how to do it again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np

from lors.evaluation.results import FULL_DATA, MADE, RANDOM_PAIRS
from lors.files.artifacts import open_artifact
from lors.runs.folders import SET
from lors.runs.opened import Run
from lors.sets.distilled import DistilledSet
from lors.show.report import blocks
from lors.show.report.blocks import Block
from lors.show.report.map import map_block, map_words
from lors.show.report.measured import curves_section, recall_section
from lors.show.report.pairs import PairView
from lors.show.report.retrievals import retrieval_section
from lors.show.report.similarity import in_words, matrix_of, mined_blocks

__all__ = ["run_content"]


def run_content(
    run: Run, path: Path, projection: str = "pca", thorough: bool = False
) -> dict[str, Any]:
    """Everything a page shows of a run.

    Args:
        run: the run, opened.
        path: where from: its folder, or a set alone.
        projection: what the map is made by, ``pca`` or ``umap``.
        thorough: whether to show what takes long to make, too.
    """
    similarity = matrix_of(run.distilled.pairs.similarity)
    view = PairView(run, similarity)
    found = None if view.setting is None else retrieval_section(run, view.setting, thorough)
    map_of_pairs = _map_section(view, projection)
    pairs = view.content()
    sections = [
        recall_section(run.results.rows),
        found,
        map_of_pairs,
        _pairs_section(view),
        _similarity_section(run.distilled, view.similarity),
        curves_section(run.metrics),
        _facts_section(run),
        _again_section(run, path),
    ]
    return {
        "title": _name(path),
        "lead": [_what_was_done(run), _what_it_is_worth(run)],
        "notes": _notes(view, path),
        "tiles": _tiles(run),
        "sections": [section for section in sections if section],
        "pairs": pairs,
    }


def _name(path: Path) -> str:
    if path.is_dir():
        return path.resolve().name
    return path.resolve().parent.name if path.name == SET else path.stem


def _what_was_done(run: Run) -> str:
    config, count = run.distilled.config, len(run.distilled)
    everything = run.results.full_data.pairs if FULL_DATA in run.results else None
    data = "the built-in scenes" if config.data.source == "scenes" else config.data.title()
    source = f"{f'the {everything:,} training pairs of ' if everything else ''}{data}"
    if run.distilled.imported:
        return f"{count} pairs for {source} were imported from {run.distilled.imported}."
    if config.selection.kind is not None:
        return f"From {source}, {config.selection.kind} selection chose {count} real pairs."
    seconds = run.results.seconds_to_distil
    how_long = f" in {run.results.ended_after or config.distill.iterations:,} iterations"
    how_long += f" and {duration(seconds)}" if seconds else ""
    return (
        f"From {source}, {count} synthetic pairs were distilled{how_long}; with their similarity "
        f"they take the storage of {round(run.distilled.storage(), 2):g} plain pairs."
    )


def _what_it_is_worth(run: Run) -> str:
    means = _means(run)
    if "made" not in means:
        return "What they are worth has not been measured."
    sentence = f"Fresh networks trained on them reach a mean recall of {means['made']:.1f} %"
    against = []
    if means.get(RANDOM_PAIRS):
        ratio = means["made"] / means[RANDOM_PAIRS]
        against.append(f"{ratio:.1f} times that of random pairs of equal storage")
    if means.get(FULL_DATA):
        against.append(f"{100 * means['made'] / means[FULL_DATA]:.0f} % of the full data's")
    return f"{sentence} on the test split{': ' if against else ''}{' and '.join(against)}."


def _means(run: Run) -> dict[str, float]:
    """The mean recall of the set that was made, and of what it is compared with."""
    rows = run.results.rows.items()
    return {"made" if name in MADE else name: row.mean for name, row in rows}


def _notes(view: PairView, path: Path) -> list[str]:
    """What this page cannot show, and why."""
    notes, count = [], len(view.run.distilled)
    if view.missing:
        notes.append(
            "The real pairs could not be read, so captions and initial images are missing here: "
            f"{view.missing}. If they are elsewhere now: "
            f"lors report {shlex.quote(str(path))} data.root=FOLDER"
        )
    if view.count < count:
        notes.append(f"Of the {count:,} pairs, the first {view.count:,} are shown.")
    return notes


def _tiles(run: Run) -> Block:
    means, entries = _means(run), []
    if "made" in means:
        entries.append((f"{means['made']:.1f} %", "mean recall on test"))
        if means.get(RANDOM_PAIRS):
            entries.append((f"{means['made'] / means[RANDOM_PAIRS]:.1f} ×", "random pairs"))
        if means.get(FULL_DATA):
            entries.append((f"{100 * means['made'] / means[FULL_DATA]:.0f} %", "of full data"))
    entries.append((f"{len(run.distilled):,}", "pairs"))
    if run.results.seconds_to_distil:
        entries.append((duration(run.results.seconds_to_distil), "to distil"))
    return blocks.tiles(*entries)


def _map_section(view: PairView, projection: str) -> Block | None:
    if view.setting is None:
        return None
    block = map_block(view.run, view.setting, view.count, view.album, projection)
    return blocks.section("Map", blocks.text(*map_words(block, view.setting, projection)), block)


def _pairs_section(view: PairView) -> Block:
    run, words = view.run, []
    selected = run.config.selection.kind is not None
    if run.distilled.given:
        words.append(
            "The data are embeddings without images: each pair is shown by its place on the two "
            "views of the map, from a ring where it began to a square where it is now, and by the "
            "real rows that are nearest to it."
        )
    elif run.config.encoder.space == "features":
        words.append(
            "The images of this set are features, which cannot be seen: the real images with the "
            "nearest features stand in for them."
        )
    if not selected:
        words.append(
            "Texts are embeddings: what is shown are the real captions nearest to each, with their "
            "cosine, before distillation and after it."
        )
    return blocks.section("Pairs", blocks.text(*words), {"kind": "gallery"})


def _similarity_section(distilled: DistilledSet, matrix: np.ndarray) -> Block:
    similarity = distilled.config.similarity_within(distilled.pairs.pair_numbers())
    words = in_words(similarity.kind, min(similarity.rank, len(matrix)), similarity.alpha)
    return blocks.section("Similarity", blocks.text(words), *mined_blocks(matrix))


def _facts_section(run: Run) -> Block:
    distilled, seconds = run.distilled, run.results.seconds_to_distil
    config = distilled.config
    with open_artifact(run.set_path) as (header, _):
        versions = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    entries = [
        (
            "storage",
            f"{len(distilled)} pairs, as many numbers as {distilled.storage():.2f} plain pairs "
            f"(budget {config.distill.budget})",
        ),
        ("file", f"{run.set_path.name}, {run.set_path.stat().st_size / 1e6:.2f} MB"),
        ("rates to train with", "image {:.4g}, text {:.4g}".format(*distilled.rates)),
        ("loss to train with", distilled.config.loss),
        ("image trunk", distilled.image_trunk.replace("|", ", ")),
        ("text trunk", config.encoder.text),
        ("scope and space", f"{config.encoder.scope}, {config.encoder.space}"),
        ("seed", str(config.seed)),
        ("versions", versions),
    ]
    if seconds:
        each = run.results.seconds_per_iteration
        entries.insert(1, ("time", f"{duration(seconds)}, {each:.3g} s per iteration"))
    return blocks.section("Storage and time", blocks.facts(*entries))


def _again_section(run: Run, path: Path) -> Block:
    kind, saved = run.config.selection.kind, run.folder / "config.yaml"
    verb = "distill" if kind is None else f"select {kind}"
    again = f"runs/{_name(path)}-again"
    config, how = str(saved), "The same run again, in a new folder:"
    if not saved.is_file():
        config, how = "config.yaml", "The same run again, with the configuration below in a file:"
    return blocks.section(
        "Do it again",
        blocks.text(how),
        blocks.command(f"lors {verb} {shlex.quote(config)} --out {shlex.quote(again)}"),
        blocks.text("Fresh networks trained on the set:"),
        blocks.command(f"lors evaluate {shlex.quote(str(run.set_path))}"),
        blocks.text("This page:"),
        blocks.command(f"lors report {shlex.quote(str(path))}"),
        blocks.code("Configuration", run.distilled.config.yaml()),
    )


def duration(seconds: float) -> str:
    """A time as a person says it.

    >>> duration(9.81), duration(192), duration(7260)
    ('9.8 s', '3 min 12 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
