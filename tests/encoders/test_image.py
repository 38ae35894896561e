from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lors.encoders import image
from lors.encoders.image import image_trunk, normalisation
from lors.system.errors import InputError


def test_the_default_trunk_is_small_and_norm_free() -> None:
    trunk = image_trunk("nf_resnet_tiny", None, 32)
    assert sum(p.numel() for p in trunk.parameters()) == 77_072
    assert not any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in trunk.modules())
    assert trunk(torch.zeros(2, 3, 32, 32)).shape == (2, 128)


@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224", "nf_resnet26"])
def test_any_timm_model_gives_pooled_features(name: str) -> None:
    trunk = image_trunk(name, None, 64).eval()
    assert trunk(torch.zeros(1, 3, 64, 64)).shape == (1, trunk.num_features)


def test_weights_are_read_from_a_local_file(tmp_path: Path) -> None:
    trained = image_trunk("nf_resnet_tiny", None, 32)
    path = tmp_path / "weights.safetensors"
    save_file(trained.state_dict(), path)
    loaded = image_trunk("nf_resnet_tiny", str(path), 32)
    x = torch.ones(1, 3, 32, 32)
    torch.testing.assert_close(loaded(x), trained(x))


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"x": torch.ones(1)}, path)
    with pytest.raises(InputError, match="cannot build"):
        image_trunk("nf_resnet_tiny", str(path), 32)


def test_a_trunk_brings_its_own_normalisation() -> None:
    mean, std = normalisation(image_trunk("resnet10t", None, 32))
    assert mean == (0.485, 0.456, 0.406)
    assert std == (0.229, 0.224, 0.225)


def test_weights_in_any_other_format_are_refused_unopened(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    torch.save(image_trunk("nf_resnet_tiny", None, 32).state_dict(), path)
    with pytest.raises(InputError, match=r"not a \.safetensors file, and no other is read"):
        image_trunk("nf_resnet_tiny", str(path), 32)


def test_weights_of_the_hub_are_safetensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = tmp_path / "model.safetensors", []
    trained = image_trunk("resnet10t", None, 32)
    save_file(trained.state_dict(), path)

    def download(repository: str, file: str, revision: str | None) -> str:
        asked.append((repository, file, revision))
        return str(path)

    monkeypatch.setattr(image, "hf_hub_download", download)
    loaded = image_trunk("resnet10t", "hub", 32).eval()
    x = torch.ones(1, 3, 32, 32)
    torch.testing.assert_close(loaded(x), trained.eval()(x))
    assert asked == [("timm/resnet10t.c3_in1k", "model.safetensors", None)]


def test_a_hub_that_cannot_be_reached_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(repository: str, file: str, revision: str | None) -> str:
        raise ConnectionError("no\nnetwork")

    monkeypatch.setattr("lors.system.hub.hub_answers", lambda: True)
    monkeypatch.setattr(image, "hf_hub_download", download)
    with pytest.raises(InputError, match="cannot download the weights of 'resnet10t': no network"):
        image_trunk("resnet10t", "hub", 32)
    with pytest.raises(InputError, match="no safetensors weights of 'nf_resnet_tiny'"):
        image_trunk("nf_resnet_tiny", "hub", 32)
