from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lors import DistilledSet, Setting, load_config
from lors.files import artifacts
from lors.sets.compact import compacted, expanded
from lors.setting import setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError

KIND = "distilled set"


@pytest.fixture
def distilled(setting: Setting) -> DistilledSet:
    return setting.distilled(start_pairs(setting))


def test_a_number_of_eight_bits_is_wrong_by_half_a_step_of_its_row_at_most() -> None:
    rows = torch.randn(4, 300, generator=torch.Generator().manual_seed(0)) * torch.tensor(
        [[1e-3], [1.0], [1e3], [0.0]]
    )
    found = compacted({"images": rows, "rates": torch.tensor([0.1, 0.2])}, 8)
    assert found["images"].dtype == torch.uint8
    again = expanded(found)
    half = rows.abs().amax(1, keepdim=True) / 127 / 2
    assert ((again["images"] - rows).abs() <= 1.001 * half).all()
    assert again["rates"].equal(torch.tensor([0.1, 0.2]))


@pytest.mark.parametrize(("bits", "share"), [(8, 0.3), (16, 0.52)])
def test_a_file_of_fewer_bits_is_smaller_and_holds_the_same_set(
    distilled: DistilledSet, tmp_path: Path, bits: int, share: float
) -> None:
    distilled.save(tmp_path / "whole")
    distilled.save(tmp_path / "compact", bits=bits)
    sizes = {}
    for name in ("whole", "compact"):
        _, tensors = artifacts.load(tmp_path / name, KIND)
        own = [t for key, t in tensors.items() if "_" not in key]
        sizes[name] = sum(t.numel() * t.element_size() for t in own)
    assert sizes["compact"] < share * sizes["whole"]
    again, before = DistilledSet.load(tmp_path / "compact"), distilled.pairs.state_dict()
    assert again.rates == distilled.rates
    for name, tensor in again.pairs.state_dict().items():
        assert tensor.dtype == before[name].dtype
        torch.testing.assert_close(
            tensor, before[name], rtol=0, atol=0.02 * before[name].abs().max().item()
        )
    again.save(tmp_path / "again", bits=bits)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "compact").read_bytes()


def test_a_set_of_other_floats_keeps_them(tmp_path: Path) -> None:
    setting = setting_of(load_config("tiny", ["dtype=float64"]))
    setting.distilled(start_pairs(setting)).save(tmp_path / "set", bits=8)
    assert DistilledSet.load(tmp_path / "set").pairs.images.dtype == torch.float64


def test_other_bits_are_refused_and_so_are_numbers_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="8, 16 or 32 bits, not 4"):
        compacted({}, 4)
    with pytest.raises(InputError, match="texts are too large for 16 bits"):
        compacted({"texts": torch.full((1, 2), 1e6)}, 16)


def test_a_file_without_its_steps_is_refused(distilled: DistilledSet, tmp_path: Path) -> None:
    distilled.save(tmp_path / "set", bits=8)
    header, tensors = artifacts.load(tmp_path / "set", KIND)
    rest = {k: v for k, v in header.items() if k not in ("format", "kind", "checksum")}
    cases = {
        "without a step": {k: t for k, t in tensors.items() if k != "texts.step"},
        "without a step for each row": {**tensors, "texts.step": tensors["texts.step"][:1]},
        "too large": {**tensors, "texts.step": torch.full_like(tensors["texts.step"], 3e38)},
        "holds no rates": {k: t for k, t in tensors.items() if k != "rates"},
    }
    for number, (message, damaged) in enumerate(cases.items()):
        artifacts.save(tmp_path / str(number), KIND, rest, damaged)
        with pytest.raises(InputError, match=message):
            DistilledSet.load(tmp_path / str(number))
