"""The steps of the published LoRS code in our own words: experts, then distillation.

    python -m benchmarks.speed.published experts FOLDER
    python -m benchmarks.speed.published distil FOLDER

A folder holds ``config.yaml``, and pairs in the format ``karpathy``. Batches decode their photos;
experts are kept with ``torch.save``, a file per side, and read back whole; inner steps are those of
``meta_gradient.reference``; networks are measured by sorting the scores of the test split.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from benchmarks.speed.loading import BICUBIC
from benchmarks.speed.meta_gradient import reference
from benchmarks.speed.recall import sorted_recall
from lors.config import load_config
from lors.config.matchers import TrajectoryOptions
from lors.encoders import DualEncoder, FlatModel, Frozen, Standard, build_dual_encoder
from lors.encoders.text import build_text_trunk
from lors.losses import LOSSES, nce
from lors.matching.meta_gradient import Inner
from lors.matching.trajectory import distance_ratio
from lors.sets.synthetic import SyntheticPairs, pairs_within
from lors.similarity import LowRank
from lors.system.progress import Silent
from lors.training import Batch

__all__ = ["RESULT", "distil", "experts"]

RESULT = "published.json"
"""The mean recall on test of the last epoch, by network."""


class Plain(DualEncoder):
    """A dual encoder whose images stay in the order of memory in which they come."""

    def embed_images(self, inputs: Tensor) -> Tensor:
        return F.normalize(self.image(inputs), dim=-1)

    def forward(self, inputs: Tensor, texts: Tensor) -> Tensor:
        return self.logits(self.image(inputs), self.text(texts))


class Photos(Dataset[tuple[Tensor, int]]):
    """The photos of a split, each decoded and transformed whenever it is asked for."""

    def __init__(self, files: list[Path], transform: Callable[[Image.Image], Tensor]) -> None:
        self.files, self.transform = files, transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.transform(Image.open(self.files[index]).convert("RGB")), index


class Published:
    """What both steps work on.

    Args:
        folder: with the configuration and the pairs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, load_config(folder / "config.yaml")
        assert isinstance(self.config.matching, TrajectoryOptions)
        self.matching = self.config.matching
        self.rows = {
            split: json.loads((folder / f"{split}.json").read_text("utf-8"))
            for split in ("train", "test")
        }
        self.texts = {split: torch.from_numpy(array) for split, array in self._texts().items()}
        self.standard = Standard.fit(self.texts["train"].numpy())
        self.texts = {split: self.standard(texts) for split, texts in self.texts.items()}
        self.owner = {
            split: torch.tensor([i for i, row in enumerate(rows) for _ in row["caption"]])
            for split, rows in self.rows.items()
        }

    def _texts(self) -> dict[str, np.ndarray]:
        """Embeddings of all captions, kept by the first step for the second. Shape: (C, d)"""
        path = self.folder / "texts.npz"
        if not path.exists():
            words = {
                s: [c for row in rows for c in row["caption"]] for s, rows in self.rows.items()
            }
            trunk = build_text_trunk(self.config.encoder, words["train"])
            found = {s: trunk.embed(captions, Silent()) for s, captions in words.items()}
            np.savez(path, train=found["train"], test=found["test"])
        return dict(np.load(path, allow_pickle=False))

    def model(self) -> Plain:
        """A network built anew."""
        seed = int(torch.randint(2**31, ()))
        frozen = Frozen(self.texts["train"].shape[1], text_standard=self.standard)
        made = build_dual_encoder(self.config.encoder, frozen, seed)
        return Plain(made.image, made.text, made.temperature, normalised_by=(made.mean, made.std))

    def photos(self, split: str, model: DualEncoder) -> Photos:
        size = self.config.encoder.size()
        files = [self.folder / row["image"] for row in self.rows[split]]
        last = [transforms.ToTensor(), transforms.Normalize(model.mean, model.std)]
        if split == "train" and self.config.data.augment:
            drawn: list[nn.Module] = [
                transforms.RandomResizedCrop(size, scale=(0.5, 1.0), interpolation=BICUBIC),
                transforms.RandomHorizontalFlip(),
                transforms.RandAugment(2, 5),
            ]
        else:
            drawn = [transforms.Resize((size, size), interpolation=BICUBIC)]
        return Photos(files, transforms.Compose([*drawn, *last]))

    def draw_texts(self, images: Tensor) -> Tensor:
        """One drawn caption for each training image."""
        owner = self.owner["train"]
        first = torch.searchsorted(owner, images)
        count = torch.searchsorted(owner, images, right=True) - first
        return self.texts["train"][first + (torch.rand(len(images)) * count).long()]

    @torch.no_grad()
    def recall(self, model: DualEncoder) -> float:
        """On test, as the mean of six."""
        photos = DataLoader(self.photos("test", model), self.config.evaluate.batch_size)
        images = torch.cat([model.embed_images(images) for images, _ in photos])
        texts = model.embed_texts(self.texts["test"])
        return float(np.mean(sorted_recall(images, texts, self.owner["test"])))


