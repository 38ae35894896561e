from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lors.config import load_config
from lors.evaluation.recall import METRICS
from lors.runs.folders import SET
from lors.runs.opened import Run
from lors.runs.pipeline import run
from lors.show.report.measured import curves_section
from lors.show.report.run import run_content
from tests.show.report.reading import blocks_of, section_of

QUICK = ("evaluate.seeds=1", "evaluate.epochs=2", "distill.iterations=2")
FEATURES = ("encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear")


def made(out: Path, *settings: str) -> dict[str, Any]:
    """The content of the report of a short run."""
    run(load_config("tiny", [*QUICK, *settings]), out, references=False)
    return run_content(Run(out), out)


@pytest.fixture(scope="module")
def content(tiny_run: Path) -> dict[str, Any]:
    return run_content(Run(tiny_run), tiny_run)


def test_recalls_are_those_of_the_results(content: dict[str, Any], tiny_run: Path) -> None:
    rows = Run(tiny_run).results.rows
    _, bars, table, _ = section_of(content, "Recall")["blocks"]
    means = {name: row.recall.mean for name, row in rows.items()}
    found = {bar["name"]: (bar["mean"], bar["deviation"]) for bar in bars["groups"][0]["bars"]}
    assert found == {name: (mean.mean, mean.std) for name, mean in means.items()}
    shown = [[cell["text"] for cell in row] for row in table["rows"]]
    assert shown.pop()[0] == "chance"
    for name, *cells in shown:
        numbers = [getattr(rows[name].recall, metric) for metric in (*METRICS, "mean")]
        assert cells == [str(rows[name].pairs), *map(str, numbers)]


def test_two_sentences_say_what_was_done_and_what_it_is_worth(
    content: dict[str, Any], tiny_run: Path
) -> None:
    mean = Run(tiny_run).results.distilled.mean
    done, worth = content["lead"]
    assert "the 200 training pairs of the built-in scenes, 7 synthetic pairs" in done
    assert f"mean recall of {mean:.1f} %" in worth
    assert "random pairs" in worth
    assert "full data" in worth


def test_curves_are_the_metrics(content: dict[str, Any], tiny_run: Path) -> None:
    (block,) = blocks_of(content, "curves")
    loss, rates, recall = (chart["series"] for chart in block["charts"])
    metrics = Run(tiny_run).metrics
    assert [x for x, _ in loss[0]["points"]] == [record["iteration"] for record in metrics]
    assert loss[0]["points"][-1][1] == pytest.approx(metrics[-1]["loss"], rel=1e-4)
    assert [line["name"] for line in rates] == ["image", "text"]
    assert len(recall[0]["points"]) == 2


def test_a_long_curve_is_drawn_as_averages() -> None:
    records = [
        {"iteration": i, "loss": float(i), "rate_image": 1.0, "rate_text": 1.0}
        for i in range(10_000)
    ]
    section = curves_section(records)
    assert section is not None
    points = section["blocks"][0]["charts"][0]["series"][0]["points"]
    assert len(points) == 400
    assert points[0] == (12.0, 12.0)


def test_pairs_come_with_their_captions_before_and_after(
    content: dict[str, Any], tiny_run: Path
) -> None:
    opened, pairs = Run(tiny_run), content["pairs"]
    real = set(opened.setting.pairs.splits["train"].captions)
    assert len(pairs["items"]) == len(opened.distilled)
    assert set(pairs["captions"]) <= real
    assert len(pairs["pictures"]) == 2 * len(opened.distilled)
    for pair in pairs["items"]:
        assert pair["before"]["texts"][0][1] == pytest.approx(1)  # it began as that caption
        assert pair["after"]["texts"]
        assert pair["moved"] > 0


