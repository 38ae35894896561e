from __future__ import annotations

import pytest
import torch

from lors.config import load_config
from lors.selection import SELECTIONS
from lors.setting import Setting, setting_of
from lors.setting.resolve import resolve
from lors.starts import INITIALS, start_pairs
from lors.system.errors import InputError


def bench(*settings: str) -> Setting:
    return setting_of(load_config("tiny", list(settings)))


def test_real_pairs_do_not_depend_on_how_many_the_similarity_leaves() -> None:
    paid, plain = bench(), bench("similarity.kind=identity")
    few, many = start_pairs(paid), start_pairs(plain)
    assert len(few) < len(many) == 8
    assert torch.equal(few.images, many.images[: len(few)])


def test_replicas_come_in_twos() -> None:
    pairs = bench("distill.init=replicas", "similarity.kind=identity").start()
    assert torch.equal(pairs.images[::2], pairs.images[1::2])
    assert len(pairs.images.flatten(1).unique(dim=0)) == 4


def test_noise_is_standard_normal_and_the_same_for_a_seed() -> None:
    pairs = bench("distill.init=noise").start()
    assert pairs.images.mean().item() == pytest.approx(0, abs=0.05)
    assert pairs.images.std().item() == pytest.approx(1, abs=0.05)
    assert torch.equal(pairs.images, bench("distill.init=noise").start().images)


def test_any_selection_can_be_a_start() -> None:
    assert set(SELECTIONS) < set(INITIALS)
    herded = bench("distill.init=herding", "similarity.kind=identity")
    (chosen, _), captions = herded.select("herding", 8, "start")
    expected = herded.plain_pairs(chosen, captions)
    assert torch.equal(start_pairs(herded).images, expected.images)
    assert torch.equal(start_pairs(herded).texts, expected.texts)


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="did you mean 'herding'"):
        resolve(load_config("tiny", ["distill.init=hearding"]))
    settings = ["encoder.scope=heads", "encoder.space=features", "encoder.image_head=linear"]
    settings += ["similarity.kind=fixed", "distill.init=cross-covariance"]
    with pytest.raises(InputError, match=r"distill\.init=real"):
        bench(*settings).start()
