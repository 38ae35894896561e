"""The presets hold what the paper's tables say, cell by cell."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from lors.config import Config, difference, load_config, presets
from lors.config.matchers import TrajectoryOptions
from lors.sets.synthetic import pairs_within

PAPER = Path(__file__).resolve().parents[3] / "shared/paper/lors.tex"
needs_paper = pytest.mark.skipif(not PAPER.exists(), reason=f"no source of the paper at {PAPER}")

TABLES = {"flickr30k": "tab:result-main-flickr", "coco": "tab:result-main-coco"}
PAIRS = (100, 200, 500)
METHODS = {"mtt-vl": "MTT-VL", "tesla-wbce": "TESLA", "lors": "LoRS"}
LORS_MEANS = {
    ("flickr30k", 100): 27.38,
    ("flickr30k", 200): 29.52,
    ("flickr30k", 500): 31.58,
    ("coco", 100): 9.37,
    ("coco", 200): 11.38,
    ("coco", 500): 13.45,
}
PAIR_NUMBERS = 3 * 224**2 + 768

cells = pytest.mark.parametrize(
    ("dataset", "pairs", "method"), list(product(TABLES, PAIRS, METHODS))
)
sets = pytest.mark.parametrize(("dataset", "pairs"), list(product(TABLES, PAIRS)))


@cache
def table(label: str) -> tuple[int, str]:
    """A table of the paper: its number in the order of appearance, and its LaTeX."""
    found = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", PAPER.read_text("utf-8"), re.S)
    return next((i, text) for i, text in enumerate(found, 1) if rf"\label{{{label}}}" in text)


def rows(latex: str) -> list[list[str]]:
    """The cells of a tabular, row by row."""
    body = latex.split(r"\begin{tabular}")[1].split(r"\end{tabular}")[0]
    return [[cell.strip() for cell in row.split("&")] for row in body.split(r"\\")]


def number(cell: str) -> Decimal:
    r"""The value in a cell, without its deviation: 8.3 for ``\textbf{ 8.3$\pm$0.2}``."""
    found = re.search(r"\d+(\.\d+)?", cell)
    assert found, cell
    return Decimal(found.group())


def mean(values: list[Decimal]) -> float:
    """The mean of the six recalls to one decimal, a tie to the even digit."""
    assert len(values) == 6
    return float(round(sum(values, Decimal(0)) / 6, 1))


def recalls(dataset: str, pairs: int, method: str) -> list[Decimal]:
    """IR@1/5/10 and TR@1/5/10 of a cell of the two main tables."""
    every = [row for row in rows(table(TABLES[dataset])[1]) if re.search("[IT]R@", "".join(row))]
    block = every[6 * PAIRS.index(pairs) :][:6]
    column = list(METHODS).index(method) - len(METHODS)
    return [number(row[column]) for row in block]


def full_data(dataset: str) -> list[Decimal]:
    """The six recalls of the full training data, which a main table's caption gives."""
    return [Decimal(r) for r in re.findall(r"[IT]R@\d+=([\d.]+\d)", table(TABLES[dataset])[1])]


def hyperparameters(dataset: str, pairs: int) -> dict[str, float]:
    """A column of the table of hyper-parameters, by the paper's names."""
    column = 1 + list(TABLES).index(dataset) * len(PAIRS) + PAIRS.index(pairs)
    numeric = [row for row in rows(table("tab:param")[1]) if len(row) == 7]
    return {_name(row[0]): float(number(row[column])) for row in numeric}


def _name(cell: str) -> str:
    return re.sub(r"\\midrule|\\toprule|\$", "", cell).strip()


def settings(config: Config) -> dict[str, Any]:
    """What a run computes with: neither the description nor the published results."""
    return config.model_dump(mode="json", exclude={"description", "expected"})


@needs_paper
def test_the_main_tables_have_the_columns_and_rows_the_tests_read() -> None:
    for label in TABLES.values():
        head = next(row for row in rows(table(label)[1]) if "Rand" in row)
        for cell, name in zip(head[-3:], METHODS.values(), strict=True):
            assert cell.startswith(name)
        sizes = re.findall(r"shortstack\{(\d+)", table(label)[1])
        assert sizes == [str(pairs) for pairs in PAIRS]


@cells
def test_every_cell_has_its_method(dataset: str, pairs: int, method: str) -> None:
    config = load_config(f"{dataset}-{method}-{pairs}")
    assert isinstance(config.matching, TrajectoryOptions)
    chosen = (config.loss, config.similarity.kind, config.matching.gradient)
    assert config.data.source == dataset
    assert config.distill.budget == pairs
    assert (
        chosen
        == {
            "lors": ("wbce", "lowrank", "tesla"),
            "tesla-wbce": ("wbce", "identity", "tesla"),
            "mtt-vl": ("nce", "identity", "unrolled"),
        }[method]
    )


@cells
def test_every_cell_has_the_papers_setting(dataset: str, pairs: int, method: str) -> None:
    config = load_config(f"{dataset}-{method}-{pairs}")
    encoder, experts = config.encoder, config.experts
    assert (encoder.image, encoder.image_weights, encoder.image_size) == ("nfnet", "hub", 224)
    assert (encoder.text, encoder.text_head, encoder.image_head) == ("bert", "linear", "none")
    assert (encoder.scope, encoder.space) == ("image", "pixels")
    assert (experts.count, experts.epochs) == (20, 10)
    assert (config.distill.init, config.distill.momentum) == ("real", 0.5)
    assert isinstance(config.matching, TrajectoryOptions)
    assert config.matching.ratio == "merged"


