"""What a run will need, from a short measurement on this device and without its data."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lors.config import Config
from lors.encoders import DualEncoder, FlatModel, Frozen, build_dual_encoder, build_text_trunk
from lors.encoders.folding import folded
from lors.encoders.image import feature_size, image_trunk
from lors.encoders.transformers_text import TransformersText
from lors.losses import LOSSES, nce
from lors.matching.second_order import DERIVATIVES, fitting_derivative
from lors.matching.trajectory import fits_closed_form, inner_loss, meta_gradient
from lors.matching.unroll import train_differentiably
from lors.sets.synthetic import SyntheticPairs, pairs_within
from lors.setting import resolve
from lors.system.devices import find_device
from lors.system.errors import InputError
from lors.system.memory import peak_memory
from lors.system.seeding import generator
from lors.training import Batch, sgd, train

__all__ = ["plan"]

CLOSED_FORM = "those of linear heads"

SAMPLE = 8
"""Pairs per batch when the speed of expert training is sampled."""

TEXT_SIZES = {"bert": 768, "distilbert": 768, "clip": 512}
"""Embeddings of the paper's text trunks, known without loading them."""


def plan(config: Config) -> dict[str, str]:
    """Parameters, storage, memory and time of a configuration, in words.

    The network is built without pretrained image weights and fed noise: sizes and speed are the
    same. One inner step, one pass through what is frozen and one small step of an expert are
    measured; the rest is arithmetic.
    """
    config = resolve(config)
    if config.data.source == "embeddings":
        raise InputError("a plan needs the sizes of your embeddings: run it, it takes a minute")
    kind = config.matching.kind
    if kind not in ("trajectory", "hindsight"):
        raise InputError(
            f"a plan is of inner training runs, which matching.kind={kind} has none of: run it for "
            "a few iterations instead"
        )
    device = find_device(config.device)
    model = _model(config).to(device, getattr(torch, config.dtype))
    flat = FlatModel(model)
    theta = flat.flatten(model)
    images, texts = _noise(config, model, 1)
    numbers = images[0].numel() + texts[0].numel()
    pairs = pairs_within(config.distill.budget, numbers, config.similarity, config.most_pairs())
    steps, unrolled = config.matching.steps, config.matching.gradient == "unrolled"
    if kind == "hindsight":
        images, texts = _noise(config, model, min(pairs, config.evaluate.batch_size))
        unrolled, derivative = True, "double"
        step, graph = _measured(lambda: _unrolled_step(config, model, images, texts))
    else:
        images, texts = _noise(config, model, config.matching.batch_size)
        derivative = _derivative(config, flat, theta, images, texts)
        step, graph = _measured(
            lambda: _meta_gradient(config, flat, theta, images, texts, derivative), graph=unrolled
        )
    encode, encode_graph = _measured(lambda: _freeze(model, images))
    expert, expert_graph = _measured(lambda: _expert_step(config, model))
    used = min(pairs, steps * len(images)) / len(images)
    trajectories = config.distill.trajectories or 1
    real = _real_batch(config, expert) if kind == "hindsight" else 0.0
    iteration = trajectories * (encode * used + step * steps + real)
    kept = graph if unrolled else 4 * theta.numel()
    more = max(
        kept * (steps - 1) + encode_graph * (used - 1),
        expert_graph * (config.experts.batch_size / SAMPLE - 1),
    )
    return {
        "device": str(device),
        "parameters": f"{flat.sides[0]:,} image side + {flat.sides[1]:,} text side",
        "synthetic pairs": f"{pairs}, within the storage of {config.distill.budget} plain pairs",
        "numbers per pair": f"{numbers:,} ({_bytes(4 * numbers * config.distill.budget)} in all)",
        "expert storage": _expert_storage(config, theta.numel()),
        "expert training": f"{1000 * expert / SAMPLE:.1f} s per 1,000 pairs seen",
        "one iteration": f"{iteration:.2f} s in one process, {trajectories} x {steps} inner steps "
        f"of {len(images)}, second derivatives: {derivative}",
        "distillation": f"{_duration(iteration * config.distill.iterations)} for "
        f"{config.distill.iterations:,} iterations",
        "peak memory": f"about {_bytes(peak_memory(device) + more)}",
    }


def _real_batch(config: Config, expert: float) -> float:
    """Seconds for a network and all teachers on a real batch; a step of an expert is SAMPLE pairs.

    A teacher only runs forward, a third of a step.
    """
    pairs = config.matching.real_batch_size or config.experts.batch_size
    return expert * pairs / SAMPLE * (1 + config.experts.count / 3)


