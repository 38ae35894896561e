"""Image trunks: any timm model by name, and a small norm-free ResNet for work on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import timm
import torch
from huggingface_hub import hf_hub_download
from safetensors import SafetensorError
from timm.data import resolve_data_config
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.nfnet import NfCfg, NormFreeNet
from torch import nn

from lors.config import EncoderConfig
from lors.encoders.own_parts import OWN_IMAGES
from lors.encoders.splitting import split_trunk
from lors.encoders.weights import content_digest, not_downloaded, refuse_pickle
from lors.system.errors import InputError, out_of_memory, suggestion
from lors.system.hub import hub_or_cache
from lors.system.memory import check_fits
from lors.system.registry import OWN
from lors.system.seeding import global_seed

__all__ = [
    "check_image_trunk",
    "feature_size",
    "frozen_trunk",
    "given_key",
    "has_batch_norm",
    "hub_place",
    "image_trunk",
    "is_given",
    "native_size",
    "normalisation",
    "trunk_key",
]

# timm reads a module's default_cfgs when it registers the module's models.
default_cfgs = generate_default_cfgs(
    {"nf_resnet_tiny.untrained": {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}}
)


@register_model
def nf_resnet_tiny(pretrained: bool = False, **kwargs: Any) -> NormFreeNet:
    """A norm-free ResNet of 77,000 parameters: three stages of one block, 128 features.

    Paper: `Characterizing signal propagation to close the performance gap in unnormalized ResNets
    <https://arxiv.org/abs/2101.08692>`_
    """
    return build_model_with_cfg(
        NormFreeNet,
        "nf_resnet_tiny",
        pretrained,
        model_cfg=NfCfg(depths=(1, 1, 1), channels=(32, 64, 128), stem_type="3x3", stem_chs=16),
        **kwargs,
    )


ALIASES = {
    "nfnet": "nfnet_l0",
    "nf_regnet": "nf_regnet_b1",
    "regnet": "regnety_016",
    "vit": "vit_tiny_patch16_224",
}
"""The paper's names; ``nf_resnet50`` and ``resnet50`` are timm's own."""


CLIP_PIXELS = {
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
}
"""CLIP's mean and deviation of pixels, per channel."""


def check_image_trunk(name: str, weights: str | None) -> None:
    """Refuse an unknown model or a missing weight file before any work starts."""
    if name.startswith(OWN):
        OWN_IMAGES.choose(name)
        if weights is not None:
            raise InputError(
                f"the image trunk {name} was given in Python: load {weights!r} into it there, and "
                "set encoder.image_weights=none"
            )
        return
    if not timm.is_model(ALIASES.get(name, name)):
        known = [*ALIASES, *timm.list_models()]
        raise InputError(f"unknown image trunk {name!r}{suggestion(name, known)}")
    if weights in (None, "hub"):
        return
    if not Path(weights or "").is_file():
        raise InputError(
            f"encoder.image_weights {weights!r} is not a file: give a path, 'hub' or none"
        )
    refuse_pickle(weights or "", "encoder.image_weights")
    check_fits(Path(weights or "").stat().st_size, f"encoder.image_weights {weights!r}")


def image_trunk(
    name: str,
    weights: str | None,
    size: int,
    normalisation: str = "trunk",
    outputs: str = "features",
) -> nn.Module:
    """A timm model without its classifier, or one's own: images to pooled features.

    Args:
        name: timm's name, one of the paper's, or ``own:NAME``.
        weights: ``"hub"``, the path of a safetensors file, or None for none.
        size: side of the images, for trunks that must know it (transformers).
        normalisation: ``"trunk"``, or ``"clip"`` for CLIP's mean and deviation of pixels.
        outputs: ``"features"``, or ``"logits"`` for those of the classifier.
    """
    check_image_trunk(name, weights)
    if name.startswith(OWN):
        if (normalisation, outputs) != ("trunk", "features"):
            raise InputError(
                f"the image trunk {name} was given in Python, with what it takes and gives: leave "
                "encoder.normalisation and encoder.image_outputs out"
            )
        return OWN_IMAGES[name].build(size, f"the image trunk {name}")
    name = ALIASES.get(name, name)
    cfg = timm.get_pretrained_cfg(name, allow_unregistered=True)
    fixed = {"img_size": size} if cfg is not None and cfg.fixed_input_size else {}
    try:
        file = _hub_file(name) if weights == "hub" else weights
        overlay: dict[str, Any] = CLIP_PIXELS if normalisation == "clip" else {}
        if file is not None:
            overlay = {**overlay, "file": file, "custom_load": False}
        classes = {"num_classes": 0} if outputs == "features" else {}
        return timm.create_model(
            name,
            pretrained=weights is not None,
            pretrained_cfg_overlay=overlay or None,
            **classes,
            **fixed,
        )
    except (OSError, RuntimeError, AssertionError, ValueError, SafetensorError) as error:
        if out_of_memory(error):
            raise
        raise InputError(f"cannot build the image trunk {name!r} at {size} px: {error}") from None


