from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lors.cli import app
from lors.config import load_config
from lors.evaluation.protocol import measure
from lors.files.tables import read_csv
from lors.setting import setting_of
from lors.uses.proxy import Proxy, StandIn, proxy
from lors.uses.trained import Reached, train_on_full_data
from tests.conftest import FEATURES

runner = CliRunner()
SPACE: dict[str, list[float]] = {"experts.rate": [0.0001, 0.3], "encoder.embed_dim": [2, 16]}
QUICK = ["evaluate.epochs=20", "experts.epochs=6"]


def test_training_on_the_full_data_learns() -> None:
    setting = setting_of(load_config("tiny", [*FEATURES, "experts.epochs=6"]))
    before = measure(setting.model("any"), setting.real["val"]).mean
    assert measure(train_on_full_data(setting, 0), setting.real["val"]).mean > 1.5 * before
    one, again = (setting.flat.flatten(train_on_full_data(setting, 0)) for _ in range(2))
    assert torch.equal(one, again)


def test_pairs_tell_rates_that_learn_from_one_that_does_not(chosen: Path) -> None:
    found = proxy([chosen], SPACE, QUICK, seeds=2)
    assert found.stand_ins[0].recalls.shape == (2, 4)
    assert [each["experts.rate"] for each, _ in found.best(1)] == [0.3]
    assert found.agreements() == []  # nothing to compare with


def test_agreement_is_that_of_the_ranks() -> None:
    full = [Reached(val, 1.0, test) for val, test in ((10, 11), (20, 22), (30, 29), (40, 41))]
    good, bad = np.array([[1.0, 2.0, 4.0, 3.0]]), np.array([[4.0, 3.0, 2.0, 1.0]])
    stand_ins = [StandIn("good", good, 0.1), StandIn("bad", bad, 0.1)]
    first, second = Proxy([{}] * 4, stand_ins, full).agreements()
    assert first.spearman.mean == pytest.approx(0.8)
    assert first.kendall.mean == pytest.approx(2 / 3)
    assert first.regret.mean == pytest.approx(41 - 29)
    assert (second.spearman.mean, second.regret.mean) == pytest.approx((-1, 41 - 11))


def test_the_command_checks_goes_on_and_writes_a_figure(chosen: Path, tmp_path: Path) -> None:
    space, out = tmp_path / "space.yaml", tmp_path / "out"
    space.write_text(json.dumps(SPACE))
    words = ["use", "proxy", str(chosen), *QUICK, "--space", str(space), "--out", str(out)]
    done = runner.invoke(app, [*words, "--check", "--selection", "medoids", "--best", "1"])
    assert done.exit_code == 0, done.output
    assert "random pairs" in done.output
    assert {path.name for path in out.iterdir()} >= {"proxy.png", "proxy.svg", "proxy.csv"}
    rows = read_csv(out / "proxy.csv")
    assert len(rows) == 4
    kept = json.loads((out / "full-data.json").read_text())
    for values in kept.values():
        values["val"] = 77.0
    (out / "full-data.json").write_text(json.dumps(kept))
    again = proxy([chosen], space, QUICK, check=True, out=out)
    assert [each.val for each in again.full] == [77.0] * 4  # nothing was trained again


def test_a_selection_needs_the_check(chosen: Path) -> None:
    done = runner.invoke(app, ["use", "proxy", str(chosen), "--selection", "medoids"])
    assert "--check" in str(done.exception)
