"""Distil a folder of captioned photos for an open_clip model, and continue its training on the set.

The texts of a set are embeddings. If they are those of the model's own text tower, its image tower
can go on training on them, while the text tower stays as it is (locked-text tuning). The result is
a plain open_clip model, with weights that ``open_clip.create_model`` reads.

Without a folder and a model, both are made up in seconds: a tiny CLIP that has learned the built-in
scenes, and a folder of such scenes as photographic negatives, of which it knows nothing::

    python examples/continue_open_clip.py
    python examples/continue_open_clip.py ~/photos --architecture ViT-B-32 --pretrained TAG-OR-FILE

What ``--set`` takes are the settings of ``lors distill``.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import open_clip
import torch
import torch.nn.functional as F
from own_photos import write_scenes
from PIL import ImageOps
from safetensors.torch import save_file
from torch import Tensor

import lors
from lors.cli.display import Display
from lors.config import Config, SimilarityConfig
from lors.data import Split, load_pairs
from lors.encoders.open_clip_text import OpenClipText
from lors.evaluation.recall import chance, recall
from lors.losses import nce
from lors.selection import select
from lors.setting import setting_of
from lors.system.devices import find_device
from lors.system.errors import LorsError

TRUNK = "trunk.safetensors"
TINY: dict[str, Any] = {
    "embed_dim": 64,
    "vision_cfg": {"timm_model_name": "nf_resnet_tiny", "timm_pool": "avg", "image_size": 16},
    "text_cfg": {"context_length": 24, "width": 64, "heads": 2, "layers": 1},
}
"""A CLIP in open_clip's own words."""

SHORT = (
    "data.holdout=0.2",
    "encoder.image_size=16",
    "experts.count=2",
    "experts.epochs=6",
    "experts.rate=0.03",
    "experts.text_rate=0.1",
    "matching.max_start_epoch=3",
    "distill.budget=40",
    "distill.iterations=40",
    "distill.inner_rate=0.03",
    "distill.inner_text_rate=0.1",
)
"""The demo's settings for so small a model that is trained already."""


def normalised(clip: Any, pixels: Tensor) -> Tensor:
    """Pixels in [0, 1] as the image tower wants them. Shape: (m, 3, side, side)"""
    visual = clip.visual
    side = visual.image_size if isinstance(visual.image_size, tuple) else (visual.image_size,) * 2
    if pixels.shape[2:] != side:
        pixels = F.interpolate(pixels, side, mode="bicubic", antialias=True).clamp(0, 1)
    mean, std = (pixels.new_tensor(v).view(-1, 1, 1) for v in (visual.image_mean, visual.image_std))
    return (pixels - mean) / std


def place(clip: Any) -> torch.device:
    return next(clip.parameters()).device


def photos(clip: Any, split: Split, index: np.ndarray) -> Tensor:
    pixels = torch.from_numpy(split.images[index]).to(place(clip))
    return normalised(clip, pixels.float() / 255)