def frozen_trunk(config: EncoderConfig, device: torch.device) -> nn.Module:
    """The image trunk of a configuration, for good as it is; one without weights is drawn once.

    Where ``encoder.trains_from`` names a layer, the part of the trunk before that.
    """
    with global_seed(0, "trunk"):
        trunk = image_trunk(*config.trunk())
    if config.trains_from is not None:
        trunk, _ = split_trunk(trunk.eval(), config.trains_from)
    trunk = trunk.eval().requires_grad_(False)
    return trunk.to(device).to(memory_format=torch.channels_last)


def hub_place(name: str) -> tuple[str, str, str | None]:
    """The repository, file and revision of a model's weights on the Hub.

    Raises:
        InputError: there are none, or none that can be read safely.
    """
    name = ALIASES.get(name, name)
    cfg = timm.get_pretrained_cfg(name, allow_unregistered=True)
    if cfg is None or not cfg.hf_hub_id:
        raise InputError(f"there are no safetensors weights of {name!r} on the Hub: give a file")
    repository, _, revision = cfg.hf_hub_id.partition("@")
    file = cfg.hf_hub_filename or "model.safetensors"
    refuse_pickle(file, f"{name!r} on the Hub")
    return repository, file, revision or None


def _hub_file(name: str) -> str:
    """The weights of a model on the Hub, as safetensors; timm would fall back to pickled ones."""
    repository, file, revision = hub_place(name)
    with hub_or_cache() as answers:
        try:
            return hf_hub_download(repository, file, revision=revision)
        except Exception as error:  # the client raises its own errors and those of its HTTP library
            if not answers:
                raise not_downloaded(repr(repository)) from None
            reason = " ".join(str(error).split())
            raise InputError(f"cannot download the weights of {name!r}: {reason}") from None


def feature_size(trunk: nn.Module) -> int:
    """How many features a trunk gives; some have a last layer before the classifier."""
    size: Any = getattr(trunk, "num_classes", 0) or getattr(trunk, "head_hidden_size", None)
    return int(size or trunk.num_features)  # type: ignore[arg-type]


def native_size(name: str) -> int:
    """The side of the images that a model was made for."""
    if name.startswith(OWN):
        return OWN_IMAGES.choose(name).native_size
    cfg = timm.get_pretrained_cfg(ALIASES.get(name, name), allow_unregistered=True)
    return int(cfg.input_size[-1]) if cfg is not None else 224


def given_key(features: int) -> str:
    """In the place of an image trunk, where images came as embeddings of so many numbers."""
    return f"given|{features}"


def is_given(key: str) -> bool:
    """Whether a key stands for no trunk, but for given embeddings."""
    return key.startswith("given|")


def trunk_key(
    name: str,
    weights: str | None,
    size: int,
    normalisation: str = "trunk",
    outputs: str = "features",
    trains_from: str | None = None,
) -> str:
    """Identifies a trunk with its weights, wherever their file lies, and which part is frozen."""
    if name.startswith(OWN):
        return f"{name}|{OWN_IMAGES.choose(name).digest}|{size}"
    path = Path(weights or "")
    content = content_digest(path).hex()[:16] if path.is_file() else weights
    other = {"clip": "|clip pixels"}.get(normalisation, "") + {"logits": "|logits"}.get(outputs, "")
    other += "" if trains_from is None else f"|trains from {trains_from}"
    return f"{ALIASES.get(name, name)}|{content}|{size}{other}"


def has_batch_norm(trunk: nn.Module) -> bool:
    """Whether a trunk keeps batch statistics, which stay frozen here."""
    return any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in trunk.modules())


def normalisation(trunk: nn.Module) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and standard deviation per channel that a trunk expects of pixels in [0, 1]."""
    found = resolve_data_config({}, model=trunk)
    return tuple(found["mean"]), tuple(found["std"])
