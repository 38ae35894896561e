from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from lors.config import load_config
from lors.runs.opened import Run
from lors.runs.pipeline import run
from lors.show.report import retrievals
from lors.show.report.retrievals import Query, retrieval_section


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose recall is that of one network."""
    out = tmp_path_factory.mktemp("run")
    settings = ["evaluate.seeds=1", "evaluate.epochs=4", "distill.iterations=2"]
    run(load_config("tiny", settings), out, references=False)
    return Run(out)


def shown(opened: Run) -> tuple[str, dict[str, Any]]:
    text, block = retrieval_section(opened, opened.setting, thorough=False)["blocks"]
    return text["paragraphs"][0], block


def test_the_network_is_the_one_that_was_evaluated(
    opened: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrievals, "DRAWN", 10_000)
    words, _ = shown(opened)
    recall = opened.results.distilled.recall
    hits = re.findall(r"([\d,]+) of ([\d,]+) drawn", words)
    (ir, captions), (tr, images) = [[int(n.replace(",", "")) for n in pair] for pair in hits]
    assert 100 * ir / captions == pytest.approx(recall.ir5.mean)
    assert 100 * tr / images == pytest.approx(recall.tr5.mean)


def test_right_answers_are_marked_in_hits_and_after_misses(opened: Run) -> None:
    _, block = shown(opened)
    split = opened.setting.pairs.splits["test"]
    kinds = [(entry["kind"], entry["hit"]) for entry in block["entries"]]
    assert kinds == [(k, hit) for k in ("image", "text") for hit in [True] * 3 + [False] * 3]
    for entry in block["entries"]:
        right = [place for place, answer in enumerate(entry["answers"], 1) if answer["right"]]
        assert (right[0] == entry["place"]) if entry["hit"] else (right == [6])
        assert len(entry["answers"]) == (5 if entry["hit"] else 6)
    asked = block["entries"][3]
    image = int(asked["answers"][-1]["name"].removeprefix("image "))
    caption = block["captions"][asked["query"]["caption"]]
    assert caption in [split.captions[c] for c in (split.owner == image).nonzero()[0]]


def test_ties_never_count_in_favour() -> None:
    same = torch.ones(7, 3) / 3**0.5
    found = retrievals._queries(same, same, lambda number: torch.tensor([number]), seed=0)
    assert {query.place for query in found} == {7}
    assert all(query.right not in dict(query.answers) for query in found)


def test_where_hits_are_rare_there_are_more_misses() -> None:
    queries = [Query(number, [], 0, place) for number, place in enumerate([9, 9, 1, 9, 9, 9, 9])]
    chosen = retrievals._hits_and_misses(queries)
    assert [query.number for query in chosen] == [2, 0, 1, 3, 4, 5]


def test_a_network_that_trains_too_long_is_left_out(
    opened: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrievals, "SECONDS", 0)
    (text,) = retrieval_section(opened, opened.setting, thorough=False)["blocks"]
    assert "lors report RUN --thorough" in text["paragraphs"][0]
    assert len(retrieval_section(opened, opened.setting, thorough=True)["blocks"]) == 2
