"""What a training loop of one's own costs: other optimisers, rates, losses and units.

    python benchmarks/own_loop.py [RUN]

RUN is a finished run in space features; without one, 20,000 embeddings like CLIP's are drawn (rows
of length 1, a gap between images and texts) and distilled into 100 pairs. Every variation trains
the set's own heads on what ``DistilledSet.batches`` gives, and is tested on the embeddings of the
test split as they are, after the last epoch. Where rates are tuned, that is on the val split with
one network. Prints a table: mean recall, mean and deviation over five networks.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import lors
from lors.encoders import EncodedSplit
from lors.encoders.heads import HEADS
from lors.evaluation.statistic import Statistic
from lors.losses import LOSSES
from lors.runs.opened import Run

SEEDS = 5
TRIED = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Loop:
    """A way to train.

    Args:
        name: in words.
        rates: of the two sides; None: the set's own, times ``factor``; or those best on val.
        tuned: whether rates are chosen on val.
    """

    name: str
    optimizer: str = "sgd"
    loss: str | None = None
    factor: float = 1.0
    tuned: bool = False
    standardised: bool = True
    learned_similarity: bool = True
    epochs: int | None = None


LOOPS = [
    Loop("the card's code"),
    Loop("twice as many epochs", epochs=200),
    Loop("rates x 0.3", factor=0.3),
    Loop("rates x 3", factor=3.0),
    Loop("Adam, rate tuned", "adam", tuned=True),
    Loop("AdamW, rate tuned", "adamw", tuned=True),
    Loop("InfoNCE instead of the set's loss, S left out", loss="nce", learned_similarity=False),
    Loop("the same, rate tuned", loss="nce", learned_similarity=False, tuned=True),
    Loop("the set's loss, S left out", learned_similarity=False),
    Loop("heads without standardisation", standardised=False),
    Loop("the same, rate tuned", standardised=False, tuned=True),
    Loop("the same, Adam, rate tuned", "adam", standardised=False, tuned=True),
]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(sys.argv[1] if len(sys.argv) > 1 else clip_like(Path(folder)))
        distilled, val, test = run.distilled, run.setting.real["val"], run.setting.real["test"]
        print(f"| {len(distilled)} pairs, test split of {len(test):,} images | mean recall |")
        print("|---|---|")
        row = lors.evaluate_set(run.set_path, [f"evaluate.seeds={SEEDS}"])
        assert row.readings.last is not None
        print(f"| `lors evaluate`, last epoch | {row.readings.last.mean} |")
        for loop in LOOPS:
            rate = None
            if loop.tuned:
                rate = max(TRIED, key=lambda r: recall(trained(distilled, loop, 99, r), val))
            found = [recall(trained(distilled, loop, s, rate), test) for s in range(SEEDS)]
            chosen = f" ({rate:g})" if rate else ""
            print(f"| {loop.name}{chosen} | {Statistic.of(found)} |", flush=True)


def clip_like(folder: Path) -> Path:
    """A run on embeddings of a drawn joint space."""
    rng, latent, dim = np.random.default_rng(0), 48, 512
    cause = rng.normal(size=(20_000, latent)) * np.linspace(1.5, 0.3, latent)
    for name in ("images", "texts"):
        gap = 30.0 * rng.normal(size=dim)
        noise = 30.0 * rng.normal(size=(20_000, dim))
        values = gap + cause @ rng.normal(size=(latent, dim)) + noise
        rows = values / np.linalg.norm(values, axis=1, keepdims=True)
        np.save(folder / f"{name}.npy", rows.astype(np.float32))
    files = "data.annotations={images: images.npy, texts: texts.npy}"
    sizes = "data.pairs={train: 16000, val: 1000, test: 1000}"
    config = lors.load_config("features", [f"data.root={folder}", files, sizes])
    lors.run(config, folder / "run", references=False)
    return folder / "run"


Sides = tuple[nn.Module, nn.Module]


def heads(distilled: lors.DistilledSet, loop: Loop) -> Sides:
    encoder = distilled.config.encoder
    sizes = distilled.images.shape[1], distilled.texts.shape[1]
    dim = encoder.embed_dim or sizes[0]
    kinds = encoder.image_head, encoder.text_head
    standards = distilled.image_standard, distilled.text_standard
    image, text = (
        nn.Sequential(standard or nn.Identity() if loop.standardised else nn.Identity(), head)
        for standard, head in zip(
            standards, (HEADS[k](n, dim) for k, n in zip(kinds, sizes, strict=True)), strict=True
        )
    )
    return image, text


def trained(distilled: lors.DistilledSet, loop: Loop, seed: int, rate: float | None) -> Sides:
    torch.manual_seed(seed)
    protocol = distilled.config.evaluate
    image, text = heads(distilled, loop)
    rates = (rate, rate) if rate else tuple(loop.factor * r for r in distilled.rates)
    sides = [
        {"params": side.parameters(), "lr": r} for side, r in zip((image, text), rates, strict=True)
    ]
    optimizer = {
        "sgd": lambda: torch.optim.SGD(sides, 0.1, protocol.momentum, 0, protocol.weight_decay),
        "adam": lambda: torch.optim.Adam(sides),
        "adamw": lambda: torch.optim.AdamW(sides),
    }[loop.optimizer]()
    epochs = loop.epochs or protocol.epochs
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [epochs // 2], gamma=0.1)
    loss_of = LOSSES[loop.loss] if loop.loss else distilled.loss
    for epoch in range(epochs):
        for images, texts, similarity in distilled.batches(protocol.batch_size, seed=epoch):
            u, v = F.normalize(image(images), dim=1), F.normalize(text(texts), dim=1)
            s = similarity if loop.learned_similarity else torch.eye(len(images))
            loss = loss_of(u @ v.T / distilled.config.encoder.temperature, s)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    return image, text


@torch.no_grad()
def recall(sides: Sides, split: EncodedSplit) -> float:
    """Of real embeddings as they are."""
    image, text = sides
    u = F.normalize(image(torch.from_numpy(np.array(split.images[:]))), dim=1)
    v = F.normalize(text(torch.from_numpy(np.array(split.texts[:]))), dim=1)
    return lors.recall(u, v, torch.from_numpy(split.owner)).mean


if __name__ == "__main__":
    main()
