from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from lors import Setting
from lors.cli import app
from lors.config import load_config
from lors.encoders.image import frozen_trunk
from lors.evaluation.references import full_data_model
from lors.setting import setting_of
from lors.share.trunk import write_image_trunk
from lors.system.errors import InputError
from tests.conftest import FEATURES


def test_the_file_is_the_trunk_of_the_first_expert(setting: Setting, tmp_path: Path) -> None:
    path = tmp_path / "trunk.safetensors"
    result = CliRunner().invoke(app, ["experts", "tiny", "--trunk", str(path)])
    assert result.exit_code == 0
    config = load_config("tiny", [*FEATURES, f"encoder.image_weights={path}"])
    trunk = frozen_trunk(config.encoder, torch.device("cpu"))
    pixels = torch.rand(4, 3, 16, 16)
    side = full_data_model(setting).image
    with torch.no_grad():
        torch.testing.assert_close(trunk(pixels), side[0](pixels))  # type: ignore[index]


def test_a_frozen_trunk_is_not_written(tmp_path: Path) -> None:
    frozen = setting_of(load_config("tiny", FEATURES))
    with pytest.raises(InputError, match="frozen in scope heads"):
        write_image_trunk(frozen, tmp_path / "trunk.safetensors")


def test_weights_are_safetensors(setting: Setting, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.safetensors"):
        write_image_trunk(setting, tmp_path / "trunk.pt")
