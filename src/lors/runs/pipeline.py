"""A whole run: data, experts, distillation or selection, evaluation; what is there is kept."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lors.config import Config, load_config
from lors.data import Pairs
from lors.data.problems import Skipped, keeping_skipped, list_skipped
from lors.distillation.health import Health
from lors.distillation.loop import Distillation, distill
from lors.evaluation.recall import chance
from lors.evaluation.references import REFERENCES, reference_row
from lors.evaluation.results import DISTILLED, SELECTED, Results, Row
from lors.evaluation.rows import set_row
from lors.evaluation.tuning import tune, val_recall, with_rates
from lors.files import artifacts
from lors.matching import Matcher, matcher_of
from lors.matching.matcher import Sparing
from lors.runs.card import card
from lors.runs.folders import (
    CARD,
    CONFIG,
    DATA,
    RESULTS,
    SET,
    check_data,
    check_folder,
    read_results,
    skipped_file,
)
from lors.runs.logbook import Logbook
from lors.runs.select import selected_set
from lors.runs.small_data import say_what_is_small
from lors.sets.distilled import DistilledSet
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, resolve
from lors.setting.memory import explaining_memory
from lors.setting.neighbours import shown_captions
from lors.setting.threads import threads_of
from lors.starts import start_pairs
from lors.system import ranks
from lors.system.devices import choose_device
from lors.system.errors import DivergedError
from lors.system.locks import sole_user
from lors.system.memory import forget_peak_memory, keeping_freed_memory, peak_memory, sparingly
from lors.system.progress import Progress
from lors.trackers import check_trackers
from lors.trackers.watch import Watch, watching

__all__ = ["run"]


def run(
    config: Config,
    out: str | Path,
    progress: Progress | None = None,
    references: bool = True,
    data_parallel: bool = False,
    pairs: Pairs | None = None,
    evaluate: bool = True,
) -> Results:
    """Distil a dataset, or select from it, and show what the result is worth.

    A run that was interrupted continues where it stopped; a finished one is not repeated.

    >>> import lors
    >>> config = lors.load_config("tiny", ["distill.iterations=2", "evaluate.seeds=1"])
    >>> results = lors.run(config, "runs/tiny", references=False)
    >>> results.iterations, results.distilled.networks, lors.load("runs/tiny").config == config
    (2, 1, True)

    Args:
        config: everything.
        out: the run directory.
        progress: reports long-running work.
        references: also measure the full data and random pairs of equal storage.
        data_parallel: under torchrun, divide every batch between the ranks, instead of experts and
            trajectories.
        pairs: the real pairs, where they are in memory.
        evaluate: also measure the set, and write its card.

    Returns:
        What ``results.json`` holds: a row of recalls for the set and for each reference, how long
        making the set took, and the peak memory of its last sitting.

    Raises:
        InputError: bad configuration or data, or a directory that holds another run.
    """
    out, config = Path(out), resolve(config)
    config = _with_trajectories(config, out, data_parallel)
    ranks.from_rank_zero(lambda: check_folder(out, config))
    row = DISTILLED if config.selection.kind is None else SELECTED
    wanted = [*(REFERENCES if references else ()), *([row] if evaluate else ())]
    results = _known_results(out, config)
    if wanted and all(name in results for name in wanted):
        if progress is not None:
            progress.say(
                f"Nothing to do: the run in {str(out)!r} is finished, and these are its results. "
                "To repeat it, choose another folder."
            )
        return results
    check_trackers(config.trackers)
    with keeping_skipped() as skipped:
        setting = Setting(config, progress, data_parallel=data_parallel, pairs=pairs)
    setting.progress.say(str(choose_device(config.device, config.dtype)))
    with threads_of(setting), keeping_freed_memory():
        return _run(setting, out, wanted, skipped)


def _run(setting: Setting, out: Path, wanted: Sequence[str], skipped: Sequence[Skipped]) -> Results:
    config, logbook = setting.config, Logbook(out)
    forget_peak_memory(setting.device)
    # What cannot be started leaves nothing behind.
    start = start_pairs(setting) if config.selection.kind is None else None
    with sole_user(out):
        ranks.from_rank_zero(lambda: _take_over(out, setting, skipped))
        results = _known_results(out, config)
        with watching(setting, out, logbook.reached()) as watch:
            cost: dict[str, float] = {}
            if start is not None:
                made = _distil(setting, start, out, logbook, watch)
                cost["seconds_to_distil"] = logbook.seconds()
                cost["ended_after"] = logbook.reached()
            else:
                made = selected_set(setting, out)
                _save(made, out / SET)
            cost["peak_memory"] = max(results.peak_memory or 0, peak_memory(setting.device))
            results = results.model_copy(update=cost)
            for name in wanted:
                if name not in results:
                    results = results.with_row(name, _measure(name, setting, made))
                    if name not in REFERENCES:  # first: all rows say that the run has ended
                        _write(out / CARD, card(made, results.rows, artifacts.versions()))
                    _write(out / RESULTS, json.dumps(results.content(), indent=2))
            watch.end(made, results.rows)
    return results


def _known_results(out: Path, config: Config) -> Results:
    """The results of this run so far, as rank 0 reads them."""
    return Results.model_validate(ranks.from_rank_zero(lambda: read_results(out, config).content()))


def _take_over(out: Path, setting: Setting, skipped: Sequence[Skipped]) -> None:
    """Make a run directory this process's, and write down what the run is."""
    artifacts.remove_leftovers(out)
    check_data(out, setting.pairs.fingerprint)
    sizes = {name: len(split) for name, split in setting.pairs.splits.items()}
    data = {"fingerprint": setting.pairs.fingerprint, "pairs": sizes}
    artifacts.write_text(out / CONFIG, setting.config.yaml())  # first: it says that this is a run
    artifacts.write_text(out / DATA, json.dumps(data, indent=2))
    list_skipped(skipped, skipped_file(out), setting.progress)


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