@needs_paper
@cells
def test_hyperparameters_are_the_papers(dataset: str, pairs: int, method: str) -> None:
    config = load_config(f"{dataset}-{method}-{pairs}")
    rates, matching = config.distill.learning_rates, config.matching
    assert isinstance(matching, TrajectoryOptions)
    assert hyperparameters(dataset, pairs) == {
        "Pairs": config.distill.budget,
        "lr: image": rates.images,
        "lr: text": rates.texts,
        "lr: lr": rates.rates,
        "lr: similarity": rates.similarity,
        "initial lr": config.distill.inner_rate,
        "batch size": matching.batch_size,
        r"\alpha": config.similarity.alpha,
        "rank r": config.similarity.rank,
        "max start epoch": matching.max_start_epoch,
        "synth steps": matching.steps,
        "expert epochs": matching.expert_epochs,
    }


@needs_paper
@cells
def test_expected_recall_is_the_mean_of_the_papers(dataset: str, pairs: int, method: str) -> None:
    expected = load_config(f"{dataset}-{method}-{pairs}").expected
    assert expected is not None
    assert expected.recall == mean(recalls(dataset, pairs, method))
    assert expected.full_data == mean(full_data(dataset))
    assert f"Table {table(TABLES[dataset])[0]} " in expected.source
    assert f"{pairs} pairs" in expected.source


@sets
def test_expected_recall_of_lors_is_the_papers_own_mean(dataset: str, pairs: int) -> None:
    expected = load_config(f"{dataset}-lors-{pairs}").expected
    assert expected is not None
    assert expected.recall == pytest.approx(LORS_MEANS[dataset, pairs], abs=0.0501)


@sets
def test_published_presets_differ_where_the_code_does(dataset: str, pairs: int) -> None:
    paper = load_config(f"{dataset}-lors-{pairs}")
    published = load_config(f"{dataset}-lors-{pairs}-published")
    every = {
        "loss: wbce-published, not wbce",
        "data.augment: True, not False",
        "data.clean_captions: True, not False",
        "encoder.text_head: mlp-published, not linear",
        "encoder.normalisation: clip, not trunk",
        "experts.loss: nce-published, not nce",
        "experts.drop_last: True, not False",
        "matching.drop_last: True, not False",
        "evaluate.reading: published, not paper",
        "evaluate.epochs: 101, not 100",
        "evaluate.checks: 11, not 10",
        "evaluate.legacy: True, not False",
        "evaluate.tried_losses: ['nce-published', 'wbce-published'], not ['nce', 'wbce']",
    }
    start = "distill.augment_start: True, not False"
    ratio = {"flickr30k": "separate", "coco": "merged-published"}[dataset]
    every.add(f"matching.ratio: {ratio}, not merged")
    meant = {
        ("flickr30k", 500): every | {start, "matching.batch_size: 40, not 20"},
        ("coco", 200): every | {start, "distill.iterations: 2000, not 3000"},
        ("coco", 500): {
            *every,
            "matching.temperature: 0.1, not None",
            "similarity.rank: 40, not 20",
            "matching.batch_size: 30, not 20",
        },
    }.get((dataset, pairs), every | {start})
    assert set(difference(settings(paper), settings(published))) == meant
    assert published.expected == paper.expected


@sets
def test_published_presets_have_the_rates_of_the_published_launch_scripts(
    dataset: str, pairs: int
) -> None:
    """They go with its halved losses, and so does the weight decay."""
    config = load_config(f"{dataset}-lors-{pairs}-published")
    assert (config.experts.rates(), config.distill.inner_rate) == ((0.1, 0.1), 0.1)
    assert config.distill.learning_rates.rates == 0.01
    assert (config.evaluate.momentum, config.evaluate.weight_decay) == (0.9, 0.0005)
    assert config.encoder.temperature == 0.07


def test_methods_have_the_reading_of_the_preset() -> None:
    for name in ("mtt-vl", "lors-ence", "lors-bce", "tesla-wbce", "dc"):
        paper, published = (
            load_config(f"flickr30k-lors-100{reading}", method=name).loss
            for reading in ("", "-published")
        )
        assert published == f"{paper}-published"
    asked = load_config("flickr30k-lors-100-published", ["loss=wbce"])
    assert asked.loss == "wbce"  # whoever says so gets it


@sets
@pytest.mark.parametrize("reading", ["", "-published"])
def test_one_pair_less_pays_for_the_similarity(dataset: str, pairs: int, reading: str) -> None:
    config = load_config(f"{dataset}-lors-{pairs}{reading}")
    budget = config.distill.budget
    assert pairs_within(budget, PAIR_NUMBERS, config.similarity) == budget - 1


@pytest.mark.parametrize("dataset", TABLES)
def test_a_base_says_that_it_is_no_cell(dataset: str) -> None:
    for name in (f"{dataset}-base", f"{dataset}-published-base"):
        assert "not a cell" in load_config(name).description


@pytest.mark.parametrize("name", [n for n in presets() if n.split("-")[0] in TABLES])
def test_descriptions_are_one_short_line_of_their_own(name: str) -> None:
    description = yaml.safe_load(presets()[name])["description"]
    assert len(description) <= 90
    assert "\n" not in description