def test_pairs_are_ranked_by_the_similarity_of_the_set(
    content: dict[str, Any], tiny_run: Path
) -> None:
    matrix = Run(tiny_run).distilled.pairs.similarity.matrix().numpy()
    for i, pair in enumerate(content["pairs"]["items"]):
        assert pair["diagonal"] == pytest.approx(matrix[i, i])
        assert pair["largest"] == pytest.approx(np.delete(matrix[i], i).max())
        assert matrix[i, pair["partner"]] == pytest.approx(pair["largest"])


def test_the_command_and_the_configuration_repeat_the_run(
    content: dict[str, Any], tiny_run: Path
) -> None:
    (code,) = blocks_of(content, "code")
    again, *_ = blocks_of(content, "command")
    assert code["text"] == (tiny_run / "config.yaml").read_text()
    assert again["line"].startswith(f"lors distill {tiny_run}/config.yaml --out ")


def test_without_the_real_data_the_rest_is_shown(tiny_run: Path, tmp_path: Path) -> None:
    gone = Run(tiny_run, ["data.source=table", f"data.root={tmp_path / 'gone'}"])
    content = run_content(gone, tiny_run)
    (note,) = content["notes"]
    assert "is not a folder" in note
    assert "data.root=FOLDER" in note
    assert len(content["pairs"]["pictures"]) == len(gone.distilled)
    assert content["pairs"]["captions"] == []
    assert content["pairs"]["items"][0]["before"] is None
    assert blocks_of(content, "heatmap")
    assert not blocks_of(content, "map") + blocks_of(content, "retrievals")


def test_a_set_alone_has_a_report(tiny_run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((tiny_run / SET).read_bytes())
    content = run_content(Run(alone), alone)
    assert content["title"] == "alone"
    assert "not been measured" in content["lead"][1]
    assert {s["title"] for s in content["sections"]}.isdisjoint({"Recall", "Learning curves"})
    assert blocks_of(content, "command")[0]["line"].startswith("lors distill config.yaml")


def test_a_selection_shows_the_pairs_that_were_chosen(tmp_path: Path) -> None:
    content = made(tmp_path / "run", "selection.kind=random")
    assert "random selection chose 8 real pairs" in content["lead"][0]
    assert all(pair["before"] is None for pair in content["pairs"]["items"])
    chosen = (tmp_path / "run" / "selection.csv").read_text()
    for pair in content["pairs"]["items"]:
        assert content["pairs"]["captions"][pair["after"]["texts"][0][0]] in chosen
    assert "S is the identity" in section_of(content, "Similarity")["blocks"][0]["paragraphs"][0]
    assert not blocks_of(content, "heatmap")
    assert blocks_of(content, "command")[0]["line"].startswith("lors select random ")


def test_real_images_stand_in_for_features(tmp_path: Path) -> None:
    content = made(tmp_path / "run", *FEATURES)
    assert "stand in for them" in section_of(content, "Pairs")["blocks"][0]["paragraphs"][0]
    before = content["pairs"]["items"][0]["before"]
    assert before["name"].endswith("cosine 1.00")
    assert content["pairs"]["pictures"][before["picture"]].startswith("data:image/webp")


def test_embeddings_are_shown_by_their_numbers(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    for side, size in (("images", 12), ("texts", 10)):
        np.save(tmp_path / f"{side}.npy", draw.normal(size=(100, size)).astype(np.float32))
    content = made(
        tmp_path / "run",
        "data.source=embeddings",
        f"data.root={tmp_path}",
        "data.pairs={}",
        "data.annotations={images: images.npy, texts: texts.npy}",
        "encoder.embed_dim=8",
        "similarity.rank=1",
        *FEATURES,
    )
    assert content["pairs"]["pictures"] == []
    assert content["pairs"]["items"][0]["after"]["name"].startswith("real image ")
    assert content["pairs"]["captions"][0].endswith("of the training split")
    (block,) = blocks_of(content, "map")
    assert block["sprite"] is None
    assert "place on the two views of the map" in str(section_of(content, "Pairs"))
