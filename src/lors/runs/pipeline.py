"""A whole run: data, experts, distillation or selection, evaluation; what is there is kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lors.config import Config, SimilarityConfig, load_config
from lors.distillation.health import Health, near_chance
from lors.distillation.loop import Distillation, distill
from lors.evaluation.protocol import Outcome, frozen_inputs, outcomes, summarise
from lors.evaluation.recall import chance
from lors.evaluation.references import full_data, random_pairs
from lors.evaluation.tuning import rates_label, trial, tune, val_recall
from lors.files import artifacts
from lors.files.tables import write_csv
from lors.losses import Loss
from lors.matching import MATCHERS
from lors.runs.card import card
from lors.runs.folders import (
    CARD,
    CONFIG,
    DATA,
    RESULTS,
    SELECTION,
    SET,
    check_data,
    check_folder,
    read_results,
)
from lors.runs.logbook import Logbook
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting.resolve import resolve
from lors.setting.workbench import Workbench
from lors.system import ranks
from lors.system.errors import DivergedError, InputError
from lors.system.locks import sole_user
from lors.system.memory import forget_peak_memory, peak_memory
from lors.system.progress import Progress
from lors.trackers.watch import Watch, watching

__all__ = ["evaluate_set", "run"]

REFERENCES = ("full data", "random pairs")


def run(
    config: Config,
    out: str | Path,
    progress: Progress | None = None,
    references: bool = True,
    data_parallel: bool = False,
) -> dict[str, Any]:
    """Distil a dataset, or select from it, and show what the result is worth.

    A run that was interrupted continues where it stopped; a finished one is not repeated.

    Args:
        config: everything.
        out: the run directory.
        progress: who to tell about long work.
        references: also measure the full data and random pairs of equal storage.
        data_parallel: under torchrun, divide every batch between the ranks, instead of experts and
            trajectories.

    Returns:
        The content of ``results.json``: rows with recalls, by name; how long making the set took,
        in seconds, and the peak memory of its last sitting, in bytes.

    Raises:
        InputError: bad configuration or data, or a directory that holds another run.
    """
    out, config = Path(out), resolve(config)
    config = _with_trajectories(config, out, data_parallel)
    ranks.from_rank_zero(lambda: check_folder(out, config))
    row = "distilled set" if config.selection.kind is None else "selected set"
    wanted = [*(REFERENCES if references else ()), row]
    results = ranks.from_rank_zero(lambda: read_results(out, config))
    if all(name in results["rows"] for name in wanted):
        return results
    bench, logbook = Workbench(config, progress, data_parallel=data_parallel), Logbook(out)
    forget_peak_memory(bench.device)
    if config.selection.kind is None:
        bench.start()  # what cannot be started leaves nothing behind
    with sole_user(out):
        ranks.from_rank_zero(lambda: _take_over(out, bench))
        results = ranks.from_rank_zero(lambda: read_results(out, config))
        with watching(bench, out, logbook.reached()) as watch:
            if config.selection.kind is None:
                made = _distil(bench, out, logbook, watch)
                results["seconds_to_distil"] = logbook.seconds()
            else:
                made = _select(bench, config.selection.kind, out)
            results["peak_memory"] = max(results["peak_memory"] or 0, peak_memory(bench.device))
            for name in wanted:
                if name not in results["rows"]:
                    results["rows"][name] = _measure(name, bench, made)
                    if name == wanted[-1]:  # first, because all rows say that the run has ended
                        _write(out / CARD, card(made, results["rows"], artifacts.versions()))
                    _write(out / RESULTS, json.dumps(results, indent=2))
            watch.end(made, results["rows"])
    return results


def _take_over(out: Path, bench: Workbench) -> None:
    """Make a run directory this process's, and write down what the run is."""
    artifacts.remove_leftovers(out)
    check_data(out, bench.pairs.fingerprint)
    sizes = {name: len(split) for name, split in bench.pairs.splits.items()}
    data = {"fingerprint": bench.pairs.fingerprint, "pairs": sizes}
    artifacts.write_text(out / CONFIG, bench.config.yaml())  # first: it says that this is a run
    artifacts.write_text(out / DATA, json.dumps(data, indent=2))


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
    reached = _evaluate(bench, distilled, bench.loss)
    note = _how_trained(distilled) if config.loss == distilled.config.loss else config.loss
    return _row(reached, len(distilled), distilled.storage(), note)


def _with_trajectories(config: Config, out: Path, data_parallel: bool) -> Config:
    """The configuration with as many trajectories as the run began with, or as there are ranks."""
    if config.distill.trajectories is not None or config.selection.kind is not None:
        return config

    def begun_with() -> int | None:
        if (out / CONFIG).is_file():
            return load_config(out / CONFIG).distill.trajectories
        return ranks.size() if ranks.size() > 1 and not data_parallel else None

    distill = config.distill.model_copy(update={"trajectories": ranks.from_rank_zero(begun_with)})
    return config.model_copy(update={"distill": distill})