def pretrain(clip: Any, tokenizer: Any, split: Split, epochs: int = 15, batch: int = 100) -> None:
    """Contrastive learning on real pairs: stands in for the pretraining of a real CLIP."""
    tokens, rng = tokenizer(split.captions).to(place(clip)), np.random.default_rng(0)
    first = np.searchsorted(split.owner, np.arange(len(split)))
    optimizer = torch.optim.AdamW(clip.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 3e-3, total_steps=epochs * (len(split) // batch)
    )
    for _ in range(epochs):
        order = rng.permutation(len(split))[: len(split) // batch * batch]
        for index in order.reshape(-1, batch):
            captions = tokens[first[index] + rng.integers(5, size=batch)]
            u, v, scale = clip(photos(clip, split, index), captions)[:3]
            optimizer.zero_grad()
            nce(scale * u @ v.T).backward()
            optimizer.step()
            schedule.step()


def tiny_clip(out: Path) -> tuple[str, list[str]]:
    """A tiny CLIP that has seen the scenes, as ARCHITECTURE/FILE, and settings to distil for it."""
    config, weights, trunk = (out / name for name in ("lors-tiny.json", "clip.safetensors", TRUNK))
    out.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps(TINY))
    open_clip.add_model_config(config)
    if not weights.exists():
        torch.manual_seed(0)
        clip = open_clip.create_model(config.stem, device=find_device("auto"))
        scenes = lors.load_config("demo", ["data.pairs.train=600"]).data
        split = load_pairs(scenes, TINY["vision_cfg"]["image_size"]).splits["train"]
        pretrain(clip, open_clip.get_tokenizer(config.stem), split)
        save_file(clip.visual.trunk.state_dict(), trunk)
        save_file(clip.state_dict(), weights)
    return f"{config.stem}/{weights}", [*SHORT, f"encoder.image_weights={trunk}"]


@torch.no_grad()
def mean_recall(clip: Any, tokenizer: Any, split: Split) -> float:
    """The mean recall of a CLIP on real pairs."""
    every = np.array_split(np.arange(len(split)), -(-len(split) // 64))
    images = [clip.encode_image(photos(clip, split, i), normalize=True) for i in every]
    parts = [split.captions[i : i + 64] for i in range(0, len(split.captions), 64)]
    tokens = [tokenizer(part).to(place(clip)) for part in parts]
    texts = [clip.encode_text(part, normalize=True) for part in tokens]
    owner = torch.from_numpy(split.owner)
    return recall(torch.cat(images).cpu(), torch.cat(texts).cpu(), owner).mean


def continue_on(
    distilled: lors.DistilledSet, clip: Any, epochs: int, rate: float
) -> tuple[float, float]:
    """Train the image tower of a CLIP on a set; returns the loss of the first and last batch."""
    temperature = distilled.config.encoder.temperature
    distilled.pairs.to(place(clip))
    std, mean = (
        torch.tensor(v, device=place(clip)).view(-1, 1, 1) for v in (distilled.std, distilled.mean)
    )
    optimizer = torch.optim.AdamW(clip.visual.parameters(), lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    losses = []
    for epoch in range(epochs):
        for images, texts, similarity in distilled.batches(128, seed=epoch):
            u = clip.encode_image(normalised(clip, images * std + mean), normalize=True)
            loss = distilled.loss(u @ F.normalize(texts, dim=-1).T / temperature, similarity)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    return losses[0], losses[-1]


def random_sets(config: Config, draws: int = 3) -> Iterator[lors.DistilledSet]:
    """As many real pairs as the budget holds, as sets for CLIP's own loss."""
    bench = setting_of(config)
    for draw in range(draws):
        (images, _), captions = select(bench, "random", config.distill.budget, draw)
        pairs = bench.plain_pairs(images, captions)
        yield bench.distilled(pairs, "nce", SimilarityConfig(kind="identity"))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="photos and captions.csv")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--out", type=Path, default=Path("runs/continue-open-clip"))
    parser.add_argument("--architecture", help="of open_clip, e.g. ViT-B-32")
    parser.add_argument("--pretrained", help="a tag of open_clip, or a .safetensors file")
    parser.add_argument("--preset", default="demo", help="what to start from: see 'lors presets'")
    parser.add_argument("--epochs", type=int, default=60, help="of the continued training")
    parser.add_argument("--rate", type=float, default=1e-3, help="a large CLIP wants less: 1e-5")
    parser.add_argument("--scenes", type=int, default=1000, help="how many, without a folder")
    given = parser.parse_args(arguments)

    folder = given.folder or given.out / "photos"
    if given.folder is None and not folder.exists():
        write_scenes(folder, given.scenes, seed=1, change=ImageOps.invert)
    name = f"{given.architecture}/{given.pretrained or ''}".rstrip("/")
    settings: list[str] = []
    if given.architecture is None:
        name, settings = tiny_clip(given.out)
    weights = "pretrained" if "/" in name else "none"

    settings += [f"encoder.text=open_clip:{name}", f"encoder.text_weights={weights}"]
    settings += ["data.source=table", f"data.root={folder.resolve()}", "data.annotations={}"]
    config = lors.load_config(given.preset, [*settings, *given.settings])
    with Display() as display:
        lors.run(config, given.out / "run", display, references=False)
    distilled = lors.DistilledSet.load(given.out / "run" / "distilled.safetensors")

    clip = OpenClipText(name, weights).model.to(find_device("auto"))
    architecture = name.partition("/")[0]
    tokenizer = open_clip.get_tokenizer(architecture)
    test = load_pairs(distilled.config.data, distilled.config.encoder.size()).splits["test"]
    print(f"mean recall on held-out photos; chance is {chance(test.owner).mean:.1f}")
    print(f"{mean_recall(clip, tokenizer, test):6.1f}  before")
    others = []
    for random_pairs in random_sets(distilled.config):
        other = copy.deepcopy(clip)
        continue_on(random_pairs, other, given.epochs, given.rate)
        others.append(mean_recall(other, tokenizer, test))
    print(f"{fmean(others):6.1f}  after random pairs, mean of {len(others)} draws")
    first, last = continue_on(distilled, clip, given.epochs, given.rate)
    path = given.out / "continued.safetensors"
    save_file(clip.state_dict(), path)

    clip = OpenClipText(f"{architecture}/{path}").model  # as anyone would load it
    print(f"{mean_recall(clip, tokenizer, test):6.1f}  after the set of {len(distilled)} pairs")
    print(f"Its loss went from {first:.2f} to {last:.2f}.")
    print(f"The model is {path}")


if __name__ == "__main__":
    try:
        main()
    except LorsError as error:
        raise SystemExit(f"error: {error}") from None
