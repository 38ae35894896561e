"""Commands on several ranks: the results are those of one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from lors.comparison import own_table
from lors.comparison.run import fill_table
from lors.config import load_config
from lors.distillation.loop import Distillation
from lors.evaluation.evaluate import evaluate_set
from lors.evaluation.protocol import Outcome
from lors.evaluation.recall import Recall
from lors.evaluation.results import Row
from lors.experts import experts_of
from lors.experts.of_setting import _snapshots
from lors.files.artifacts import load
from lors.matching import MATCHERS
from lors.matching.trajectory import TrajectoryMatcher
from lors.runs.folders import SET
from lors.runs.logbook import Logbook
from lors.runs.pipeline import run
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system import ranks
from lors.system.errors import LorsError
from lors.system.progress import Silent
from tests.ranks import run_ranks, start_ranks

EXACT = ["dtype=float64", "distill.evaluate_every=3", "evaluate.epochs=2"]


SLOW = ["distill.learning_rates={images: 1, texts: 0.1, similarity: 0.01, rates: 0.0001}"]
"""Rates at which rounding does not grow."""

DOUBLE = ["matching.derivative=double"]
"""Differences would magnify the rounding of sums in another order."""


def distilled(
    out: str, settings: list[str], references: bool = False, data_parallel: bool = False
) -> Any:
    config = load_config("tiny", [*EXACT, *settings])
    results = run(config, out, None, references, data_parallel)
    return {name: row.content() for name, row in results.rows.items()}


def tensors(out: Path) -> dict[str, torch.Tensor]:
    return load(out / SET, "distilled set")[1]


def check_same_sets(found: Path, expected: Path) -> None:
    ours, theirs = tensors(found), tensors(expected)
    for name, tensor in theirs.items():
        torch.testing.assert_close(ours[name], tensor, rtol=1e-7, atol=1e-10, msg=name)


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_with_a_trajectory_each_equal_one_process_that_averages_them(
    size: int, tmp_path: Path
) -> None:
    references, settings = size == 2, ["distill.init=k-means"] if size == 4 else []
    settings += DOUBLE
    found = run_ranks(size, distilled, tmp_path / "many", settings, references)
    settings += [f"distill.trajectories={size}"]
    alone = distilled(str(tmp_path / "one"), settings, references)
    assert all(one == found[0] for one in found)
    for name, row in alone.items():
        ours, theirs = (Row.model_validate(content) for content in (found[0][name], row))
        assert ours.recall.mean.content() == pytest.approx(theirs.recall.mean.content())
    check_same_sets(tmp_path / "many", tmp_path / "one")
    lines = [Path(tmp_path / out / "metrics.jsonl").read_text() for out in ("many", "one")]
    assert len({text.count("\n") for text in lines}) == 1


@pytest.mark.parametrize("kind", ["trajectory", "gradient"])
def test_a_run_continues_with_another_number_of_ranks(kind: str, tmp_path: Path) -> None:
    settings = [f"matching.kind={kind}", "distill.evaluate_every=0", *SLOW]
    run_ranks(4, distilled, tmp_path / "run", [*settings, "distill.iterations=3"])
    run_ranks(2, distilled, tmp_path / "run", [*settings, "distill.iterations=5"])
    distilled(str(tmp_path / "run"), settings)
    distilled(str(tmp_path / "whole"), [*settings, "distill.trajectories=4"])
    check_same_sets(tmp_path / "run", tmp_path / "whole")


def test_ranks_that_divide_every_batch_equal_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*SLOW, *DOUBLE]
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home of four"))
    run_ranks(4, distilled, tmp_path / "four", settings, False, True)
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home of one"))
    distilled(str(tmp_path / "one"), settings)
    files = [sorted((tmp_path / f"home of {n}").glob("experts/*/*.safetensors")) for n in NAMES]
    for ours, theirs in zip(*files, strict=True):
        found, expected = (load(path, "trajectory")[1] for path in (ours, theirs))
        torch.testing.assert_close(found["theta"], expected["theta"], rtol=1e-9, atol=1e-12)
        assert torch.equal(found["learned"], expected["learned"])
    check_same_sets(tmp_path / "four", tmp_path / "one")


NAMES = ("four", "one")


def trained() -> list[int]:
    """The experts that this rank trained."""
    setting = setting_of(load_config("tiny", ["experts.count=5", "experts.epochs=2"]))
    mine: list[int] = []

    def note(setting: Setting, expert: int, begun: Any) -> Any:
        if not mine:
            ranks.gather(expert)  # none is done before each has begun one
        mine.append(expert)
        return _snapshots(setting, expert, begun)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lors.experts.of_setting._snapshots", note)
        experts_of(setting)
    return mine


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_divide_the_experts(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_HOME", str(tmp_path))
    found = run_ranks(size, trained)
    assert sorted(expert for part in found for expert in part) == list(range(5))
    assert all(found)


def evaluated(path: str) -> Any:
    return evaluate_set(path, ["evaluate.seeds=3"]).content()


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_divide_the_networks_of_an_evaluation(size: int, tiny_run: Path) -> None:
    found = run_ranks(size, evaluated, tiny_run / SET)
    assert found == [evaluated(str(tiny_run / SET))] * size


def compared(out: str) -> list[Any]:
    table = own_table("tiny", ["tesla-wbce", "lors-wbce"], [])
    settings = ["distill.iterations=2", "evaluate.seeds=1", "evaluate.epochs=2"]
    return [
        (r.row, r.column, r.seed, r.mean, r.failed)
        for r in fill_table(table, out, (0,), settings, jobs=1).records
    ]


def test_ranks_divide_the_runs_of_a_comparison(tmp_path: Path) -> None:
    found = run_ranks(2, compared, tmp_path / "two", limit=240)
    alone = [list(record) for record in compared(str(tmp_path / "one"))]
    assert found == [alone, alone]
    tables = [(tmp_path / out / "table.md").read_text() for out in ("two", "one")]
    recalls = [table.partition("## Storage")[0] for table in tables]  # what follows are costs
    assert recalls[0] == recalls[1]


def differing_sets() -> str:
    pairs = SyntheticPairs(torch.zeros(4, 3, 4, 4), torch.zeros(4, 3))
    pairs.texts.data[0, 0] = float(ranks.rank() == 1)
    with pytest.raises(LorsError) as error:
        Distillation(pairs, load_config("tiny").distill, seed=0).agree()
    return str(error.value)


def diverged(out: str) -> Any:
    """Which rates were halved in a run whose first two tries turn non-finite on one rank."""
    broken: list[int] = []

    class Broken(TrajectoryMatcher):
        def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> torch.Tensor:
            loss = super().backward(synthetic, generator)
            if len(broken) == 2 or ranks.rank() == 0:
                return loss
            broken.append(1)
            time.sleep(0.2)  # rank 0 is ahead
            return torch.tensor(float("nan"))

    MATCHERS.register("broken")(Broken)
    changes = ["distill.retries=3", "distill.iterations=2", *EXACT]
    config = load_config("tiny", ["matching.kind=broken", *changes])
    run(config, out, references=False)
    state = Distillation(start_pairs(setting_of(config)), config.distill, 0)
    Logbook(Path(out)).resume(state, Silent())
    return state.slowed


def test_ranks_slow_down_together_when_numbers_turn_non_finite(tmp_path: Path) -> None:
    found = run_ranks(2, diverged, tmp_path / "run")
    assert sum(found[0].values()) == 2
    assert found[0] == found[1]


def test_sets_that_differ_between_ranks_are_noticed() -> None:
    for sentence in run_ranks(2, differing_sets):
        assert "the synthetic set differs on rank 1 from rank 0" in sentence


def test_an_outcome_survives_its_way_to_the_other_ranks() -> None:
    recall = Recall(1.0, 2.0, 3.0, 4.0, 5.0, 6.5)
    for outcome in (Outcome(recall, recall, 0.1), Outcome(recall, recall, 0.1, recall)):
        assert Outcome.restore(asdict(outcome)) == outcome


LONG = ["distill.iterations=100000", "distill.evaluate_every=0", "distill.checkpoint_every=1"]


def wait_until(there: Any, processes: list[ForkServerProcess]) -> None:
    end = time.monotonic() + 120
    while not there():
        assert time.monotonic() < end
        assert all(process.is_alive() for process in processes)
        time.sleep(0.02)


def end_of(processes: list[ForkServerProcess]) -> list[int | None]:
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def iterations(out: Path) -> int:
    path = out / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def test_a_killed_rank_ends_the_others_at_once(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with start_ranks(3, "distill", "tiny", *LONG, "--no-references", "--out", out) as processes:
        wait_until((out / "checkpoint-previous.safetensors").exists, processes)
        processes[1].kill()
        assert end_of(processes) == [1, -signal.SIGKILL, 1]
    reached = Logbook(out).reached()
    assert reached >= 1
    with start_ranks(2, "distill", "tiny", *LONG, "--no-references", "--out", out) as processes:
        wait_until(lambda: iterations(out) > reached + 1, processes)


def test_one_rank_that_is_asked_to_stop_stops_all_after_the_same_step(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with start_ranks(2, "distill", "tiny", *LONG, "--no-references", "--out", out) as processes:
        wait_until((out / "checkpoint-previous.safetensors").exists, processes)
        processes[1].terminate()
        assert end_of(processes) == [143, 143]
    assert Logbook(out).reached() == iterations(out)


def test_a_rank_that_does_not_answer_ends_the_others_after_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_TIMEOUT", "20")
    out = tmp_path / "run"
    with start_ranks(2, "distill", "tiny", *LONG, "--no-references", "--out", out) as processes:
        wait_until((out / "checkpoint-previous.safetensors").exists, processes)
        assert processes[1].pid is not None
        os.kill(processes[1].pid, signal.SIGSTOP)
        processes[0].join(60)
        assert processes[0].exitcode == 1


def test_torchrun_starts_the_ranks_again_when_one_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["experts.count=4", "experts.epochs=12"]
    expected = experts_of(setting_of(load_config("tiny", settings)))
    monkeypatch.setenv("LORS_HOME", str(tmp_path))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launch += ["--nproc-per-node=2", "--max-restarts=1", "-m", "lors", "experts", "tiny", *settings]
    with subprocess.Popen(launch, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as torchrun:
        while not list(tmp_path.glob("experts/*/unfinished-*/epoch-0001.safetensors")):
            assert torchrun.poll() is None, torchrun.communicate()
            time.sleep(0.01)
        psutil.Process(torchrun.pid).children()[1].kill()
        _, errors = torchrun.communicate()
        assert torchrun.returncode == 0, errors
    for expert in range(4):
        (found,) = tmp_path.glob(f"experts/*/expert-{expert:03d}.safetensors")
        ours, theirs = (load(path, "trajectory")[1] for path in (found, expected.path(expert)))
        assert torch.equal(ours["theta"], theirs["theta"])


def test_a_command_for_one_process_refuses_several() -> None:
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "2"}
    found = subprocess.run(
        [sys.executable, "-m", "lors", "info", "x"], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 2
    assert "lors info is for one process: run it without torchrun" in found.stderr
