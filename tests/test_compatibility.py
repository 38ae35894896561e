"""Files of earlier versions load, files of later ones are refused with a sentence.

``fixtures/format-1`` was written before artefacts had checksums and headers had schemas.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from lors import DistilledSet
from lors.config import load_config
from lors.distillation.state import State
from lors.encoders.lsa import Lsa
from lors.experts import TrajectoryStore
from lors.files import artifacts
from lors.files.headers import FORMAT
from lors.runs import checkpoints
from lors.runs.info import describe
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import LowRank
from lors.system.errors import InputError
from lors.system.progress import Silent

OLD = Path(__file__).parent / "fixtures" / "format-1"


def test_an_old_set_loads_and_is_saved_as_a_new_one(tmp_path: Path) -> None:
    old = DistilledSet.load(OLD / "distilled.safetensors")
    assert len(old) == 4
    assert old.embed(["a red star"]).shape == (1, 3)
    old.save(tmp_path / "new.safetensors")
    header, tensors = artifacts.load(tmp_path / "new.safetensors", "distilled set")
    assert header["checksum"]
    for name, tensor in load_file(OLD / "distilled.safetensors").items():
        assert torch.equal(tensors[name], tensor), name


def test_an_old_checkpoint_is_resumed() -> None:
    config = load_config("tiny").distill
    pairs = SyntheticPairs(torch.zeros(4, 3, 4, 4), torch.zeros(4, 3), LowRank(4, rank=1))
    state = State(pairs, config, seed=0)
    checkpoints.load(OLD / "checkpoint.safetensors", state)
    assert state.iteration == 1
    assert state.best_recall == 12.5
    assert pairs.images.any()


def test_old_experts_are_used() -> None:
    store = TrajectoryStore(OLD, {"data": "flickr"})
    assert store.snapshots(0, [0, 2]).shape == (2, 5)
    assert store.learned(0).tolist() == [[True, False], [True, True]]


def test_an_old_text_trunk_is_used() -> None:
    trunk = artifacts.load(OLD / "text-trunk.safetensors", "text trunk")
    lsa = Lsa.restore(load_config("tiny").encoder, *trunk)
    assert lsa.embed(["a red star"], Silent()).any()


@pytest.mark.parametrize("path", sorted(OLD.iterdir()), ids=lambda path: path.stem)
def test_a_newer_format_is_refused_whatever_else_it_says(path: Path, tmp_path: Path) -> None:
    assert describe(path)["format"] == 1
    newer = tmp_path / path.name
    about = {"format": FORMAT + 1, "kind": "something new", "config": "elsewhere"}
    save_file(load_file(path), newer, {"lors": json.dumps(about)})
    with pytest.raises(InputError, match=rf"format {FORMAT + 1}, .* up to {FORMAT}: upgrade lors"):
        describe(newer)