def _expert_storage(config: Config, parameters: int) -> str:
    experts = config.experts
    if experts.compact:
        snapshots = len(config.expert_snapshots())
        numbers, how = 4 + 2 * (snapshots - 1), ", compact"
    else:
        snapshots = experts.epochs + 1
        numbers, how = 4 * snapshots, ""
    stored = _bytes(experts.count * numbers * parameters)
    return f"{stored} ({experts.count} experts x {snapshots} snapshots{how})"


def _model(config: Config) -> DualEncoder:
    encoder = config.encoder.model_copy(update={"image_weights": None})
    if encoder.scope == "all":
        trunk = build_text_trunk(encoder, [])
        assert isinstance(trunk, TransformersText)  # as resolve has checked
        return build_dual_encoder(encoder, Frozen(trunk.dim, text_tower=trunk.tower), 0)
    if encoder.text == "lsa":
        dim = encoder.text_dim
    else:
        dim = TEXT_SIZES.get(encoder.text) or build_text_trunk(encoder, []).dim
    if encoder.scope != "heads":
        return build_dual_encoder(encoder, Frozen(dim), 0)
    image = folded(image_trunk(encoder.image, None, encoder.size()).eval(), encoder.size())
    frozen = Frozen(dim, feature_size(image), image if encoder.space == "pixels" else None)
    return build_dual_encoder(encoder, frozen, 0)


def _noise(config: Config, model: DualEncoder, count: int) -> tuple[Tensor, Tensor]:
    """Images and texts of the right shapes; the first layer of a side tells its inputs."""
    encoder, draw = config.encoder, generator("plan")
    text = [next(m for m in model.text.modules() if isinstance(m, torch.nn.Linear)).in_features]
    if encoder.scope == "all":
        text = [encoder.text_length, model.text[0].words.embedding_dim]  # type: ignore[index]
    image = [3, encoder.size(), encoder.size()]
    if encoder.space == "features":
        image = [
            next(m for m in model.image.modules() if isinstance(m, torch.nn.Linear)).in_features
        ]
    like = next(model.parameters())
    images = torch.randn(count, *image, generator=draw).to(like)
    return images, torch.randn(count, *text, generator=draw).to(like)


def _meta_gradient(
    config: Config,
    flat: FlatModel,
    theta: Tensor,
    images: Tensor,
    texts: Tensor,
    derivative: str,
) -> None:
    with torch.no_grad():
        inputs = flat.model.freeze(images)
    pairs = SyntheticPairs(inputs, texts).to(images.device, images.dtype)
    batches = pairs.gather(
        [torch.arange(len(images), device=images.device)], pairs.images.__getitem__
    )
    meta_gradient(
        flat,
        LOSSES[config.loss],
        config.matching,
        theta,
        theta + 1,
        batches,
        pairs.rates,
        DERIVATIVES.get(derivative),
    )


def _unrolled_step(config: Config, model: DualEncoder, images: Tensor, texts: Tensor) -> None:
    with torch.no_grad():
        inputs = model.freeze(images)
    batch = Batch(inputs, texts, torch.eye(len(inputs)).to(inputs))
    batch = Batch(*(tensor.requires_grad_() for tensor in batch.leaves()))
    every = torch.arange(len(inputs), device=inputs.device)
    rates = inputs.new_full((2,), config.distill.inner_rate)
    protocol = config.evaluate.momentum, config.evaluate.weight_decay
    sides = train_differentiably(model, batch, [every], LOSSES[config.loss], [rates], *protocol)
    (sides[0](inputs).sum() + sides[1](texts).sum()).backward()


def _derivative(
    config: Config, flat: FlatModel, theta: Tensor, images: Tensor, texts: Tensor
) -> str:
    """The way to second derivatives that a run would choose; here for noise."""
    if config.matching.derivative != "auto" or config.matching.gradient == "unrolled":
        return config.matching.derivative.replace("auto", "double")
    if fits_closed_form(flat.model, config.matching):
        return CLOSED_FORM
    with torch.no_grad():
        inputs = flat.model.freeze(images)
    batch = Batch(inputs, texts, torch.eye(len(inputs)).to(inputs))
    batch = Batch(*(tensor.requires_grad_() for tensor in batch.leaves()))
    loss = partial(inner_loss, flat, LOSSES[config.loss], config.matching.autocast)
    leaf = theta.clone().requires_grad_()
    (direction,) = torch.autograd.grad(loss(leaf, batch), leaf)
    carry = config.matching.gradient == "exact"
    return fitting_derivative(loss, theta, batch, direction, carry)[0]


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


def _measured(work: Callable[[], Any], graph: bool = True) -> tuple[float, int]:
    """Seconds, and the bytes that autograd keeps for the way back.

    Args:
        work: what to measure.
        graph: whether to count the bytes; forward mode does not allow it.
    """
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    counted = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with counted if graph else nullcontext():
        work()
    begun = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun, sum(kept.values())


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
