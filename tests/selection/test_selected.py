"""Selection on a workbench: real pairs in, a set like any other out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lors.config import load_config
from lors.evaluation.evaluate import evaluate_set
from lors.experts import experts_of
from lors.files.tables import read_csv
from lors.runs.folders import SET
from lors.runs.pipeline import run
from lors.selection import SELECTIONS, select
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import derive_seed


@pytest.mark.parametrize("kind", SELECTIONS)
def test_every_method_gives_real_pairs_of_an_image_and_its_own_caption(
    kind: str, bench: Setting
) -> None:
    (images, scores), captions = select(bench, kind, 8, 0)
    assert len(set(images.tolist())) == len(scores) == 8
    assert np.array_equal(bench.real["train"].owner[captions], images)
    again = select(bench, kind, 8, 0)
    assert np.array_equal(again[0][0], images)
    assert np.array_equal(again[1], captions)


def test_clip_scores_by_the_expert_are_the_cosines_of_its_embeddings(bench: Setting) -> None:
    (images, scores), captions = select(bench, "clip-score", 8)
    model, config = bench.model(0), bench.config.experts
    bench.flat.load(experts_of(bench).snapshots(0, [config.epochs])[0], model)
    real = bench.real["train"]
    with torch.no_grad():
        u = model.embed_images(real.inputs(images, model))
        v = model.embed_texts(real.captions(captions, model))
    np.testing.assert_allclose(scores, (u * v).sum(1), rtol=1e-4, atol=1e-5)
    assert np.all(np.diff(scores) <= 0)


def test_a_selected_set_is_saved_listed_and_evaluated_like_any_other(tmp_path: Path) -> None:
    config = load_config("tiny", ["selection.kind=herding"])
    results = run(config, tmp_path, references=False)
    row = results["selected set"]
    assert results.distilled is row
    assert (row.pairs, row.storage) == (8, 8)
    kept = DistilledSet.load(tmp_path / SET)
    assert torch.equal(kept.pairs.similarity.matrix(), torch.eye(8))
    assert row.note == f"{kept.config.loss}, rate {kept.rates[0]:g}"
    assert evaluate_set(tmp_path / SET) == row
    listed = read_csv(tmp_path / "selection.csv")
    bench = setting_of(config)
    (images, _), captions = select(bench, "herding", 8)
    assert [int(line["image"]) for line in listed] == images.tolist()
    texts = bench.pairs.splits["train"].captions
    assert [line["text"] for line in listed] == [texts[caption] for caption in captions]
    assert run(config, tmp_path, references=False) == results


def test_a_fixed_similarity_without_values_is_what_the_scorer_sees(bench: Setting) -> None:
    fixed = setting_of(load_config("tiny", ["similarity.kind=fixed"]))
    start = start_pairs(fixed)
    matrix = start.similarity.matrix()
    count = len(start)
    assert count < 8  # S is stored, so it costs pairs
    assert matrix.diagonal().mean().item() == pytest.approx(1, abs=1e-4)
    assert (matrix.sum() - matrix.diagonal().sum()).item() == pytest.approx(0, abs=1e-3)
    # Up to that scale, it is the cosines of the expert's embeddings of the drawn pairs.
    real = fixed.real["train"]
    rng = np.random.default_rng(derive_seed(fixed.config.seed, "start"))
    images = rng.choice(len(real), 8, replace=False)
    captions = real.draw_captions(images, rng)
    u, v = (torch.from_numpy(np.array(e)) for e in fixed._expert_embeddings)
    u, v = u[images[:count]], v[captions[:count]]
    cosines = F.cosine_similarity(u[:, None], v[None], dim=-1)
    both = torch.stack([matrix.flatten(), cosines.flatten()])
    assert torch.corrcoef(both)[0, 1].item() == pytest.approx(1, abs=1e-4)


def test_given_values_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "nan.npy", np.full((8, 8), np.nan))
    config = load_config(
        "tiny", ["similarity.kind=fixed", f"similarity.values={tmp_path / 'nan.npy'}"]
    )
    with pytest.raises(InputError, match="finite numbers"):
        start_pairs(setting_of(config))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("selection.kind=hearding", "did you mean 'herding'"),
        ("scorer=clip", "scorer=expert"),
        ("scorer=open_clip:RN50", "needs a tag"),
        ("scorer=open_clip:RN5000/openai", "unknown open_clip model"),
    ],
)
def test_bad_names_are_refused_before_any_work(override: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        run(load_config("tiny", [override]), tmp_path / "run")
    assert not (tmp_path / "run").exists()