def _write(path: Path, text: str) -> None:
    if ranks.rank() == 0:
        artifacts.write_text(path, text)


def _save(made: DistilledSet, path: Path) -> None:
    if ranks.rank() == 0:
        made.save(path)


def _measure(name: str, bench: Workbench, made: DistilledSet) -> dict[str, Any]:
    """One row of the results: a reference, or the set that was made."""
    config = bench.config
    if name == "full data":
        note = f"nce, {rates_label(config.experts.rates())}"
        row = _row(full_data(bench), len(bench.real["train"]), note=note)
    elif name == "random pairs":
        reached, chosen = random_pairs(bench)
        row = _row(reached, config.distill.budget, note=chosen)
    else:
        reached = _evaluate(bench, made, made.loss)
        row = _row(reached, len(made), made.storage(), _how_trained(made))
    mean, least = row["recall"]["chosen"]["mean"]["mean"], chance(bench.real["test"].owner).mean
    if near_chance(mean, least):
        bench.progress.say(
            f"Warning: the recall of {name} is {mean:.2f}, near chance ({least:.2f})."
        )
    return row


def _distil(bench: Workbench, out: Path, logbook: Logbook, watch: Watch) -> DistilledSet:
    config = bench.config
    matcher = bench.matcher()
    health = Health(config, chance(bench.real["val"].owner).mean, bench.progress.say)
    state = _state(bench, logbook)
    if len(state.synthetic) == config.most_pairs():
        bench.progress.say(
            f"The set has {len(state.synthetic)} pairs, one batch of the protocol, and the storage "
            f"of {state.synthetic.storage():.0f}; distill.one_batch=false makes as many as the "
            "budget holds."
        )
    idle = ranks.size() - state.trajectories
    if idle > 0 and not bench.data_parallel:
        bench.progress.say(
            f"Warning: {idle} of {ranks.size()} ranks have nothing to do, for this run averages "
            f"{state.trajectories} trajectories: see distill.trajectories and --data-parallel."
        )
    while True:

        def log(record: dict[str, Any], state: Distillation = state) -> None:
            record = logbook.log(record)
            health.look(record, state.synthetic)
            watch.record(record, state.synthetic)

        try:
            pairs = distill(
                state,
                matcher,
                recall=lambda synthetic: val_recall(bench, synthetic),
                checkpoint=partial(logbook.checkpoint, state),
                log=log,
                progress=bench.progress,
            )
            break
        except DivergedError as error:
            state = _state(bench, logbook)
            state.agree()  # all have read the checkpoint before it is replaced
            if sum(state.slowed.values()) >= config.distill.retries:
                raise
            bench.progress.say(f"{error}. Going back to iteration {state.iteration}, slower.")
            state.slow_down(error.part)
            logbook.checkpoint(state)
    loss = config.loss if matcher.learns_rates else tune(bench, pairs)
    distilled = bench.distilled(pairs, loss)
    _save(distilled, out / SET)
    return distilled


def _state(bench: Workbench, logbook: Logbook) -> Distillation:
    """The state of a run at its last checkpoint, or at its start."""
    state = Distillation(
        bench.start(), bench.config.distill, bench.config.seed, together=bench.data_parallel
    )
    logbook.resume(state, bench.progress)
    return state


def _select(bench: Workbench, kind: str, out: Path) -> DistilledSet:
    (chosen, scores), captions = bench.select(kind, bench.config.distill.budget)
    pairs = bench.plain_pairs(chosen, captions)
    loss = tune(bench, pairs)
    selected = bench.distilled(pairs, loss, SimilarityConfig(kind="identity"))
    if ranks.rank() == 0:
        _write_list(chosen, scores, captions, bench.pairs.splits["train"].captions, out)
    _save(selected, out / SET)
    return selected


def _write_list(
    chosen: np.ndarray,
    scores: np.ndarray,
    captions: np.ndarray,
    texts: Sequence[str],
    out: Path,
) -> None:
    """Write down which pairs were selected, and with which scores."""
    rows = (
        (image, f"{score:.6g}", caption, texts[caption] if texts else "")
        for image, score, caption in zip(chosen, scores, captions, strict=True)
    )
    write_csv(out / SELECTION, ("image", "score", "caption", "text"), rows)


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
    inputs = frozen_inputs(pairs, bench.flat.model)

    def reached(seed: int) -> Outcome:
        return trial(bench, pairs, loss, "evaluation network", seed, inputs=inputs)

    seeds = range(bench.config.evaluate.seeds)
    return outcomes(seeds, reached, bench.progress, "train on the set")


def _row(
    reached: list[Outcome], pairs: int, storage: float | None = None, note: str = ""
) -> dict[str, Any]:
    return {
        "pairs": pairs,
        "storage": pairs if storage is None else storage,
        "networks": len(reached),
        "note": note,
        "recall": summarise(reached),
    }
