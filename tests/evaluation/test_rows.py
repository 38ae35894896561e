from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

import lors
from lors.encoders import FlatModel
from lors.evaluation import rows as module
from lors.evaluation.rows import evaluation_network, set_row
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, setting_of
from lors.starts import start_pairs


@pytest.fixture(scope="module")
def setting() -> Setting:
    few = ["evaluate={seeds: 3, epochs: 4, checks: 2}"]
    return setting_of(lors.load_config("tiny", few))


@pytest.fixture(scope="module")
def distilled(setting: Setting) -> DistilledSet:
    return setting.distilled(start_pairs(setting))


def test_the_network_of_a_report_is_the_one_that_was_evaluated(
    setting: Setting, distilled: DistilledSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_row(setting, distilled)
    (kept,) = module._kept.values()
    with monkeypatch.context() as patch:
        patch.delattr(module, "snapshots")  # nothing is trained
        assert evaluation_network(setting, distilled, lambda epoch: None) is kept
    again = evaluation_network(setting, distilled, lambda epoch: None)
    assert again is not kept
    flat = FlatModel(kept)
    torch.testing.assert_close(flat.flatten(again), flat.flatten(kept), rtol=0, atol=0)


def test_networks_side_by_side_reach_what_they_reach_alone(
    setting: Setting, distilled: DistilledSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = module._reached(setting, distilled, distilled.loss)
    monkeypatch.setattr("lors.system.cores._places", 3)
    together = module._reached(setting, distilled, distilled.loss)
    assert [asdict(each) for each in together] == [asdict(each) for each in alone]
