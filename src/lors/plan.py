"""What a run will need, from a short measurement on this device and without its data."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lors.config import Config
from lors.encoders import DualEncoder, FlatModel, Frozen, build_dual_encoder
from lors.encoders.image import image_trunk
from lors.encoders.text import text_size
from lors.losses import LOSSES, nce
from lors.matching.meta_gradient import META_GRADIENTS, Inner
from lors.matching.trajectory import distance_ratio
from lors.seeding import generator
from lors.synthetic import SyntheticPairs, pairs_within
from lors.training import Batch, sgd, train
from lors.workbench import check, find_device

__all__ = ["plan"]

SAMPLE = 8
"""Pairs per batch when the speed of expert training is sampled."""


def plan(config: Config) -> dict[str, str]:
    """Parameters, storage, memory and time of a configuration, in words.

    The network is built without pretrained weights and fed noise: sizes and speed are the same.
    """
    check(config)
    device, dtype = find_device(config.device), getattr(torch, config.dtype)
    config = config.model_copy(
        update={"encoder": config.encoder.model_copy(update={"image_weights": None})}
    )
    model = _model(config).to(device, dtype)
    flat = FlatModel(model)
    theta = flat.flatten(model)
    images, texts = _noise(config, model, config.matching.batch_size)
    numbers = images[0].numel() + texts[0].numel()
    pairs = pairs_within(config.distill.budget, numbers, config.similarity)

    step = _seconds(lambda: _meta_gradient(config, flat, theta, images, texts))
    encode = _seconds(lambda: _freeze(model, images)) * pairs / len(images)
    expert = _seconds(lambda: _expert_step(config, model))
    experts, snapshots = config.experts.count, config.experts.epochs + 1
    iteration = encode + step * config.matching.steps
    return {
        "device": str(device),
        "parameters": f"{flat.sides[0]:,} image side + {flat.sides[1]:,} text side",
        "synthetic pairs": f"{pairs}, within the storage of {config.distill.budget} plain pairs",
        "numbers per pair": f"{numbers:,} ({_bytes(4 * numbers * config.distill.budget)} in all)",
        "expert storage": f"{_bytes(experts * snapshots * 4 * theta.numel())} "
        f"({experts} experts x {snapshots} snapshots)",
        "expert training": f"{1000 * expert / SAMPLE:.1f} s per 1,000 pairs seen",
        "one iteration": f"{iteration:.2f} s, {config.matching.steps} inner steps of {len(images)}",
        "distillation": f"{_duration(iteration * config.distill.iterations)} for "
        f"{config.distill.iterations:,} iterations",
        "peak memory": _bytes(_peak(device)),
    }


def _model(config: Config) -> DualEncoder:
    encoder = config.encoder
    dim, tower = text_size(encoder)
    if encoder.scope != "heads":
        return build_dual_encoder(encoder, Frozen(dim, text_tower=tower), 0)
    trunk = image_trunk(encoder.image, None, encoder.image_size)
    features = int(trunk.num_features)  # type: ignore[arg-type]
    pixels = encoder.space == "pixels"
    return build_dual_encoder(encoder, Frozen(dim, features, trunk=trunk if pixels else None), 0)


def _noise(config: Config, model: DualEncoder, count: int) -> tuple[Tensor, Tensor]:
    encoder, draw = config.encoder, generator("plan")
    like = next(model.parameters())
    dim, tower = text_size(encoder)
    size = (3, encoder.image_size, encoder.image_size)
    if encoder.space == "features":
        size = (int(image_trunk(encoder.image, None, encoder.image_size).num_features),)  # type: ignore[arg-type,assignment]
    text = (dim,)
    if tower is not None:
        text = (encoder.text_length, model.text[0].words.embedding_dim)  # type: ignore[index,assignment]
    images = torch.randn(count, *size, generator=draw).to(like)
    return images, torch.randn(count, *text, generator=draw).to(like)


def _meta_gradient(
    config: Config, flat: FlatModel, theta: Tensor, images: Tensor, texts: Tensor
) -> None:
    with torch.no_grad():
        inputs = flat.model.freeze(images)
    pairs = SyntheticPairs(inputs, texts).to(images.device, images.dtype)
    loss = LOSSES[config.loss]

    def inner_loss(theta: Tensor, batch: Batch) -> Tensor:
        return loss(flat(theta, batch.inputs, batch.texts), batch.similarity)

    index = torch.arange(len(images), device=images.device)
    batches = pairs.gather([index], pairs.images)
    objective = partial(distance_ratio, start=theta, target=theta + 1, sides=flat.sides)
    META_GRADIENTS[config.matching.gradient](
        Inner(inner_loss, theta, batches, pairs.rates, flat.sides, objective)
    )


def _freeze(model: DualEncoder, images: Tensor) -> None:
    """Through the frozen trunk and back, which happens once per iteration."""
    pixels = images.detach().requires_grad_()
    inputs = model.freeze(pixels)
    inputs.backward(torch.ones_like(inputs))


def _expert_step(config: Config, model: DualEncoder) -> None:
    images, texts = _noise(config, model, SAMPLE)
    with torch.no_grad():
        inputs = model.freeze(images)
    batch = Batch(inputs, texts, torch.eye(SAMPLE, device=inputs.device, dtype=inputs.dtype))
    train(model, sgd(model, (0.0, 0.0)), [batch], nce)


def _seconds(work: Callable[[], Any]) -> float:
    work()
    begun = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def _peak(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
