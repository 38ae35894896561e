"""The gradient through training two heads, alone and in a whole iteration of Hindsight."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.speed.ratio import Ratio, side_by_side
from lors.config import load_config
from lors.config.matchers import HindsightOptions
from lors.data.pairs import Decoded, Split
from lors.encoders import DualEncoder
from lors.encoders.heads import MlpHead
from lors.losses import soft_nce, wbce
from lors.matching import matcher_of
from lors.matching.hindsight import HindsightMatcher
from lors.matching.unroll import PlainSide, train_differentiably
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.seeding import draw_seed, generator
from lors.training import Batch

__all__ = ["gradient", "plain_iteration", "random_features", "ratios", "whole_iteration"]


def gradient(model: DualEncoder, whole: Batch, steps: int, short: bool) -> Sequence[Tensor]:
    """The gradient of the mean logit of all pairs, after so many steps on all of them.

    Args:
        model: where training starts.
        whole: the set; all its tensors require gradients.
        steps: of SGD.
        short: by coefficients, or else by all parameters.
    """
    side = None if short else PlainSide
    every = [torch.arange(len(whole.inputs))] * steps
    rates = torch.tensor([0.1, 0.1])
    ends = train_differentiably(model, whole, every, wbce, [rates] * steps, 0.9, 5e-4, side)
    end = model.logits(ends[0](whole.inputs), ends[1](whole.texts)).diagonal().mean()
    return torch.autograd.grad(end, list(whole))


def plain_iteration(
    setting: Setting, thetas: Sequence[Tensor], pairs: SyntheticPairs, draw: torch.Generator
) -> float:
    """An iteration of Hindsight with autograd through all parameters, and the same draws as ours.

    Args:
        setting: the real pairs and the networks.
        thetas: the weights of each teacher, which one network takes in turn.
        pairs: the set being learned.
        draw: draws everything.
    """
    options, protocol = setting.config.matching, setting.config.evaluate
    assert isinstance(options, HindsightOptions)
    model, teacher = setting.model(draw_seed(draw)), setting.model("teacher")
    steps = list(islice(pairs.passes(protocol.batch_size, draw), options.steps))
    (whole,) = pairs.gather([torch.arange(len(pairs))], lambda index: pairs.images[index])
    rates = [pairs.rates * protocol.pace(step) for step in range(len(steps))]
    ends = train_differentiably(
        model,
        whole,
        steps,
        setting.loss,
        rates,
        protocol.momentum,
        protocol.weight_decay,
        PlainSide,
    )
    real = [
        part + options.noise * torch.randn(part.shape, generator=draw)
        for part in setting.real_batch(draw, options.real_batch_size)
    ]
    cosines = []
    with torch.no_grad():
        for theta in thetas:
            setting.flat.load(theta, teacher)
            cosines.append(teacher(*real) * teacher.temperature)
    targets = torch.stack(cosines).mean(0) / options.teacher_temperature
    outputs = [end(part) for end, part in zip(ends, real, strict=True)]
    objective = soft_nce(model.logits(*outputs), targets)
    objective.backward()
    return objective.item()


def random_features(settings: Sequence[str], sizes: Sequence[int], pairs: int = 1000) -> Setting:
    """A setting of Hindsight on random features."""
    draw = np.random.default_rng(0)
    splits = {}
    for name, count in (("train", pairs), ("val", 100), ("test", 100)):
        images, texts = (draw.standard_normal((count, size), dtype=np.float32) for size in sizes)
        splits[name] = Split(images, [], np.arange(count), name, texts)
    return setting_of(load_config("features", settings), pairs=Decoded("random", splits))


def whole_iteration(rounds: int, sizes: Sequence[int], settings: Sequence[str] = ()) -> Ratio:
    """With eight teachers. A pass is as many multiply-adds in plain matrix products."""
    with tempfile.TemporaryDirectory() as folder:
        few = ["experts={count: 8, epochs: 2}", f"experts.folder={folder}"]
        setting = random_features([*few, *settings], sizes)
        matcher, plain = matcher_of(setting), start_pairs(setting)
        assert isinstance(matcher, HindsightMatcher)
        thetas = [setting.flat.flatten(each) for each in matcher.teachers.networks]
        ours = start_pairs(setting)
        with FlopCounterMode(display=False) as count:
            matcher.backward(ours, generator(0))
        left, right = torch.randn(512, sizes[0]), torch.randn(sizes[0], 256)
        products = max(count.get_total_flops() // (2 * left.numel() * 256), 1)
        return side_by_side(
            f"a whole iteration, {len(ours)} pairs, {len(thetas)} teachers "
            "(a pass: its multiply-adds alone)",
            lambda: matcher.backward(ours, generator(0)),
            lambda: plain_iteration(setting, thetas, plain, generator(0)),
            rounds,
            floor=lambda: [left @ right for _ in range(products)],
        )


def ratios(
    rounds: int,
    pairs: int = 95,
    steps: int = 20,
    sizes: Sequence[int] = (1280, 384),
    settings: Sequence[str] = (),
) -> list[Ratio]:
    """Hindsight on features of EfficientNet-Lite0 and MiniLM, without teachers and with."""
    draw = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = DualEncoder(MlpHead(sizes[0], 256), MlpHead(sizes[1], 256))
    parts = [torch.randn(pairs, size, generator=draw) for size in sizes]
    whole = Batch(*(part.requires_grad_() for part in (*parts, 3 * torch.eye(pairs))))
    return [
        side_by_side(
            f"{steps} steps on {pairs} pairs of {sizes[0]} and {sizes[1]} features",
            lambda: gradient(model, whole, steps, short=True),
            lambda: gradient(model, whole, steps, short=False),
            rounds,
        ),
        whole_iteration(rounds, sizes, settings),
    ]