def _measure(name: str, setting: Setting, made: DistilledSet) -> Row:
    """One row of the results: a reference, or the set that was made."""
    return reference_row(name, setting) if name in REFERENCES else set_row(setting, made)


def _distil(
    setting: Setting, start: SyntheticPairs, out: Path, logbook: Logbook, watch: Watch
) -> DistilledSet:
    config = setting.config
    if not config.distill.iterations:
        return _finished(setting, start, out)
    matcher = _matcher(setting)
    health = Health(config, chance(setting.real["val"].owner).mean, setting.progress.say)
    state = _state(setting, start, logbook)
    if len(state.synthetic) == config.most_pairs():
        setting.progress.say(
            f"The set has {len(state.synthetic)} pairs, one batch of the protocol, and the storage "
            f"of {state.synthetic.storage():.0f}; distill.one_batch=false makes as many as the "
            "budget holds."
        )
    say_what_is_small(setting)
    idle = ranks.size() - state.trajectories
    if idle > 0 and not setting.data_parallel:
        setting.progress.say(
            f"Warning: {idle} of {ranks.size()} ranks have nothing to do, for this run averages "
            f"{state.trajectories} trajectories: see distill.trajectories and --data-parallel."
        )
    while True:

        def log(record: dict[str, Any], state: Distillation = state) -> None:
            record = logbook.log(record)
            health.look(record, state.synthetic)
            watch.record(record, state.synthetic)

        def spare() -> bool:
            own = isinstance(matcher, Sparing) and matcher.spare_memory()
            return own or setting.networks.spare_memory()

        try:
            with explaining_memory(config, setting.device, "matching"):
                pairs = distill(
                    state,
                    matcher,
                    recall=lambda synthetic: val_recall(setting, synthetic),
                    checkpoint=partial(logbook.checkpoint, state),
                    log=log,
                    progress=setting.progress,
                    spare_memory=spare,
                )
            break
        except DivergedError as error:
            state = _state(setting, start, logbook)
            state.agree()  # all have read the checkpoint before it is replaced
            if sum(state.slowed.values()) >= config.distill.retries:
                raise
            setting.progress.say(f"{error}. Going back to iteration {state.iteration}, slower.")
            state.slow_down(error.part)
            logbook.checkpoint(state)
    return _finished(setting, pairs, out)


def _matcher(setting: Setting) -> Matcher:
    """Experts are trained first, and second derivatives tried."""
    with explaining_memory(setting.config, setting.device, "matching"):
        return sparingly(lambda: matcher_of(setting), setting.networks.spare_memory)


def _finished(setting: Setting, pairs: SyntheticPairs, out: Path) -> DistilledSet:
    """Pairs as the set that a run keeps, with rates tuned on val where they were not learned."""
    loss = setting.config.loss
    if not setting.config.learns_rates():
        best = tune(setting, pairs)
        loss, pairs = best.loss, with_rates(pairs, best.rates)
    distilled = setting.distilled(pairs, loss, captions=shown_captions(setting, pairs))
    _save(distilled, out / SET)
    return distilled


def _state(setting: Setting, start: SyntheticPairs, logbook: Logbook) -> Distillation:
    """The state of a run at its last checkpoint, or at its start."""
    state = Distillation(
        copy.deepcopy(start),
        setting.config.distill,
        setting.config.seed,
        together=setting.data_parallel,
    )
    logbook.resume(state, setting.progress)
    return state
