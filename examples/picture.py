"""Draw the picture of the README from a finished demo: pairs before and after, and S."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

import lors
from lors.setting import setting_of
from lors.starts import start_pairs

CELL, SHOWN = 72, 10


def grid(images: Tensor) -> Image.Image:
    """A row of images. Shape: (n, 3, size, size), uint8"""
    row = Image.new("RGB", (CELL * len(images), CELL), "white")
    for place, image in enumerate(images):
        pixels = Image.fromarray(image.permute(1, 2, 0).cpu().numpy())
        row.paste(pixels.resize((CELL - 4, CELL - 4), Image.Resampling.NEAREST), (CELL * place, 2))
    return row


def heat(matrix: Tensor, side: int) -> Image.Image:
    """Red for positive, blue for negative similarity."""
    scaled = (matrix / matrix.abs().max()).clamp(-1, 1)
    fade = (255 * (1 - scaled.abs())).to(torch.uint8)
    full = torch.full_like(fade, 255)
    red, blue = torch.where(scaled > 0, full, fade), torch.where(scaled < 0, full, fade)
    image = Image.fromarray(torch.stack([red, fade, blue], -1).cpu().numpy())
    return image.resize((side, side), Image.Resampling.NEAREST)


def main(run: Path = Path("runs/demo"), to: Path = Path("docs/demo.png")) -> None:
    distilled = lors.DistilledSet.load(run / "distilled.safetensors")
    bench = setting_of(distilled.config)
    before = bench.distilled(start_pairs(bench)).pixels()
    similarity = distilled.pairs.similarity.matrix()
    picture = Image.new("RGB", (CELL * SHOWN + 16 + 2 * CELL, 2 * CELL), "white")
    picture.paste(grid(before[:SHOWN]), (0, 0))
    picture.paste(grid(distilled.pixels()[:SHOWN]), (0, CELL))
    picture.paste(heat(similarity, 2 * CELL), (CELL * SHOWN + 16, 0))
    picture.save(to)


if __name__ == "__main__":
    main()
