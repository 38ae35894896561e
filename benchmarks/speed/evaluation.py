"""Evaluation: a network trained on a set, its epoch chosen on val, its recall on test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from benchmarks.speed.ratio import Ratio, side_by_side
from benchmarks.speed.recall import sorted_recall
from lors.config import EvaluateConfig
from lors.encoders import DualEncoder, EncodedSplit
from lors.encoders.heads import MlpHead
from lors.evaluation.protocol import Outcome, outcome, snapshots
from lors.evaluation.recall import Recall
from lors.losses import wbce
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import LowRank
from lors.system.seeding import generator, global_seed

__all__ = ["Problem", "fast", "plain", "ratios"]

IMAGE, TEXT, JOINT = 1280, 384, 256
"""Features of EfficientNet-Lite0 and of MiniLM, and the joint space."""


class Problem:
    """A set of N pairs of features, and two splits of M images with five captions each."""

    def __init__(self, pairs: int, images: int, config: EvaluateConfig) -> None:
        with global_seed("evaluation benchmark"):
            # What pairs have in common, so that there is something to learn.
            image, text = torch.randn(32, IMAGE), torch.randn(32, TEXT)
            common = torch.randn(pairs, 32)
            similarity = LowRank(pairs, rank=min(10, pairs), alpha=3.0)
            self.pairs = SyntheticPairs(common @ image, common @ text, similarity, (0.1, 0.1))
            self.val, self.test = (_split(images, image, text) for _ in range(2))
        self.config = config

    def model(self, seed: int) -> DualEncoder:
        """A fresh network."""
        with global_seed(seed):
            return DualEncoder(MlpHead(IMAGE, JOINT), MlpHead(TEXT, JOINT))


def fast(problem: Problem) -> list[Outcome]:
    """Ours: snapshots while training, one pass over val, test only where it is read."""
    outcomes = []
    for seed in range(problem.config.seeds):
        model = problem.model(seed)
        thetas = snapshots(problem.pairs, model, wbce, problem.config, seed)
        outcomes.append(outcome(model, thetas, problem.val, problem.test))
    return outcomes


def plain(problem: Problem) -> list[Outcome]:
    """The whole S indexed at every step; at every check, val and test are sorted."""
    pairs, config = problem.pairs, problem.config
    outcomes = []
    for seed in range(config.seeds):
        model = problem.model(seed)
        image, text = model.sides()
        image_rate, text_rate = pairs.rates.tolist()
        optimizer = torch.optim.SGD(
            [{"params": image, "lr": image_rate}, {"params": text, "lr": text_rate}],
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )
        halfway = torch.optim.lr_scheduler.MultiStepLR(optimizer, [config.epochs // 2], gamma=0.1)
        order = pairs.passes(config.batch_size, generator(seed, "evaluation order"))
        found = []
        for epoch in range(config.epochs):
            similarity = pairs.similarity.matrix().detach()
            for _ in range(-(-len(pairs) // config.batch_size)):
                index = next(order)
                logits = model(pairs.images.detach()[index], pairs.texts.detach()[index])
                loss = wbce(logits, similarity[index[:, None], index])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            halfway.step()
            if (epoch + 1) % (config.epochs // config.checks) == 0:
                found.append((_sorted(model, problem.val), _sorted(model, problem.test)))
        val, test = max(found, key=lambda both: both[0].mean)
        outcomes.append(Outcome(found[-1][1], test, val.mean))
    return outcomes


def ratios(
    rounds: int,
    sizes: Sequence[int] = (100, 500),
    images: int = 500,
    epochs: int = 100,
    seeds: int = 1,
) -> list[Ratio]:
    """Sets of features as of Flickr8k. Both sides train the same networks on the same batches.

    Networks are trained one after the other on both sides. The reference also measures test at
    every check, as published code does; ours only where it is read.
    """
    config = EvaluateConfig(epochs=epochs, seeds=seeds, checks=min(10, epochs))

    def line(size: int) -> Ratio:
        problem = Problem(size, images, config)
        return side_by_side(
            f"{size} pairs, {epochs} epochs, val and test of {images} images",
            lambda: fast(problem),
            lambda: plain(problem),
            rounds,
        )

    return [line(size) for size in sizes]


def _split(images: int, image: Tensor, text: Tensor) -> EncodedSplit:
    common = torch.randn(images, 32)
    owner = np.repeat(np.arange(images), 5)
    texts = (common[owner] + torch.randn(len(owner), 32) / 2) @ text
    return EncodedSplit((common @ image).numpy(), texts.numpy(), owner)


def _sorted(model: DualEncoder, split: EncodedSplit) -> Recall:
    return Recall(*sorted_recall(*split.embed(model), torch.from_numpy(split.owner)))