def experts(folder: Path) -> None:
    """Train the experts epoch by epoch, and keep all parameters of each."""
    work = Published(folder)
    config = work.config.experts
    for expert in range(config.count):
        model = work.model()
        sides = model.sides()
        optimizer = torch.optim.SGD(
            [{"params": side, "lr": rate} for side, rate in zip(sides, config.rates(), strict=True)]
        )
        kept = [[[p.detach().clone() for p in side] for side in sides]]
        photos = DataLoader(work.photos("train", model), config.batch_size, shuffle=True)
        for _ in range(config.epochs):
            for images, index in photos:
                loss = nce(model(images, work.draw_texts(index)), torch.eye(len(index)))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            kept.append([[p.detach().clone() for p in side] for side in sides])
        for side, name in enumerate(("image", "text")):
            torch.save([epoch[side] for epoch in kept], folder / f"{name}-{expert}.pt")


def distil(folder: Path) -> None:
    """Learn the set from the experts, evaluate it on the way and at the end."""
    work = Published(folder)
    config = work.config
    flat = FlatModel(work.model())
    pairs = _start(work, flat.model)
    optimizer = torch.optim.SGD(
        [
            {"params": tensors, "lr": getattr(config.distill.learning_rates, part)}
            for part, tensors in pairs.parts().items()
        ],
        momentum=config.distill.momentum,
    )
    for iteration in range(1, config.distill.iterations + 1):
        start, target = _start_and_target(work)
        optimizer.zero_grad()
        _backward(work, flat, pairs, start, target)
        optimizer.step()
        pairs.clamp_rates()
        every = config.distill.evaluate_every
        if every and (iteration % every == 0 or iteration == config.distill.iterations):
            _train_and_test(work, pairs, checks=1)
    reached = [
        _train_and_test(work, pairs, config.evaluate.checks)[-1]
        for _ in range(config.evaluate.seeds)
    ]
    (folder / RESULT).write_text(json.dumps({"pairs": len(pairs), "mean": reached}), "utf-8")


def _start(work: Published, model: DualEncoder) -> SyntheticPairs:
    """Drawn real pairs, as many as the budget holds."""
    config, photos = work.config, work.photos("train", model)
    numbers = 3 * config.encoder.size() ** 2 + work.texts["train"].shape[1]
    count = pairs_within(config.distill.budget, numbers, config.similarity)
    chosen = torch.randperm(len(photos))[:count]
    images = torch.stack([photos[int(i)][0] for i in chosen])
    rank, rate = config.similarity.rank, config.distill.inner_rate
    similarity = LowRank(count, min(rank, count), config.similarity.alpha)
    rates = (rate, config.distill.inner_text_rate or rate)
    return SyntheticPairs(images, work.draw_texts(chosen), similarity, rates)


def _start_and_target(work: Published) -> tuple[Tensor, Tensor]:
    """The files of an expert are read whole, and two of its epochs used."""
    options = work.matching
    expert = int(torch.randint(work.config.experts.count, ()))
    epoch = int(torch.randint(options.min_start_epoch, options.max_start_epoch, ()))
    both = [
        torch.load(work.folder / f"{side}-{expert}.pt", weights_only=True)
        for side in ("image", "text")
    ]
    start, target = (
        torch.cat([p.reshape(-1) for side in both for p in side[place]])
        for place in (epoch, epoch + options.expert_epochs)
    )
    return start, target


def _backward(
    work: Published, flat: FlatModel, pairs: SyntheticPairs, start: Tensor, target: Tensor
) -> None:
    """The gradients of one iteration; S is made whole for every inner step."""
    options, loss = work.matching, LOSSES[work.config.loss]

    def inner_loss(theta: Tensor, batch: Batch) -> Tensor:
        return loss(flat(theta, batch.inputs, batch.texts), batch.similarity)

    orders = pairs.passes(options.batch_size, torch.default_generator)
    batches = [
        Batch(pairs.images[i], pairs.texts[i], pairs.similarity.matrix()[i][:, i])
        for i in islice(orders, options.steps)
    ]
    objective = partial(distance_ratio, start=start, target=target, sides=flat.sides)
    inner = Inner(inner_loss, start, batches, pairs.rates, flat.sides, objective)
    found = reference(inner, carry=options.gradient == "exact")
    for batch, gradients in zip(batches, found, strict=True):
        torch.autograd.backward(list(batch), list(gradients), retain_graph=True)


def _train_and_test(work: Published, pairs: SyntheticPairs, checks: int) -> list[float]:
    """Train a fresh network on the set; the recall at the epochs that are checked."""
    config, loss = work.config.evaluate, LOSSES[work.config.loss]
    model = work.model()
    rates = pairs.rates.tolist()
    optimizer = torch.optim.SGD(
        [{"params": side, "lr": rate} for side, rate in zip(model.sides(), rates, strict=True)],
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    halfway = torch.optim.lr_scheduler.MultiStepLR(optimizer, [config.epochs // 2], gamma=0.1)
    images, texts = pairs.images.detach(), pairs.texts.detach()
    similarity = pairs.similarity.matrix().detach()
    checked = {round(config.epochs * (i + 1) / checks) for i in range(checks)}
    found = []
    for epoch in range(1, config.epochs + 1):
        for index in _epoch(len(pairs), config.batch_size):
            logits = model(images[index], texts[index])
            optimizer.zero_grad()
            loss(logits, similarity[index][:, index]).backward()
            optimizer.step()
        halfway.step()
        if epoch in checked:
            found.append(work.recall(model))
    return found


def _epoch(count: int, batch_size: int) -> Iterator[Tensor]:
    yield from torch.randperm(count).split(batch_size)


STEPS: dict[str, Any] = {"experts": experts, "distil": distil}

if __name__ == "__main__":
    torch.manual_seed(0)
    STEPS[sys.argv[1]](Path(sys.argv[2]))
