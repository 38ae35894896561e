from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lors.config import load_config
from lors.encoders import image
from lors.encoders.image import feature_size, image_trunk, normalisation, trunk_key
from lors.setting import setting_of
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


def test_a_trunk_may_give_logits_and_take_pixels_as_a_clip_does() -> None:
    plain = image_trunk("nf_resnet_tiny", None, 32)
    published = image_trunk("nf_resnet_tiny", None, 32, "clip", "logits")
    assert normalisation(plain) == ((0.5,) * 3, (0.25,) * 3)
    mean, std = normalisation(published)
    assert (mean[0], std[2]) == (0.48145466, 0.27577711)
    assert published(torch.zeros(2, 3, 32, 32)).shape == (2, feature_size(published)) == (2, 1000)
    keys = {trunk_key("nf_resnet_tiny", None, 32, *how) for how in ((), ("clip",))}
    keys.add(trunk_key("nf_resnet_tiny", None, 32, "trunk", "logits"))
    assert len(keys) == 3


@pytest.mark.parametrize("scope", ["image", "heads"])
def test_a_dual_encoder_has_what_the_trunk_takes_and_gives(scope: str) -> None:
    settings = ["encoder.normalisation=clip", "encoder.image_outputs=logits"]
    setting = setting_of(load_config("tiny", [*settings, f"encoder.scope={scope}"]))
    model = setting.flat.model if scope == "image" else None
    if model is None:  # frozen: the features themselves
        assert setting.features("val").shape[1] == 1000
        return
    assert model.mean[0] == 0.48145466
    assert model.image(torch.zeros(1, 3, 16, 16)).shape == (1, 1000)
    assert model.text(torch.zeros(1, setting.text_trunk.dim)).shape == (1, 1000)


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
