"""Devices with too little memory: an allocator that counts the bytes of all tensors refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.experts import experts_of, train_expert
from lors.runs.pipeline import run
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, setting_of
from lors.system.counting import PeakBytes
from lors.system.errors import LorsError
from lors.system.progress import Silent

SETTINGS = ["encoder.image_size=32", "distill.iterations=1", "experts.epochs=3", "experts.count=1"]
"""Large enough for activations to be what takes memory."""
LARGE = [*SETTINGS, "distill.budget=16", "evaluate.epochs=1"]
BATCH = "matching.batch_size=16"


class Said(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def made(
    folder: Path, *settings: str, limit: float | None = None
) -> tuple[DistilledSet, int, list[str]]:
    """The set of a run, the most bytes it took, and what it said."""
    said, config = Said(), load_config("tiny", [*LARGE, *settings])
    experts_of(setting_of(config))  # all runs share them
    with PeakBytes(limit=limit) as counting:
        run(config, folder, said, references=False, evaluate=False)
    return DistilledSet.load(folder / "distilled.safetensors"), counting.peak, said.lines


def same(first: DistilledSet, second: DistilledSet) -> bool:
    ours, theirs = first.pairs.state_dict(), second.pairs.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(
    ("settings", "frugal"),
    [
        ([BATCH, "matching.derivative=central"], ["recompute=true"]),
        (["matching.kind=distribution"], ["recompute=true"]),
    ],
)
def test_an_iteration_without_enough_memory_is_done_again_to_the_same_bits(
    settings: list[str], frugal: list[str], tmp_path: Path
) -> None:
    plain, most, _ = made(tmp_path / "plain", *settings)
    less, least, _ = made(tmp_path / "less", *settings, *frugal)
    assert same(plain, less)
    assert least < most
    limited, peak, said = made(tmp_path / "limited", *settings, limit=(least + most) / 2)
    assert same(plain, limited)
    assert peak < most
    assert [line for line in said if line.startswith("Memory ran out in iteration 1:")]


def test_graphs_that_do_not_fit_are_made_again_to_the_same_bits(tmp_path: Path) -> None:
    settings = [BATCH, "matching.derivative=kept", "matching.steps=4"]
    plain, most, _ = made(tmp_path / "plain", *settings)
    limited, _, said = made(tmp_path / "limited", *settings, limit=0.6 * most)
    assert same(plain, limited)
    assert [line for line in said if line.startswith("Memory ran out in iteration 1:")]


def test_too_little_memory_is_a_sentence_with_the_settings_of_the_matcher(tmp_path: Path) -> None:
    with pytest.raises(LorsError) as caught:
        made(tmp_path / "run", BATCH, "matching.kind=gradient", limit=2**21)
    assert str(caught.value) == (
        "out of memory on cpu while distilling: lower matching.batch_size or "
        "matching.real_batch_size or distill.budget or encoder.image_size; 'lors plan' says what a "
        "configuration takes"
    )


@pytest.fixture(scope="module")
def larger() -> Setting:
    return setting_of(load_config("tiny", [*LARGE, "experts.batch_size=48"]))


def within(limit: float | None, work: Callable[[], object]) -> int:
    with PeakBytes(limit=limit) as counting:
        work()
    return counting.peak


def trained(setting: Setting) -> Tensor:
    config, model = setting.config, setting.model("expert")
    short = config.experts.model_copy(update={"epochs": 1})
    *_, last = train_expert(model, setting.real["train"], short, config.data, 0)
    return last.theta


def test_an_expert_without_enough_memory_has_the_same_bits(larger: Setting) -> None:
    plain, found = trained(larger), []
    most = within(None, lambda: found.append(trained(larger)))
    least = within(0.9 * most, lambda: found.append(trained(larger)))
    assert least < most
    assert all(torch.equal(plain, theta) for theta in found)
    with pytest.raises(LorsError, match=r"training experts: lower experts\.batch_size or enc"):
        within(0.6 * least, lambda: experts_of(larger))


def test_real_pairs_are_embedded_in_smaller_pieces(larger: Setting) -> None:
    split, model = larger.real["train"], larger.model("embedding")
    plain = split.embed(model)
    found: list[Tensor] = []
    most = within(None, lambda: split.embed(model))
    within(most / 2, lambda: found.extend(split.embed(model)))
    for ours, theirs in zip(plain, found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_frozen_trunks_run_in_smaller_pieces() -> None:
    settings = ["encoder.scope=heads", "encoder.image_head=linear", "encoder.image_size=32"]
    setting = setting_of(load_config("tiny", settings))
    model = setting.flat.model
    images = torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        plain = model.freeze(images)
        found: list[Tensor] = []
        most = within(None, lambda: model.freeze(images))
        within(0.75 * most, lambda: found.append(model.freeze(images)))
    torch.testing.assert_close(found[0], plain)
