from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lors.cli import app
from lors.config import load_config
from lors.files.tables import read_csv
from lors.runs.opened import Run
from lors.uses.audit import audit
from lors.uses.membership import attack_on_model, attack_on_set, attacked
from lors.uses.trained import train_on_full_data
from tests.conftest import FEATURES

runner = CliRunner()


def test_an_attack_by_chance_finds_one_in_a_hundred() -> None:
    rng = np.random.default_rng(0)
    found = attacked("chance", rng.normal(size=20_000), rng.normal(size=20_000))
    assert found.auc == pytest.approx(0.5, abs=0.02)
    assert found.hits == pytest.approx(0.01, abs=0.004)


def test_ties_do_not_count_as_hits() -> None:
    found = attacked("ties", np.ones(100), np.ones(100))
    assert (found.auc, found.hits) == (0.5, 0.0)


def test_a_selection_gives_its_pairs_away(chosen: Path) -> None:
    found = audit(chosen)
    assert found.copies() == (100, 100)
    attacks = {each.name: each for each in found.attacks}
    # Half of the training images are in the set themselves, and no other can be nearer.
    assert attacks["nearest image of the set"].hits >= 0.45
    assert attacks["nearest image and text"].hits >= 0.45
    assert "100 images and 100 texts are real ones" in found.sentence()
    assert "not show that the set is private" in found.sentence()


def test_a_model_trained_long_gives_its_data_away(chosen: Path) -> None:
    small = ["experts.epochs=200", "experts.batch_size=20", "experts.rate=0.1"]
    config = load_config("tiny", [*FEATURES, *small, "data.pairs.train=40"])
    opened = Run(chosen, ["data.pairs.train=40", "distill.budget=8"])
    setting = opened.setting
    setting.config = setting.config.model_copy(update={"experts": config.experts})
    fresh = attack_on_model(setting, setting.model("fresh"), "fresh")
    trained = attack_on_model(setting, train_on_full_data(setting, 0), "trained")
    assert fresh.auc == pytest.approx(0.5, abs=0.12)
    assert trained.auc > 0.65


def test_pairs_from_nowhere_tell_nothing(chosen: Path) -> None:
    opened = Run(chosen)
    pairs = opened.distilled.pairs
    noise = [part.detach() * 0 + math.pi for part in (pairs.images, pairs.texts)]
    for attack in attack_on_set(opened.setting, *noise):
        assert attack.auc == pytest.approx(0.5, abs=0.1)


def test_the_command_prints_and_draws(tiny_run: Path, tmp_path: Path) -> None:
    done = runner.invoke(app, ["audit", str(tiny_run), "--full-data", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "model trained on the full data" in " ".join(done.output.split())
    rows = read_csv(tmp_path / "audit.csv")
    assert len(rows) == len(Run(tiny_run).distilled)
    cosines = [float(row["image_cosine"]) for row in rows]
    assert cosines == sorted(cosines, reverse=True)
    assert (tmp_path / "audit.png").is_file()
