"""What runs, comparisons and analyses leave behind, and the caches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from lors import DistilledSet
from lors.comparison.references import _known_references
from lors.comparison.results import Record, Reference, write_results
from lors.comparison.table import Table, Variant
from lors.config import load_config
from lors.data.decoded import cached_images
from lors.data.pairs import Item
from lors.encoders.given_text import GivenText
from lors.evaluation.recall import METRICS
from lors.evaluation.results import Readings, Results, Row
from lors.evaluation.statistic import Recalls, Statistic
from lors.runs.card import card
from lors.runs.folders import CONFIG, LOG, RESULTS, SET, read_results
from lors.runs.info import describe
from lors.runs.logbook import Logbook
from lors.runs.opened import Run
from lors.sets.synthetic import SyntheticPairs
from lors.show.analysis.rows import read_rows
from lors.show.figures import make_figure
from lors.show.report.write import write_report
from lors.similarity import Fixed, LowRank
from lors.starts.similarity import _read as _read_similarity
from lors.system.progress import Silent
from tests.fuzz import mutate
from tests.fuzz.target import Target

RECALL = Recalls(**dict.fromkeys((*METRICS, "mean"), Statistic(mean=12.5, std=0.5)))
ROW = Row(
    pairs=3,
    storage=3.5,
    networks=2,
    note="wbce, rate 0.1",
    recall=Readings(last=RECALL, chosen=RECALL, legacy=RECALL),
)


def features_set() -> DistilledSet:
    """A set of three features, whose data is nowhere."""
    torch.manual_seed(0)
    pairs = SyntheticPairs(torch.randn(3, 4), torch.randn(3, 2), LowRank(3, rank=1))
    settings = ["data.root=/nowhere", "distill.budget=9", "similarity.rank=1"]
    config = load_config("features", settings)
    return DistilledSet(pairs, config, GivenText(2, "given"), (), (), "given|4")


def make_run(root: Path) -> None:
    """A run directory without its results."""
    made = features_set()
    made.save(root / SET)
    (root / CONFIG).write_text(made.config.yaml(), "utf-8")


def make_results(root: Path) -> list[bytes]:
    make_run(root)
    iterations = DistilledSet.load(root / SET).config.distill.iterations
    results = Results(
        iterations=iterations,
        seconds_to_distil=75.5,
        peak_memory=10**9,
        versions={"lors": "0.1.0"},
        rows={"full data": ROW, "random pairs": ROW, "distilled set": ROW},
    )
    return [json.dumps(results.content()).encode()]


def read_run(root: Path) -> None:
    """Everything that shows the results of a run."""
    describe(root)
    run = Run(root)
    rows = read_results(root, run.config).rows
    assert "12.5" in card(run.distilled, rows, {}) or rows != {"distilled set": ROW}
    page = write_report(root).read_text("utf-8")
    assert "</html>" in page


def make_metrics(root: Path) -> list[bytes]:
    make_run(root)
    numbers = {"loss": 0.5, "rate_image": 0.1, "rate_text": 0.1}
    records = [{"iteration": i, **numbers, "seconds": i / 2} for i in range(1, 5)]
    records[2]["recall"] = 12.5
    return ["".join(json.dumps(record) + "\n" for record in records).encode()]


def read_metrics(root: Path) -> None:
    assert write_report(root).is_file()
    assert Logbook(root).seconds() >= 0


TABLE = Table(
    title="Methods",
    rows=(Variant(label="8 pairs", preset="tiny"),),
    columns=(Variant(label="Random"), Variant(label="LoRS")),
    published={"8 pairs": {"LoRS": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}},
)


def make_comparison(root: Path) -> list[bytes]:
    recalls = dict.fromkeys((*METRICS, "mean"), 12.5)
    records = [
        Record("8 pairs", "Random", 0, 8, 8.0, 2, **recalls),  # type: ignore[arg-type]
        Record("8 pairs", "LoRS", 0, 7, 7.5, 2, **recalls, seconds=60.0),  # type: ignore[arg-type]
        Record("8 pairs", "LoRS", 1, failed="diverged"),
    ]
    reference = Reference(rows=["8 pairs"], columns=["Random", "LoRS"], recall=RECALL)
    write_results(TABLE, records, [reference], root)
    return [(root / RESULTS).read_bytes()]


def read_comparison(root: Path) -> None:
    assert "</html>" in write_report(root).read_text("utf-8")


def make_references(root: Path) -> list[bytes]:
    return [json.dumps(dict.fromkeys(("one", "two"), RECALL.content())).encode()]


def read_references(root: Path) -> None:
    for name, recall in _known_references(root / "full-data.json").items():
        assert isinstance(name, str)
        assert "±" in str(recall.mean)


def make_variances(root: Path) -> list[bytes]:
    head = "dataset,kind,images,encoder,dimensions,variance"
    rows = ["scenes,pairs,200,resnet18,512,0.5", "dtd,labelled,100,resnet18,512,0.25"]
    return ["\n".join([head, *rows]).encode()]


def read_variances(root: Path) -> None:
    make_figure("variance", root / "table.csv", root / "figures")


def make_variances_json(root: Path) -> list[bytes]:
    row = {"dataset": "scenes", "kind": "pairs", "images": 200, "encoder": "resnet18"}
    return [json.dumps([{**row, "dimensions": 512, "variance": 0.5}]).encode()]


def read_variance_rows(root: Path) -> None:
    for row in read_rows(root / "table.json", ("dataset", "variance")):
        assert set(row) == {"dataset", "variance"}


def make_similarity(root: Path) -> list[bytes]:
    values = np.random.default_rng(0).normal(size=(4, 4))
    made = []
    for dtype in (np.float32, np.float64, np.int8):
        np.save(root / "values.npy", values.astype(dtype))
        made.append((root / "values.npy").read_bytes())
    return made


def read_similarity(root: Path) -> None:
    similarity = Fixed(4, _read_similarity(root / "values.npy"))
    assert similarity(torch.arange(2)).isfinite().all()


@contextmanager
def at_home(folder: Path) -> Iterator[None]:
    """Keep caches in a folder."""
    before = os.environ.get("LORS_HOME")
    os.environ["LORS_HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("LORS_HOME")
        if before is not None:
            os.environ["LORS_HOME"] = before


def items() -> list[Item]:
    return [Item(f"{i}", ("a",), lambda: Image.new("RGB", (4, 4))) for i in range(3)]


def make_cache(root: Path) -> list[bytes]:
    with at_home(root / "home"):
        cached_images(items(), 4, Silent())
    (cache,) = (root / "home").rglob("*.npy")
    return [cache.read_bytes()]


def read_cache(root: Path) -> None:
    (cache,) = (root / "home").rglob("*.npy")
    cache.write_bytes((root / "cache.npy").read_bytes())
    with at_home(root / "home"):
        images = cached_images(items(), 4, Silent())
    assert images.shape == (3, 3, 4, 4)
    assert images[:].max() <= 255


JSON = (mutate.swap_in_json,)
ARRAY = (mutate.change_array,)
RUN_TARGETS = {
    "run results": Target(RESULTS, make_results, JSON, read_run, share=0.05),
    "metrics": Target(LOG, make_metrics, (mutate.swap_in_json_lines,), read_metrics, share=0.05),
    "comparison": Target(RESULTS, make_comparison, JSON, read_comparison, share=0.5),
    "full data": Target("full-data.json", make_references, JSON, read_references),
    "variances": Target(
        "table.csv",
        make_variances,
        (mutate.change_cells,),
        read_variances,
        share=0.005,
        needs="matplotlib",
    ),
    "variance rows": Target("table.json", make_variances_json, JSON, read_variance_rows),
    "similarity": Target("values.npy", make_similarity, ARRAY, read_similarity),
    "image cache": Target("cache.npy", make_cache, ARRAY, read_cache),
}
