from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lors.cli import app, main
from tests.conftest import FEATURES

runner = CliRunner()


def call(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command as a shell would and give its exit code."""
    monkeypatch.setattr(sys, "argv", ["lors", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    "command",
    [
        "distill",
        "select",
        "compare",
        "experts",
        "evaluate",
        "export",
        "push",
        "plan",
        "info",
        "presets",
        "settings",
    ],
)
def test_every_command_has_help(command: str) -> None:
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert len(result.output) > 150


def test_it_tells_its_version() -> None:
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"lors {version('lors')}\n")


def test_a_shell_completes_commands_and_presets() -> None:
    def offered(*words: str) -> list[str]:
        asked = {"COMP_WORDS": " ".join(["lors", *words]), "COMP_CWORD": str(len(words))}
        env = {"_LORS_COMPLETE": "complete_bash", **asked}
        return runner.invoke(app, [], env=env, prog_name="lors").output.split()

    assert offered("dist") == ["distill"]
    assert "demo" in offered("distill", "de")
    assert offered("distill", "no-such-pre") == []


def test_help_needs_nothing_slow() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "lors", "--help"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    imported = {line.split("|")[-1].strip().partition(".")[0] for line in told.splitlines()}
    assert {"lors", "typer"} <= imported
    slow = "torch torchvision timm transformers numpy scipy PIL pydantic yaml huggingface_hub"
    assert imported.isdisjoint((slow + " markdown_it pygments").split())


def test_help_says_in_a_line_what_each_command_does() -> None:
    for command in ([], ["analyze"]):
        assert "..." not in runner.invoke(app, [*command, "--help"]).output.partition("Commands")[2]


def test_the_whole_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert call("experts", "tiny", monkeypatch=monkeypatch) == 0
    assert call("distill", "tiny", "evaluate.seeds=1", monkeypatch=monkeypatch) == 0
    again = runner.invoke(app, ["distill", "tiny", "evaluate.seeds=1"]).output
    assert "Nothing to do: the run in 'runs/tiny' is finished" in again
    assert re.search(r"\d pairs reach \d+ % of what all 200 reach: a mean recall of", again)
    distilled = Path("runs/tiny/distilled.safetensors")
    result = runner.invoke(app, ["evaluate", str(distilled), "evaluate.epochs=2"])
    assert "IR@1" in result.output
    assert "chance" in result.output
    described = runner.invoke(app, ["info", str(distilled)]).output
    assert "nf_resnet_tiny" in described
    assert "lowrank" in described
    assert "random pairs" in runner.invoke(app, ["info", "runs/tiny"]).output
    quick = ["evaluate.seeds=1", "evaluate.epochs=2"]
    selected = runner.invoke(app, ["select", "herding", "tiny", *quick, "--no-references"])
    assert "runs/tiny-herding/distilled.safetensors" in selected.output
    checkpoint = runner.invoke(app, ["info", "runs/tiny/checkpoint.safetensors"]).output
    assert "iteration" in checkpoint


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--iterations", "5"], "It is a setting: write distill.iterations=5"),
        (["--epochs=3"], "It is a setting: write experts.epochs=3 or evaluate.epochs=3"),
        (["--nonsense"], "No such option: --nonsense"),
    ],
)
def test_an_option_that_is_a_setting_is_answered_with_how_to_write_it(
    words: list[str], hint: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call("distill", "tiny", *words, monkeypatch=monkeypatch) == 2
    assert hint in capfd.readouterr().err


def test_compare_lists_runs_and_shows_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "main-coco" in runner.invoke(app, ["compare", "--table", "list"]).output
    assert "lors-wbce" in runner.invoke(app, ["compare", "--methods", "list"]).output
    options = ["--methods", "lors-wbce", "--budgets", "4,8", "--seeds", "1", "--jobs", "1"]
    quick = ["distill.iterations=1", "evaluate.seeds=1", "evaluate.epochs=2"]
    result = runner.invoke(app, ["compare", "tiny", *quick, *options])
    assert re.search(r"┃ +4 pairs ┃ +8 pairs ┃ +chance ┃", result.output)
    assert "| 4 pairs |" in (tmp_path / "runs/compare-tiny/table.md").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare"],
        ["compare", "tiny", "--budgets", "many"],
        ["compare", "tiny", "--methods", "magic"],
        ["compare", "--table", "tabel"],
        ["compare", "--table", "leaderboard", "--methods", "lors-r5"],
        ["compare", "--table", "leaderboard", "--budgets", "7"],
        ["select", "magic", "tiny"],
        ("distill", "dmo"),
        ("distill", "tiny", "loss=none"),
        ("distill", "tiny", "distill.budget=-1"),
        ("experts", "tiny", "encoder.image=nf_resnet_tny"),
        ("evaluate", "absent.safetensors"),
        ("info", "absent.safetensors"),
        ("presets", "dmo"),
        ("presets", "some.yaml"),
        ("info", "[/b]"),
        ("distill", "tiny", "encoder.text=given"),
        ("distill", "tiny", "encoder.text=bert:x"),
        ("distill", "tiny", "encoder.text=transformers:/absent"),
        ("distill", "tiny", "encoder.image_head=none", "encoder.scope=heads"),
        ("distill", "tiny", "similarity.kind=identity", "distill.fixed=[images,texts,rates]"),
        ("distill", "tiny", "expected.foo=1"),
        ("distill", "tiny", "data.source=karpathy", "data.root=/absent"),
        ("distill", "flickr30k-lors-100"),
        ("distill", "tiny", "data.source=karpathy", "data.root=."),
        ("distill", "tiny", "data.source=embeddings"),
        ("distill", "tiny", "encoder.text=lsa:x"),
        ("compare", "--table", "main-coco", "tiny"),
        ("info", "."),
        ("plan", "features"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*arguments, monkeypatch=monkeypatch) == 2
    captured = capfd.readouterr()
    assert captured.err.startswith("error: ")
    assert "Traceback" not in captured.err
    assert not list(tmp_path.iterdir())


def test_a_comparison_with_failed_runs_or_no_report_says_so_and_ends_with_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    wild = ["distill.learning_rates.images=1e30", "distill.inner_rate=1e6", "evaluate.epochs=2"]
    options = ["--methods", "lors-wbce", "--budgets", "8", "--seeds", "1", "--jobs", "1"]
    out = Path("runs/compare-tiny")
    (out / "report.html").mkdir(parents=True)  # so that the report cannot be written
    assert call("compare", "tiny", *wild, *options, monkeypatch=monkeypatch) == 1
    captured = capfd.readouterr()
    assert "seed 0: " in captured.out
    assert f"All results are in {out}" in captured.out
    assert "error: 1 of 1 runs have no result; all results are saved" in captured.err
    assert "Is a directory" in captured.err
    assert f"'lors report {out}' writes it" in captured.err
    (out / "report.html").rmdir()
    assert call("report", str(out), monkeypatch=monkeypatch) == 0
    assert (out / "report.html").is_file()


def test_a_set_is_evaluated_with_the_trunk_and_weights_asked_for(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    distilled = str(tiny_run / "distilled.safetensors")
    options = ["--image-trunk", "nf_resnet26", "--image-weights", "/absent.safetensors"]
    assert call("evaluate", distilled, *options, monkeypatch=monkeypatch) == 2
    assert "/absent.safetensors" in capfd.readouterr().err
    assert call("evaluate", distilled, "--image-trunk", "nf_rsnet", monkeypatch=monkeypatch) == 2
    assert "'nf_rsnet'" in capfd.readouterr().err


def test_sets_of_a_comparison_are_evaluated_with_another_trunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = ["evaluate.epochs=2", "evaluate.seeds=1"]
    options = ["--methods", "random", "--seeds", "1", "--jobs", "1"]
    command = ["compare", "tiny", *quick, *options]
    assert call(*command, "--image-weights", "hub", monkeypatch=monkeypatch) == 2
    assert "--image-weights belongs to --image-trunk" in capfd.readouterr().err
    more = ["--image-trunk", "resnet10t", "--first-seed", "3"]
    assert call(*command, *more, monkeypatch=monkeypatch) == 0
    assert "8 pairs, on resnet10t" in capfd.readouterr().out
    assert [run.name for run in Path("runs/compare-tiny-from-seed-3/runs").iterdir()] == [
        "8-pairs-random-seed-3"
    ]


def test_controls_of_a_comparison_and_of_one_of_its_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = [*FEATURES, "experts.count=2", "evaluate.tried_rates=[0.1]"]
    options = ["--methods", "herding", "--seeds", "1", "--jobs", "1", "--controls"]
    assert call("compare", "tiny", *quick, *options, monkeypatch=monkeypatch) == 0
    shown = capfd.readouterr().out
    assert "What remains under controls" in shown
    assert "taught by the experts" in shown
    assert Path("runs/compare-tiny/report.html").is_file()
    made = "runs/compare-tiny/runs/8-pairs-random-teachers-s-seed-0/distilled.safetensors"
    options = ["--control", "identity", "--no-references"]
    assert call("evaluate", made, *options, monkeypatch=monkeypatch) == 0
    assert re.search(r"mean recall .* \((nce|wbce|ence), ", capfd.readouterr().out)


def test_a_plan_is_shown() -> None:
    assert "peak memory" in runner.invoke(app, ["plan", "tiny"]).output


def test_an_extra_to_install_is_named_in_full(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert call("distill", "tiny", "encoder.text=bert", monkeypatch=monkeypatch) == 2
    assert "pip install 'lors[transformers]'" in capfd.readouterr().err


def test_a_file_is_not_a_run_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    assert call("distill", "tiny", "--out", str(path), monkeypatch=monkeypatch) == 2
    assert path.read_text() == "mine"
    (tmp_path / "loop.yaml").write_text(f"base: {tmp_path}/loop.yaml")
    assert call("distill", f"{tmp_path}/loop.yaml", monkeypatch=monkeypatch) == 2
    assert "its own base" in capfd.readouterr().err
