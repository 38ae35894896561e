"""What learning a similarity costs: seconds per iteration and peak memory.

The paper (appendix, Efficiency Analysis) finds no difference to the same run without it. The two
runs take turns in one process, so that whatever else the machine does slows both; memory is that of
a fresh process for each.
"""

from __future__ import annotations

import statistics

from lors.config import Config, load_config
from lors.distillation.loop import Distillation
from lors.matching import matcher_of
from lors.setting import resolve, setting_of
from lors.show.analysis.rows import Row
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.memory import peak_memory
from lors.system.progress import Progress, Silent
from lors.system.timing import Step, paired_difference, take_turns
from lors.system.workers import as_they_end, worker_pool

__all__ = ["efficiency"]


def efficiency(config: Config, rounds: int = 20, progress: Progress | None = None) -> list[Row]:
    """Compare a configuration with the same one, and as many pairs, whose S is the identity.

    Args:
        config: with a learned similarity.
        rounds: iterations of each that are timed.
        progress: reports long-running work.

    Returns:
        A row for each: pairs, seconds per iteration with their deviation, peak memory in MB. The
        second also has what the first takes more, and the standard error of that.
    """
    config, progress = resolve(config), progress or Silent()
    if config.similarity.kind == "identity":
        raise InputError("there is nothing to compare: set similarity.kind=lowrank")
    kind = config.similarity.kind
    learned, step = _prepare(config, progress)
    pairs = len(learned.synthetic)
    changes = ["similarity.kind=identity", f"distill.budget={pairs}"]
    plain = load_config(config.model_dump(mode="json"), changes)
    _, plain_step = _prepare(plain, progress)
    seconds = take_turns({"identity": plain_step, kind: step}, rounds, progress)
    difference = paired_difference(seconds[kind], seconds["identity"])
    rows = []
    for name, each, (more, error) in (("identity", plain, (0.0, 0.0)), (kind, config, difference)):
        rows.append(
            {
                "similarity": name,
                "pairs": pairs,
                "iterations": rounds,
                "seconds": statistics.fmean(seconds[name]),
                "deviation": statistics.stdev(seconds[name]),
                "memory_mb": _memory(each) / 1e6,
                "more_seconds": more,
                "error": error,
            }
        )
    return rows


def _prepare(config: Config, progress: Progress) -> tuple[Distillation, Step]:
    """A distillation at its start, and what takes it one iteration further."""
    setting = setting_of(config, progress)
    state = Distillation(start_pairs(setting), config.distill, config.seed)
    matcher = matcher_of(setting)
    return state, lambda: state.step(matcher)


def _memory(config: Config) -> int:
    """Peak memory of a few iterations in a process of their own; data and experts are there."""
    with worker_pool(1) as pool:
        (done,) = as_they_end(pool, [pool.submit(_peak, config.model_dump(mode="json"))])
        return done.result()


def _peak(values: dict[str, object]) -> int:
    config = load_config(values)
    state, step = _prepare(config, Silent())
    for _ in range(3):
        step()
    return peak_memory(state.synthetic.images.device)
