from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from lors import load_config
from lors.config import Config
from lors.config.matching import MatchingOptions
from lors.evaluation.evaluate import evaluate_set
from lors.files.artifacts import load
from lors.matching import MATCHERS
from lors.runs.folders import saved_results
from lors.runs.pipeline import run
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.system.errors import DivergedError, InputError


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tiny: Config) -> Path:
    out = tmp_path_factory.mktemp("runs") / "whole"
    run(tiny, out)
    return out


def tensors(run: Path) -> dict[str, torch.Tensor]:
    return load(run / "distilled.safetensors", "distilled set")[1]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_leaves_a_complete_directory(finished: Path, tiny: Config) -> None:
    assert {path.name for path in finished.iterdir() if path.name != ".lock"} == {
        "README.md",
        "config.yaml",
        "data.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "checkpoint-previous.safetensors",
        "distilled.safetensors",
        "results.json",
    }
    assert load_config(finished / "config.yaml") == tiny
    records = [json.loads(line) for line in (finished / "metrics.jsonl").open()]
    assert [record["iteration"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert {"loss", "rate_image", "rate_text", "seconds"} <= set(records[0])
    assert [record["iteration"] for record in records if "recall" in record] == [3, 6]
    results = saved_results(finished)
    assert set(results.rows) == {"full data", "random pairs", "distilled set"}
    assert results.random_pairs.storage >= results.distilled.storage


def test_two_runs_with_one_seed_are_equal(finished: Path, tiny: Config, tmp_path: Path) -> None:
    again = tmp_path / "again"
    run(tiny, again, references=False)
    assert same(tensors(finished), tensors(again))
    other = load_config("tiny", ["seed=1"])
    run(other, tmp_path / "other", references=False)
    assert not same(tensors(finished), tensors(tmp_path / "other"))


@pytest.mark.parametrize("after", [1, 4])
def test_an_interrupted_run_continues_to_the_same_bits(
    after: int, finished: Path, tiny: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between checkpoints, with a half-written line of metrics."""
    from lors.distillation.loop import Distillation

    step = Distillation.step

    def dies(self: Distillation, matcher: object) -> float:
        if self.iteration == after:
            raise MemoryError("killed")
        return step(self, matcher)  # type: ignore[arg-type]

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Distillation, "step", dies)
        with pytest.raises(MemoryError):
            run(tiny, out)
    assert not (out / "distilled.safetensors").exists()
    with (out / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 5, "lo')
    run(tiny, out, references=False)
    assert same(tensors(finished), tensors(out))
    records = [json.loads(line)["iteration"] for line in (out / "metrics.jsonl").open()]
    assert records == [1, 2, 3, 4, 5, 6]


def test_a_finished_run_is_not_repeated_but_can_be_prolonged(
    tiny: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    first = run(tiny, out, references=False)
    with monkeypatch.context() as patch:
        patch.setattr("lors.runs.pipeline.Setting", None)
        assert run(tiny, out, references=False) == first
    longer = load_config("tiny", ["distill.iterations=8"])
    run(longer, out, references=False)
    run(longer, tmp_path / "at once", references=False)
    assert load_config(out / "config.yaml").distill.iterations == 8
    assert same(
        load(out / "checkpoint.safetensors", "checkpoint")[1],
        load(tmp_path / "at once" / "checkpoint.safetensors", "checkpoint")[1],
    )


def test_a_longer_run_with_a_schedule_is_another_run(tmp_path: Path) -> None:
    settings = ["distill.schedule=cosine", "distill.optimizer=adam"]
    run(load_config("tiny", [*settings, "distill.iterations=2"]), tmp_path, references=False)
    with pytest.raises(InputError, match=r"distill\.iterations: 2, not 4"):
        run(load_config("tiny", [*settings, "distill.iterations=4"]), tmp_path)


def test_another_configuration_in_the_same_directory_is_refused(
    finished: Path, tmp_path: Path
) -> None:
    before = (finished / "distilled.safetensors").read_bytes()
    with pytest.raises(InputError, match=r"similarity\.alpha: 1\.0, not 2\.0"):
        run(load_config("tiny", ["similarity.alpha=2"]), finished)
    with pytest.raises(InputError, match=r"distill\.iterations: 6, not 4"):
        run(load_config("tiny", ["distill.iterations=4"]), finished)
    assert (finished / "distilled.safetensors").read_bytes() == before
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        run(load_config("tiny"), tmp_path)


def test_a_bad_configuration_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown loss"):
        run(load_config("tiny", ["loss=none"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_budget_beyond_the_data_is_refused(tmp_path: Path) -> None:
    config = load_config("tiny", ["distill.budget=300"])
    with pytest.raises(InputError, match=r"200 pairs, fewer than distill\.budget"):
        run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_experts_in_a_folder_of_another_model_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "experts"
    run(load_config("tiny", [f"experts.folder={folder}"]), tmp_path / "a", references=False)
    other = load_config("tiny", [f"experts.folder={folder}", "encoder.temperature=0.1"])
    with pytest.raises(InputError, match=r"encoder\.temperature: 0\.07, not 0\.1"):
        run(other, tmp_path / "b")


def test_evaluating_a_saved_set_gives_the_numbers_of_its_run(finished: Path) -> None:
    row = evaluate_set(finished / "distilled.safetensors")
    assert row == saved_results(finished).distilled
    more = evaluate_set(finished / "distilled.safetensors", ["evaluate.seeds=1"])
    assert more.networks == 1


def test_references_can_be_added_to_a_finished_run(tiny: Config, tmp_path: Path) -> None:
    out = tmp_path / "run"
    alone = run(tiny, out, references=False)
    assert list(alone.rows) == ["distilled set"]
    both = run(tiny, out)
    assert set(both.rows) == {"full data", "random pairs", "distilled set"}
    assert both.distilled == alone.distilled


@pytest.mark.parametrize(
    "overrides",
    [
        ["encoder.scope=heads", "encoder.image_head=mlp", "encoder.text_head=mlp"],
        ["distill.init=noise", "data.augment=true", "data.captions=each"],
        ["matching.gradient=unrolled", "matching.ratio=separate", "loss=ence"],
        ["matching.gradient=tesla", "similarity.kind=identity", "loss=nce"],
        ["similarity.kind=full", "loss=bce", "distill.fixed=[images,rates]"],
        ["similarity.kind=diagonal", "evaluate.legacy=true", "dtype=float64"],
        [
            "matching.shortcut=true",
            "matching.starts=independent",
            "matching.phases=[{max_start_epoch: 1}, {min_start_epoch: 1, max_start_epoch: 2}]",
            "distill.averaging=0.9",
            "distill.init=k-means",
        ],
        ["matching.kind=covariance", "distill.learning_rates.images=0.01"],
        [
            "matching={kind: joint-distribution, min_start_epoch: 0, max_start_epoch: 2}",
            "distill.init=cross-covariance",
        ],
    ],
)
def test_every_variant_runs_end_to_end(overrides: list[str], tmp_path: Path) -> None:
    small = ["distill.iterations=2", "distill.evaluate_every=0", "evaluate.epochs=2"]
    config = load_config("tiny", [*small, *overrides])
    results = run(config, tmp_path / "run", references=False)
    assert saved_results(tmp_path / "run") == results
    assert results.distilled.networks == config.evaluate.seeds
    assert (results.distilled.readings.legacy is not None) == config.evaluate.legacy


class Fragile:
    """A matcher whose inner training run blows up unless the inner rates are low."""

    class Options(MatchingOptions):
        learns_rates = True

    def __init__(self, setting: Setting, options: MatchingOptions) -> None:
        self.state: dict[str, torch.Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
        synthetic.images.grad = torch.full_like(synthetic.images, 1e-9)
        return math.nan if synthetic.rates.max() > 0.03 else 0.5


@pytest.fixture
def fragile() -> Iterator[str]:
    MATCHERS.register("fragile")(Fragile)
    yield "matching.kind=fragile"
    MATCHERS.remove("fragile")


def test_numbers_that_turn_non_finite_can_be_tried_again_at_lower_rates(
    tmp_path: Path, fragile: str
) -> None:
    config = [fragile, "distill.inner_rate=0.1"]
    with pytest.raises(DivergedError, match=r"distill\.retries"):
        run(load_config("tiny", [*config, "distill.retries=1"]), tmp_path / "few")
    run(load_config("tiny", [*config, "distill.retries=2"]), tmp_path / "run", references=False)
    assert tensors(tmp_path / "run")["rates"].tolist() == pytest.approx([0.025, 0.025])


def test_rows_are_kept_as_they_come(
    tiny: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise MemoryError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("lors.evaluation.references.random_pairs", dies)
        with pytest.raises(MemoryError):
            run(tiny, tmp_path)
    assert set(saved_results(tmp_path).rows) == {"full data"}
    monkeypatch.setattr("lors.evaluation.references.full_data", dies)
    assert list(run(tiny, tmp_path).rows) == ["full data", "random pairs", "distilled set"]


def test_a_run_does_not_go_on_with_other_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    root, out = tmp_path / "data", tmp_path / "run"
    root.mkdir()
    settings = [
        f"data.root={root}",
        "data.annotations={images: images.npy, texts: texts.npy}",
        "distill.budget=8",
        "distill.iterations=2",
        "evaluate.seeds=1",
        "evaluate.epochs=2",
        "experts.count=1",
        "experts.epochs=2",
    ]
    config = load_config("features", settings)

    def write() -> None:
        for side in ("images", "texts"):
            np.save(root / f"{side}.npy", rng.normal(size=(100, 6)).astype(np.float32))

    write()
    run(config, out, references=False)
    (out / "results.json").unlink()
    run(config, out, references=False)
    (out / "results.json").unlink()
    (out / ".left.77.tmp").write_text("by a killed process")
    write()
    with pytest.raises(InputError, match="the data has changed since the run"):
        run(config, out, references=False)
    assert not (out / ".left.77.tmp").exists()
    (out / "data.json").unlink()  # as in runs of before
    run(config, out, references=False)
