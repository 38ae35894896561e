"""A whole run: data, experts, distillation or selection, evaluation; what is there is kept."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lors import artifacts
from lors.baselines import full_data, random_pairs
from lors.config import Config, SimilarityConfig, difference, load_config
from lors.distill import Distillation, distill
from lors.distilled import DistilledSet
from lors.errors import InputError, choose
from lors.evaluate import Outcome, summarise
from lors.losses import Loss
from lors.matching import MATCHERS
from lors.progress import Progress
from lors.resolve import resolve
from lors.sharing.card import card
from lors.synthetic import SyntheticPairs
from lors.trackers.watch import Watch, watching
from lors.trials import rates_label, trial, tune, val_recall
from lors.workbench import Workbench

__all__ = ["METRICS_FILE", "RESULTS", "SET", "check_folder", "evaluate_set", "run"]

REFERENCES = ("full data", "random pairs")
SET, RESULTS, METRICS_FILE = "distilled.safetensors", "results.json", "metrics.jsonl"
CHECKPOINT, CARD = "checkpoint.safetensors", "README.md"


def run(
    config: Config, out: str | Path, progress: Progress | None = None, references: bool = True
) -> dict[str, Any]:
    """Distil a dataset, or select from it, and show what the result is worth.

    A run that was interrupted continues where it stopped; a finished one is not repeated.

    Args:
        config: everything.
        out: the run directory.
        progress: who to tell about long work.
        references: also measure the full data and random pairs of equal storage.

    Returns:
        The content of ``results.json``: rows with recalls, by name.

    Raises:
        InputError: bad configuration or data, or a directory that holds another run.
    """
    out, config = Path(out), resolve(config)
    check_folder(out, config)
    results = _read_results(out, config)
    row = "distilled set" if config.selection.kind is None else "selected set"
    wanted = [*(REFERENCES if references else ()), row]
    if all(name in results["rows"] for name in wanted):
        return results
    bench = Workbench(config, progress)
    if config.selection.kind is None:
        start = bench.start()
    artifacts.write_text(out / "config.yaml", config.yaml())
    with watching(bench, out, _reached(out / CHECKPOINT)) as watch:
        if config.selection.kind is None:
            made, results["seconds_to_distil"] = _distil(bench, start, out, watch)
        else:
            made = _select(bench, config.selection.kind, out)
        if references:
            results["rows"] |= _references(bench)
        results["rows"][row] = _row(
            _evaluate(bench, made, made.loss), len(made), made.storage(), _how_trained(made)
        )
        artifacts.write_text(out / RESULTS, json.dumps(results, indent=2))
        artifacts.write_text(out / CARD, card(made, results["rows"], artifacts.versions()))
        watch.end(made, results["rows"])
    return results


def evaluate_set(
    path: str | Path, overrides: Sequence[str] = (), progress: Progress | None = None
) -> dict[str, Any]:
    """Train fresh networks on a saved set and measure their recall.

    Args:
        path: a distilled set.
        overrides: changes to the configuration saved in the set, e.g. ``evaluate.seeds=10``.
        progress: who to tell about long work.

    Returns:
        One row, as in ``results.json``.
    """
    distilled = DistilledSet.load(path)
    made_with = distilled.config.encoder
    config = load_config(distilled.config.model_dump(mode="json"), overrides)
    if config.encoder.space != made_with.space:
        raise InputError(f"this set holds {made_with.space}: encoder.space cannot be changed")
    bench = Workbench(config, progress, like=distilled)
    if made_with.space == "features" and bench.image_trunk != distilled.image_trunk:
        raise InputError(
            f"this set holds features of {made_with.image!r} at {made_with.image_size} px, which "
            "no other trunk, weights or size can use: distil in space pixels to change them"
        )
    outcomes = _evaluate(bench, distilled, bench.loss)
    note = _how_trained(distilled) if config.loss == distilled.config.loss else config.loss
    return _row(outcomes, len(distilled), distilled.storage(), note)


def _references(bench: Workbench) -> dict[str, Any]:
    config = bench.config
    count, note = len(bench.real["train"]), f"nce, {rates_label(config.experts.rates())}"
    full = _row(full_data(bench), count, note=note)
    outcomes, chosen = random_pairs(bench)
    return {
        "full data": full,
        "random pairs": _row(outcomes, config.distill.budget, note=chosen),
    }


def _reached(checkpoint: Path) -> int:
    """The iteration from which a run will continue."""
    if not checkpoint.is_file():
        return 0
    with artifacts.open_artifact(checkpoint, "checkpoint") as (header, _):
        return int(header["iteration"])


def _distil(
    bench: Workbench, start: SyntheticPairs, out: Path, watch: Watch
) -> tuple[DistilledSet, float]:
    config = bench.config
    checkpoint, metrics = out / CHECKPOINT, out / METRICS_FILE
    state = Distillation(start, config.distill, config.seed)
    if checkpoint.exists():
        state.resume(checkpoint)
    lines = _lines_before(metrics, state.iteration)
    artifacts.write_text(metrics, "".join(lines))
    earlier = json.loads(lines[-1])["seconds"] if lines else 0.0
    matcher = choose(MATCHERS, config.matching.kind, "matcher")(bench.setting())
    begun = time.monotonic()

    with metrics.open("a", encoding="utf-8") as file:

        def log(record: dict[str, Any]) -> None:
            record = {**record, "seconds": round(earlier + time.monotonic() - begun, 3)}
            file.write(json.dumps(record) + "\n")
            file.flush()
            watch.record(record, state.synthetic)

        pairs = distill(
            state,
            matcher,
            recall=lambda synthetic: val_recall(bench, synthetic),
            checkpoint=lambda: state.save(checkpoint),
            log=log,
            progress=bench.progress,
        )
    loss = config.loss if matcher.learns_rates else tune(bench, pairs)
    distilled = bench.distilled(pairs, loss)
    distilled.save(out / SET)
    lines = _lines_before(metrics, state.iteration)
    return distilled, json.loads(lines[-1])["seconds"] if lines else earlier


def _select(bench: Workbench, kind: str, out: Path) -> DistilledSet:
    (chosen, scores), captions = bench.select(kind, bench.config.distill.budget)
    pairs = bench.plain_pairs(chosen, captions)
    loss = tune(bench, pairs)
    selected = bench.distilled(pairs, loss, SimilarityConfig(kind="identity"))
    texts = bench.pairs.splits["train"].captions
    table = io.StringIO()
    lines = csv.writer(table)
    lines.writerow(("image", "score", "caption", "text"))
    for image, score, caption in zip(chosen, scores, captions, strict=True):
        lines.writerow((image, f"{score:.6g}", caption, texts[caption] if texts else ""))
    artifacts.write_text(out / "selection.csv", table.getvalue())
    selected.save(out / SET)
    return selected


def _how_trained(made: DistilledSet) -> str:
    config = made.config
    learned = config.selection.kind is None and MATCHERS[config.matching.kind].learns_rates
    if not learned:
        return f"{config.loss}, {rates_label(made.rates)}"
    return f"{config.loss}, {config.similarity.kind} S, learned rates"


def _evaluate(bench: Workbench, distilled: DistilledSet, loss: Loss) -> list[Outcome]:
    images, old = distilled.images_for(bench.flat.model), distilled.pairs
    pairs = SyntheticPairs(images, old.texts.detach(), old.similarity, old.rates.tolist())
    pairs.to(bench.device, bench.dtype)
    seeds = bench.config.evaluate.seeds
    return [
        trial(bench, pairs, loss, "evaluation network", seed)
        for seed in bench.progress.track(range(seeds), "train on the set", seeds)
    ]


def _row(
    outcomes: list[Outcome], pairs: int, storage: float | None = None, note: str = ""
) -> dict[str, Any]:
    return {
        "pairs": pairs,
        "storage": pairs if storage is None else storage,
        "networks": len(outcomes),
        "note": note,
        "recall": summarise(outcomes),
    }


def check_folder(out: Path, config: Config) -> None:
    """Refuse a run directory that holds something else; a longer version of its run may go on.

    Raises:
        InputError: it holds another run, or something that is not a run.
    """
    path = out / "config.yaml"
    if path.is_file():
        theirs = load_config(path)
        words = {"description", "expected", "trackers"}
        ours, found = (c.model_dump(mode="json", exclude=words) for c in (config, theirs))
        if config.distill.iterations >= theirs.distill.iterations:
            found["distill"]["iterations"] = config.distill.iterations
        differs = difference(ours, found)
        if differs:
            raise InputError(
                f"{str(out)!r} holds a run with another configuration ({'; '.join(differs)}): "
                "choose another --out, or delete it"
            )
    elif out.exists() and (not out.is_dir() or any(p.name[0] != "." for p in out.iterdir())):
        raise InputError(
            f"{str(out)!r} is not an empty folder and holds no run: choose another --out"
        )


def _read_results(out: Path, config: Config) -> dict[str, Any]:
    """The results of this run so far; those of a shorter run do not count."""
    empty = {
        "iterations": config.distill.iterations,
        "seconds_to_distil": None,
        "versions": artifacts.versions(),
        "rows": {},
    }
    path = out / RESULTS
    if not path.exists():
        return empty
    try:
        results: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return results if results["iterations"] == config.distill.iterations else empty
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{str(path)!r} is damaged: delete it and run again") from None


def _lines_before(metrics: Path, iteration: int) -> list[str]:
    """The records up to an iteration; what a killed run logged beyond its checkpoint is dropped."""
    if not metrics.exists():
        return []
    with metrics.open(encoding="utf-8") as lines:
        complete = [line for line in lines if line.endswith("\n")]
    return [line for line in complete if json.loads(line)["iteration"] <= iteration]
