"""Work of several sizes with more threads, and with as many as ``lors`` chooses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from benchmarks.speed.iteration import CASES as ITERATIONS
from benchmarks.speed.iteration import SHARED
from benchmarks.speed.ratio import Ratio, ratio
from lors.config import load_config
from lors.evaluation.tuning import trial
from lors.matching import matcher_of
from lors.setting import Setting, setting_of
from lors.setting.threads import threads_of
from lors.starts import start_pairs
from lors.system import ranks
from lors.system.cores import SET_BY_USER
from lors.system.seeding import generator
from lors.system.timing import take_turns

__all__ = ["ratios"]

CASES: Mapping[str, Sequence[str]] = {
    "demo": (*SHARED, *ITERATIONS["scope image, nf_resnet_tiny 32 px"]),
    "heads in features": (*SHARED, *ITERATIONS["scope heads in features"]),
    "heads in pixels, 96 px": (*SHARED, *ITERATIONS["scope heads, efficientnet_lite0 96 px"]),
}
COUNTS = (2, 4, 8)


def ratios(
    rounds: int,
    cases: Mapping[str, Sequence[str]] = CASES,
    counts: Sequence[int] = COUNTS,
    changes: Sequence[str] = ("evaluate={seeds: 2, epochs: 20, checks: 1}",),
) -> list[Ratio]:
    """An iteration, and an evaluation of two networks, of each case.

    The reference is one thread. "as chosen" is what a run does that may use all cores: fewer
    threads for small work, and networks of an evaluation side by side.
    """
    lines = []
    for case, settings in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            config = load_config("demo", [*settings, f"experts.folder={folder}", *changes])
            setting = setting_of(config)
            pairs = start_pairs(setting)
            matcher = matcher_of(setting)
            iterate = partial(matcher.backward, pairs, generator(0))
            evaluate = partial(_evaluate, setting)
            works: dict[str, Callable[[], object]]
            works = {"iteration": iterate, "evaluation": evaluate}
            for what, work in works.items():
                lines += _lines(f"{case}, {what}", setting, work, rounds, counts)
    return lines


def _evaluate(setting: Setting) -> None:
    pairs = start_pairs(setting)

    def network(seed: int) -> float:
        return trial(setting, pairs, setting.loss, "threads benchmark", seed).val

    ranks.divide(range(setting.config.evaluate.seeds), network)


def _lines(
    case: str, setting: Setting, work: Callable[[], object], rounds: int, counts: Sequence[int]
) -> list[Ratio]:
    ways = {f"{count} threads": partial(_with_threads, count, work) for count in (1, *counts)}
    ways["as chosen"] = partial(_as_chosen, setting, work)
    seconds = take_turns(ways, rounds)
    one = seconds.pop("1 threads")
    return [ratio(f"{case}, {way}", found, one) for way, found in seconds.items()]


def _with_threads(count: int, work: Callable[[], object]) -> None:
    with _threads(count):
        work()


def _as_chosen(setting: Setting, work: Callable[[], object]) -> None:
    with _threads(len(os.sched_getaffinity(0))), _nothing_set(), threads_of(setting):
        work()


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _nothing_set() -> Iterator[None]:
    """As if the user had not chosen a number of threads."""
    chosen = {name: os.environ.pop(name) for name in SET_BY_USER if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(chosen)
