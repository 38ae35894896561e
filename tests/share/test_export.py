from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lors import load_config
from lors.runs.folders import SET
from lors.runs.opened import Run
from lors.sets.distilled import DistilledSet
from lors.share.export import export
from lors.system.errors import InputError


@pytest.fixture(scope="module")
def exported(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shared") / "tiny"
    export(Run(tiny_run), out)
    return out


@pytest.fixture
def load_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Hugging Face's own, with a cache of its own."""
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return datasets.load_dataset


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_folder_is_complete(exported: Path) -> None:
    assert {path.name for path in exported.iterdir()} == {
        "README.md",
        "config.yaml",
        "distilled.safetensors",
        "images",
        "metadata.jsonl",
        "similarity.csv",
        "texts.safetensors",
    }
    named = (exported / "README.md").read_text("utf-8").split("## Files")[1]
    assert all(f"| {path.name}" in named for path in exported.iterdir() if path.suffix != ".md")


def test_imagefolder_loads_it(exported: Path, tiny_run: Path, load_dataset: Any) -> None:
    loaded = load_dataset("imagefolder", data_dir=str(exported), split="train")
    distilled = Run(tiny_run).distilled
    standard = distilled.text_standard or torch.nn.Identity()
    pixels = distilled.pixels().permute(0, 2, 3, 1).numpy()
    assert len(loaded) == 7
    for row in loaded:
        assert (np.asarray(row["image"]) == pixels[row["index"]]).all()
        assert " a " in f" {row['text']} "
        (words,) = standard(distilled.embed([row["text"]]))
        cosine = torch.cosine_similarity(words, distilled.pairs.texts[row["index"]], dim=0)
        assert row["cosine"] == pytest.approx(cosine.item(), abs=1e-4)
        assert row["start_cosine"] == pytest.approx(1, abs=1e-4)


def test_the_card_alone_says_how_to_load_it(exported: Path, load_dataset: Any) -> None:
    """As from the Hub, where only the name of the dataset is given."""
    loaded = load_dataset(str(exported), split="train")
    assert {"image", "text"} <= set(loaded.column_names)
    assert len(loaded) == 7


def test_the_table_is_the_similarity(exported: Path, tiny_run: Path) -> None:
    head, *rows = csv.reader((exported / "similarity.csv").open(newline=""))
    assert head[:2] == ["image", "text 0"]
    found = np.array([[float(cell) for cell in row[1:]] for row in rows], np.float32)
    assert (found == Run(tiny_run).distilled.pairs.similarity.matrix().numpy()).all()
    s = [line["s_ii"] for line in lines(exported / "metadata.jsonl")]
    assert s == pytest.approx(found.diagonal().tolist())


def test_a_large_similarity_is_an_array(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lors.share.export.CSV_PAIRS", 5)
    export(Run(tiny_run), tmp_path / "out")
    values = np.load(tmp_path / "out" / "similarity.npy", allow_pickle=False)
    assert (values == Run(tiny_run).distilled.pairs.similarity.matrix().numpy()).all()
    assert not (tmp_path / "out" / "similarity.csv").exists()


def test_the_set_in_it_is_the_set(exported: Path, tiny_run: Path) -> None:
    ours, theirs = DistilledSet.load(tiny_run / SET), DistilledSet.load(exported / SET)
    assert theirs.config == ours.config
    for name, tensor in ours.pairs.state_dict().items():
        assert torch.equal(tensor, theirs.pairs.state_dict()[name])
    texts = load_file(exported / "texts.safetensors")["texts"]
    assert torch.equal(texts, ours.texts)
    assert load_config(exported / "config.yaml") == load_config(tiny_run / "config.yaml")


def test_a_set_alone_is_exported_like_its_run(
    exported: Path, tiny_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "set.safetensors").write_bytes((tiny_run / SET).read_bytes())
    export(Run(tmp_path / "set.safetensors"), tmp_path / "out")
    for name in ("metadata.jsonl", "similarity.csv", "texts.safetensors", "config.yaml"):
        assert (tmp_path / "out" / name).read_bytes() == (exported / name).read_bytes()
    assert "What it is worth" not in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_features_come_without_pictures(
    features_run: Path, tmp_path: Path, load_dataset: Any
) -> None:
    out = tmp_path / "out"
    export(Run(features_run), out)
    assert not list(out.rglob("*.png"))
    features = load_file(out / "features.safetensors")["images"]
    assert torch.equal(features, Run(features_run).distilled.images)
    text = (out / "README.md").read_text("utf-8")
    assert "real images nearest to them are left out on purpose" in text
    assert set(load_dataset(str(out), split="train")["index"]) == set(range(len(features)))


def test_given_embeddings_have_no_captions_and_no_folder(
    embeddings_run: Path, tmp_path: Path
) -> None:
    run = Run(embeddings_run)
    export(run, tmp_path / "out")
    rows = lines(tmp_path / "out" / "pairs.jsonl")
    assert "text" not in rows[0]
    assert {row["text_index"] for row in rows} <= set(range(60))
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or str(run.config.data.root).encode() not in path.read_bytes()


def test_a_folder_that_is_there_is_kept(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        export(Run(tiny_run), tmp_path)
    with pytest.raises(InputError, match="is there already"):
        export(Run(tiny_run), tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_export_leaves_nothing(embeddings_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data\.root"):
        export(Run(embeddings_run, ["data.root=/absent"]), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_export_left_is_removed(tiny_run: Path, tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    begun = f".out.export-{platform.node()}-"
    dead, alive = (tmp_path / f"{begun}{process}" for process in (ended.pid, os.getppid()))
    for folder in (dead, alive, tmp_path / ".out.export-elsewhere-1"):
        folder.mkdir()
    export(Run(tiny_run), tmp_path / "out")
    assert not dead.exists()
    assert alive.exists()
    assert (tmp_path / ".out.export-elsewhere-1").exists()
    assert (tmp_path / "out" / SET).is_file()
