"""What a GPU would refuse or wait for: a small run of every matcher on the device ``pretend``.

It runs in a process of its own, for a device must be known before the first backward pass.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.distillation.loop import Distillation
from lors.matching import matcher_of
from lors.matching.second_order import DERIVATIVES
from lors.runs import checkpoints
from lors.runs.pipeline import run
from lors.sets.distilled import DistilledSet
from lors.setting import setting_of
from lors.starts import start_pairs
from tests import pretend
from tests.conftest import FEATURES
from tests.processes import loaded_processes

pytestmark = [
    pytest.mark.skipif(not pretend.available(), reason="this PyTorch has no backends in Python"),
    pytest.mark.cpu("it has a device of its own"),
]

HEADS = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
MLP = [*HEADS, "encoder.image_head=mlp", "encoder.text_head=mlp"]
AUTO = "{images: auto, texts: auto, similarity: auto, rates: auto}"
IDENTITY = ["loss=nce", "similarity.kind=identity"]
WAYS = [
    *(("exact", derivative) for derivative in DERIVATIVES),
    *(("tesla", derivative) for derivative in ("forward", "one-sided")),
]

CASES: dict[str, list[str]] = {
    **{f"{g} {d}": [*MLP, f"matching.gradient={g}", f"matching.derivative={d}"] for g, d in WAYS},
    "unrolled": [*MLP, "matching.gradient=unrolled"],
    "pixels": [],
    "linear heads": HEADS,
    "automatic rates": [*MLP, f"distill.learning_rates={AUTO}"],
    "adam": [
        *MLP,
        f"distill.learning_rates={AUTO}",
        "distill.optimizer=adam",
        "distill.averaging=0.9",
    ],
    "trajectories": [*MLP, "distill.trajectories=2"],
    "dropout": ["encoder.text_head=mlp-published", "matching.derivative=double"],
    "augmented": ["data.augment=true"],
    "heads in pixels": ["encoder.scope=heads", "encoder.image_head=linear"],
    "blend": [*MLP, "matching.blend=0.5"],
    "phases": [*MLP, "matching.phases=[{max_start_epoch: 1}, {max_start_epoch: 2}]"],
    "gradient": [*MLP, *IDENTITY, "matching.kind=gradient"],
    "distribution": [*MLP, *IDENTITY, "matching.kind=distribution"],
    "covariance": [*MLP, *IDENTITY, "matching.kind=covariance"],
    "joint-distribution": [*MLP, "matching.kind=joint-distribution"],
    "geodesic": [*MLP, "matching.kind=joint-distribution", "matching.kernel=geodesic"],
    "analytic": [*HEADS, "matching.kind=analytic", "matching.target=heads"],
    "covariances": [*HEADS, "matching.kind=analytic", "matching.target=covariances"],
    "relation": [*MLP, "matching.kind=relation"],
    "hindsight": [*HEADS, "matching.kind=hindsight"],
    "hindsight mlp": [*MLP, "matching.kind=hindsight"],
}
COMPARED = ("exact double", "pixels", "linear heads", "gradient", "relation", "hindsight mlp")
SMALL = ["distill.iterations=3", "experts.count=1", "distill.learning_rates.rates=0.001"]


class Ran(NamedTuple):
    """What two iterations on a device gave.

    Args:
        losses: of both.
        waits: how often the second waited for the device.
        error: of the first that failed, in words.
    """

    losses: list[float]
    waits: int
    error: str = ""


def ran(device: str, overrides: list[str]) -> Ran:
    try:
        setting = setting_of(load_config("tiny", [f"device={device}", *SMALL, *overrides]))
        matcher = matcher_of(setting)
        state = Distillation(start_pairs(setting), setting.config.distill, seed=0)
        losses = []
        for _ in range(2):
            pretend.waits.clear()
            losses.append(state.step(matcher))
            state.synthetic.rates.tolist()  # as the outer loop does to log them
        return Ran(losses, sum(pretend.waits.values()))
    except Exception as error:
        lines = traceback.format_exception(error)
        return Ran([], 0, "".join(lines[-3:]))


def every_case() -> dict[str, Ran]:
    return {name: ran(pretend.NAME, overrides) for name, overrides in CASES.items()}


@pytest.fixture(scope="module")
def another_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, loaded_processes(), pretend.register) as pool:
        yield pool


@pytest.fixture(scope="module")
def elsewhere(another_process: ProcessPoolExecutor) -> dict[str, Ran]:
    return another_process.submit(every_case).result()


@pytest.mark.parametrize("name", CASES)
def test_an_iteration_waits_twice_for_the_device_and_never_in_an_inner_step(
    name: str, elsewhere: dict[str, Ran]
) -> None:
    """For the loss with what tells whether gradients can be used, and for the learned rates."""
    assert elsewhere[name].error == ""
    assert elsewhere[name].waits == 2


@pytest.mark.parametrize("name", COMPARED)
def test_another_device_learns_the_same(name: str, elsewhere: dict[str, Ran]) -> None:
    assert elsewhere[name].losses == pytest.approx(ran("cpu", CASES[name]).losses, rel=1e-4)


def learned(devices: Sequence[str], file: Path) -> dict[str, Tensor]:
    """A set after an iteration on each device, each from the checkpoint of the one before."""
    for device in devices:
        exact = [*SMALL, *MLP, "matching.derivative=double"]
        setting = setting_of(load_config("tiny", [f"device={device}", *exact]))
        state = Distillation(start_pairs(setting), setting.config.distill, seed=0)
        if file.exists():
            checkpoints.load(file, state)
        state.step(matcher_of(setting))
        checkpoints.save(file, state)
    return {name: tensor.cpu() for name, tensor in state.synthetic.state_dict().items()}


def test_a_run_goes_on_on_another_device_and_back(
    another_process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    moved = another_process.submit(
        learned, ("cpu", pretend.NAME, "cpu"), tmp_path / "moved.safetensors"
    )
    torch.testing.assert_close(moved.result(), learned(["cpu"] * 3, tmp_path / "cpu.safetensors"))


def finish(out: Path) -> None:
    """A whole run there, with experts, evaluation, references and a card."""
    run(load_config("tiny", [f"device={pretend.NAME}", *FEATURES]), out)


def test_a_whole_run_ends_on_another_device_as_on_the_cpu(
    another_process: ProcessPoolExecutor, features_run: Path, tmp_path: Path
) -> None:
    another_process.submit(finish, tmp_path / "run").result()
    ours, theirs = (
        DistilledSet.load(out / "distilled.safetensors") for out in (tmp_path / "run", features_run)
    )
    torch.testing.assert_close(ours.images, theirs.images)
    torch.testing.assert_close(ours.similarity, theirs.similarity)
