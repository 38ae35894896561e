from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from lors.config import Config, load_config
from lors.config.matchers import TrajectoryOptions
from lors.experts import experts_of
from lors.matching import MATCHERS, Matcher
from lors.matching.trajectory import TrajectoryMatcher
from lors.runs import plan as planning
from lors.runs.plan import Plan, plan
from lors.runs.rehearsal import Rehearsal
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.estimate import Cost

HEADS = ["encoder.scope=heads", "encoder.image_head=linear"]


def stored(path: Path) -> int:
    """The bytes of all tensors in a file."""
    with safe_open(path, "pt") as handle:
        return sum(handle.get_tensor(name).nbytes for name in handle.keys())  # noqa: SIM118


def shown(found: Plan) -> dict[str, str]:
    return dict(found.lines())


@pytest.mark.parametrize("compact", [False, True])
def test_a_plan_knows_the_sizes_of_the_run(compact: bool) -> None:
    setting = setting_of(load_config("tiny", [f"experts.compact={compact}".lower()]))
    found, start = plan(setting.config), start_pairs(setting)
    assert found.parameters == setting.flat.sides
    assert found.pairs == len(start)
    assert found.pair_numbers == start.pair_numbers()
    assert found.real_pairs == len(setting.real["train"])
    assert found.expert_bytes == stored(experts_of(setting).path(0))
    assert found.iteration is not None
    assert found.iteration.whole
    assert found.iteration.seconds > 0
    assert found.seconds == 6 * found.iteration.seconds
    assert found.expert_step.seconds > 0
    assert shown(found)["verdict"].startswith("fits: about ")


@pytest.mark.parametrize("kind", list(MATCHERS))
@pytest.mark.parametrize("place", ["image", "pixels", "features"])
def test_every_matcher_can_be_planned(kind: str, place: str) -> None:
    overrides = {"image": [], "pixels": HEADS, "features": [*HEADS, "encoder.space=features"]}
    if kind == "analytic" and place == "image":
        pytest.skip("needs frozen trunks")
    settings = [f"matching.kind={kind}", *overrides[place]]
    if kind == "joint-distribution":
        settings += ["matching.min_start_epoch=1", "matching.max_start_epoch=3"]
    found = plan(load_config("tiny", settings))
    assert found.iteration is not None
    assert found.iteration.seconds > 0
    assert "distillation" in shown(found)


def test_texts_that_train_can_be_planned(tiny_bert: Path) -> None:
    settings = [f"encoder.text=transformers:{tiny_bert}", "encoder.scope=all"]
    config = load_config("tiny", [*settings, "encoder.text_length=6"])
    found, setting = plan(config), setting_of(config)
    assert found.parameters == setting.flat.sides
    assert found.pair_numbers == start_pairs(setting).pair_numbers()


def test_the_texts_of_the_paper_are_planned_without_loading_them() -> None:
    assert plan(load_config("tiny", ["encoder.text=bert"])).pair_numbers == 3 * 16 * 16 + 768


@pytest.mark.parametrize(
    "settings",
    [
        ["similarity.kind=fixed"],  # whose scorer would be an expert
        ["distill.init=k-means", "distill.averaging=0.9"],
        ["matching.phases=[{max_start_epoch: 1}, {max_start_epoch: 2}]", "matching.shortcut=true"],
        ["dtype=bfloat16"],
        ["data.augment=true", "data.source=table", "data.root=/absent"],
        ["encoder.image_weights=/absent.safetensors"],
    ],
)
def test_what_a_plan_does_not_need_is_not_asked_for(settings: list[str]) -> None:
    assert shown(plan(load_config("tiny", settings)))["verdict"].startswith("fits")


def test_a_plan_of_embeddings_reads_only_their_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home"))
    shapes = {"images": (500, 24), "texts": (500, 3, 40)}
    for side, shape in shapes.items():
        np.save(tmp_path / f"{side}.npy", np.full(shape, np.nan, np.float16))  # none is read
    settings = [f"data.root={tmp_path}", *(f"data.annotations.{s}={s}.npy" for s in shapes)]
    found = plan(load_config("features-lors", [*settings, "distill.budget=20"]))
    assert found.pair_numbers == 24 + 40
    assert found.real_pairs == 400  # a tenth each is held out for val and test
    assert not (tmp_path / "home").exists()


def test_a_selection_has_nothing_to_distil() -> None:
    found = plan(load_config("tiny", ["selection.kind=herding", "experts.epochs=1"]))
    assert found.iteration is None
    assert found.pairs == 8
    lines = shown(found)
    assert lines["selection"] == "herding chooses real pairs; nothing is distilled"
    assert "distillation" not in lines


def test_a_plan_runs_the_matcher_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Watched(TrajectoryMatcher):
        def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> torch.Tensor:
            seen.append((len(synthetic), self.options.steps, self.options.batch_size))
            return super().backward(synthetic, generator)

    def watched(setting: Setting) -> Matcher:
        assert isinstance(setting.config.matching, TrajectoryOptions)
        return Watched(setting, setting.config.matching)

    monkeypatch.setattr("lors.runs.rehearsal.matcher_of", watched)
    plan(load_config("tiny"))
    assert seen[:3] == [(3, 1, 2)] * 3
    assert seen[-1] == (7, 3, 5)


def test_what_is_too_large_to_try_is_scaled_up(
    tiny: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cost(rehearsal: Rehearsal, steps: int, share: float) -> Cost:
        return Cost(20 + 7 * steps * share, 1e9 * (1 + share))

    monkeypatch.setattr(Rehearsal, "iteration", cost)
    found = plan(tiny)
    assert found.iteration is not None
    assert not found.iteration.whole
    assert found.iteration.seconds == pytest.approx(20 + 7 * 3)
    assert found.memory == pytest.approx(2e9)
    assert "carried on" in shown(found)["one iteration"]


def test_a_verdict_says_what_to_lower(tiny: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "estimate", lambda *_: Cost(1.0, 20e9))
    found = replace(plan(tiny), available=int(30e9))
    assert found.verdict == "fits: about 20 GB of 30 GB of memory, and distillation takes 6 s"
    assert replace(found, available=int(22e9)).verdict.startswith("tight: ")
    assert replace(found, available=int(10e9)).verdict == (
        "too large: it needs about 20 GB of memory and 10 GB are available; lower "
        "matching.batch_size or matching.steps or distill.budget or experts.batch_size or "
        "encoder.image_size"
    )
