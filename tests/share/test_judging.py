"""One call judges any set: its worth, the literature's reading of it, and what it is beside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import lors
from lors.cli import app
from lors.cli.app import console
from lors.evaluation import references
from lors.evaluation.results import FULL_DATA, RANDOM_PAIRS
from lors.system.errors import InputError
from tests.published import LIKE, full, low_rank, written
from tests.share.test_importing import equal

QUICK = [*LIKE[1], "evaluate.epochs=4", "evaluate.tried_rates=[0.1]", "experts.epochs=2"]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("theirs") / "distilled_3000.pt", low_rank())


@pytest.fixture(scope="module")
def judged(theirs: Path) -> lors.Results:
    return lors.judge(theirs, "tiny", QUICK)


def test_a_published_set_stands_beside_random_pairs_and_the_full_data(judged: lors.Results) -> None:
    assert list(judged.rows) == ["distilled set", RANDOM_PAIRS, FULL_DATA]
    assert (judged.distilled.pairs, judged.random_pairs.pairs) == (6, 7)  # of equal storage
    assert judged.full_data.pairs == 200
    a_pair = 4 * (3 * 16 * 16 + 12)
    assert judged.random_pairs.bytes == 7 * a_pair
    assert judged.distilled.bytes == 4 * (6 * (3 * 16 * 16 + 12) + 6 * 5)
    assert {row.networks for row in judged.rows.values()} == {2}


def test_both_readings_are_shown_and_labelled(judged: lors.Results) -> None:
    for row in judged.rows.values():
        assert row.readings.legacy is not None
        assert row.readings.legacy.mean.mean >= row.mean
    assert "distilled set, best on test (legacy)" in str(judged)
    assert "kB" in str(judged)
    assert "legacy" in judged._repr_html_()


def test_an_imported_set_is_worth_the_same_as_its_file(
    judged: lors.Results, theirs: Path, tmp_path: Path
) -> None:
    lors.import_set(theirs, "tiny", QUICK).save(tmp_path / "ours.safetensors")
    again = lors.judge(tmp_path / "ours.safetensors", references=False)
    assert again.distilled == judged.distilled
    assert (
        lors.evaluate(tmp_path / "ours.safetensors", progress=False).recall
        == judged["distilled set"].recall
    )


def test_references_are_measured_once(
    judged: lors.Results, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(references, "reference_row", never)
    again = lors.judge(theirs, "tiny", QUICK)
    assert again.rows == judged.rows
    with pytest.raises(AssertionError, match="measured again"):
        lors.judge(theirs, "tiny", [*QUICK, "evaluate.momentum=0.8"])


def test_a_damaged_cache_is_measured_again(
    judged: lors.Results, lors_home: Path, theirs: Path
) -> None:
    cut = {p: p.read_text()[:-5] for p in (lors_home / "references").glob("*.json")}
    for path, text in cut.items():
        path.write_text(text)
    assert lors.judge(theirs, "tiny", QUICK).rows == judged.rows
    again = [path for path, text in cut.items() if path.read_text() != text]
    assert len([json.loads(path.read_text()) for path in again]) == 2
    for path in cut.keys() - set(again):  # of other tests
        path.unlink()


def test_a_run_directory_is_judged(tiny_run: Path) -> None:
    row = lors.judge(tiny_run, references=False).distilled
    assert row.recall == lors.load(tiny_run).results.distilled.recall  # type: ignore[union-attr]


def test_several_files_need_to_be_like_something(tmp_path: Path) -> None:
    parts = [written(tmp_path / f"{i}.pt", full(3, seed=i)) for i in range(2)]
    with pytest.raises(InputError, match="say what it is like"):
        lors.judge(parts)
    found = lors.judge(parts, "tiny", QUICK, references=False)
    assert found.distilled.pairs == 6
    words = [*map(str, parts), *QUICK, "--like", "tiny", "--no-references"]
    shown = CliRunner().invoke(app, ["evaluate", *words])
    assert str(found.distilled.recall.mean) in shown.output
    gone = CliRunner().invoke(app, ["evaluate", str(parts[0]), "gone.pt", "--like", "tiny"])
    assert "there is no set 'gone.pt'" in str(gone.exception)


@pytest.mark.parametrize("part", ["syn_lr_img", "similarity_mat"])
def test_networks_that_diverge_are_told(part: str, tmp_path: Path) -> None:
    huge = {**full(), "similarity_params": [1e20 * torch.eye(6)]}
    huge["similarity_mat"] = huge["similarity_params"][0]
    bad = {**low_rank(), part: torch.tensor(1e30)} if part == "syn_lr_img" else huge
    found = lors.judge(written(tmp_path / "bad.pt", bad), "tiny", QUICK, references=False)
    assert found.distilled.mean == 0
    assert found.distilled.note.endswith("; 2 of 2 networks diverged")


def test_the_commands_import_judge_and_export(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "width", 200)
    runner, out = CliRunner(), tmp_path / "ours.safetensors"
    made = runner.invoke(app, ["import", str(theirs), *QUICK, "--like", "tiny", "--out", str(out)])
    assert made.exit_code == 0, made.output
    assert "from distilled_3000.pt, lowrank S" in made.output
    shown = runner.invoke(app, ["evaluate", str(out), "--no-references"])
    assert "best on test (legacy)" in shown.output
    assert "storage in bytes" in shown.output
    told = runner.invoke(app, ["info", str(out)])
    assert "distilled_3000.pt" in told.output
    back = tmp_path / "back.pt"
    runner.invoke(app, ["export", str(out), "--format", "published", "--out", str(back)])
    assert equal(torch.load(back, weights_only=True), low_rank())


def test_the_command_asks_for_what_the_file_does_not_say(theirs: Path, tmp_path: Path) -> None:
    for words, sentence in (
        (["import", str(theirs)], "give --like"),
        (["import", str(tmp_path / "absent.pt"), "--like", "tiny"], "there is no file"),
        (["evaluate", str(theirs)], "is not a set of lors"),
    ):
        found = CliRunner().invoke(app, words)
        assert isinstance(found.exception, InputError)
        assert sentence in str(found.exception)
