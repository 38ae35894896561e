"""Draw the picture of the README: many real pairs, a few synthetic ones, and what they reach.

An image trunk is trained on the built-in scenes and then frozen. Hindsight distils the 2,000 scenes
into the storage of 60 pairs for it. Takes two minutes of one core; needs matplotlib::

    python examples/picture.py
"""

from __future__ import annotations

import argparse
import random
import textwrap
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.patches import FancyArrow

import lors
from lors.data.scenes import describe, draw, make_scene
from lors.encoders import FlatModel
from lors.evaluation.protocol import choose_epoch
from lors.evaluation.recall import chance
from lors.experts import experts_of
from lors.files.artifacts import write_tensors
from lors.setting import Setting, setting_of
from lors.starts import start_pairs

DARK, GREY, TEAL, ORANGE = "#263238", "#90a4ae", "#00796b", "#ef6c00"
ROWS, COLUMNS, SHOWN = 14, 14, 4
SETTINGS = """
base: [demo, hindsight]
encoder: {scope: heads, image_head: mlp, text_head: mlp, embed_dim: 128}
distill: {budget: 60, iterations: 200, evaluate_every: 50}
"""


def write_trunk(to: Path) -> None:
    """The image trunk of a network trained on the scenes, at its best epoch on val."""
    setting = setting_of(lors.load_config("demo", ["experts.count=1", "experts.epochs=20"]))
    store = experts_of(setting)
    thetas = store.snapshots(0, store.kept(0)[1:]).to(setting.device, setting.dtype)
    model = setting.model("full data")
    best, _ = choose_epoch(model, list(thetas), setting.real["val"])
    FlatModel(model).load(thetas[best], model)
    assert isinstance(model.image, torch.nn.Sequential)
    write_tensors(to, {name: t.contiguous() for name, t in model.image[0].state_dict().items()})


def distil(out: Path) -> lors.Results:
    """Run what the picture shows; a run that is there already is taken as it is."""
    out.mkdir(parents=True, exist_ok=True)
    trunk, mine = out / "trunk.safetensors", out / "picture.yaml"
    if not trunk.exists():
        write_trunk(trunk)
    mine.write_text(SETTINGS, "utf-8")
    config = lors.load_config(mine, [f"encoder.image_weights={trunk.resolve()}"])
    return lors.run(config, out / "run")


def show(axes: Any, pixels: np.ndarray, frame: str | None = None) -> None:
    """An image without axes, in a frame if it has a colour."""
    axes.imshow(pixels, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=frame is not None, color=frame, linewidth=2)


def caption(axes: Any, text: str, width: int) -> None:
    """Words below an image."""
    axes.set_xlabel(textwrap.fill(f"“{text}”", width), fontsize=7.5, color=DARK, style="italic")


def draw_real(figure: Any, count: int) -> None:
    """Many scenes, as a mosaic, and the captions of two of them."""
    scenes = [np.asarray(draw(make_scene(0, i), 0, i).resize((32, 32))) for i in range(196)]
    lines = [np.hstack(scenes[row * COLUMNS : (row + 1) * COLUMNS]) for row in range(ROWS)]
    axes = figure.add_axes((0.012, 0.19, 0.27, 0.64))
    show(axes, np.vstack(lines))
    figure.text(0.147, 0.89, f"{count:,} real pairs", ha="center", fontsize=15, weight="bold")
    figure.text(0.147, 0.845, "images with captions", ha="center", fontsize=10, color=GREY)
    words = (describe(make_scene(0, i), random.Random(i))[0] for i in range(40))
    shown = sorted(words, key=len)[:2]
    text = "\n".join(f"“{each}”" for each in shown) + "\n…"
    figure.text(0.147, 0.155, text, ha="center", va="top", fontsize=7.5, color=DARK, style="italic")


def draw_synthetic(figure: Any, setting: Setting, made: lors.DistilledSet) -> None:
    """A few pairs as they start and as they end, with the captions nearest to their texts."""
    before = setting.distilled(start_pairs(setting)).pixels()
    after, words = made.pixels(), made.captions
    changed = (after.float() - before.float()).abs().flatten(1).mean(1)
    picked = changed.argsort(descending=True)[:SHOWN].tolist()
    figure.text(0.51, 0.89, f"{len(made)} synthetic pairs", ha="center", fontsize=15, weight="bold")
    figure.text(
        0.51, 0.845, "learned images, texts and similarities", ha="center", fontsize=10, color=GREY
    )
    for place, pair in enumerate(picked):
        left = 0.358 + 0.0785 * place
        for top, pixels, colour in ((0.57, before, GREY), (0.27, after, TEAL)):
            axes = figure.add_axes((left, top, 0.07, 0.25))
            show(axes, pixels[pair].permute(1, 2, 0).cpu().numpy(), colour)
        caption(axes, words[pair], 17)
    for top, word in ((0.695, "before"), (0.395, "after")):
        figure.text(0.349, top, word, ha="right", va="center", fontsize=10, color=DARK, rotation=90)


def draw_bars(figure: Any, setting: Setting, results: lors.Results, pairs: int, full: int) -> None:
    """What a model finds that was trained on each."""
    rows = {
        f"all {full:,}\nreal pairs": (results.rows["full data"].mean, GREY),
        f"{pairs} synthetic\npairs": (results.distilled.mean, TEAL),
        f"{results.random_pairs.pairs} random\nreal pairs": (results.random_pairs.mean, ORANGE),
        "chance": (chance(setting.real["test"].owner).mean, GREY),
    }
    axes = figure.add_axes((0.795, 0.19, 0.175, 0.64))
    values, colours = zip(*rows.values(), strict=True)
    bars = axes.barh(range(len(rows)), values, color=colours, height=0.62)
    axes.bar_label(bars, [f"{value:.1f}" for value in values], padding=4, fontsize=12, color=DARK)
    axes.set(yticks=range(len(rows)), xticks=[], xlim=(0, 1.25 * max(values)))
    axes.set_yticklabels(list(rows), fontsize=9.5, color=DARK)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.text(0.85, 0.89, "train a model on them", ha="center", fontsize=15, weight="bold")
    figure.text(
        0.85,
        0.845,
        "how often it finds the match (mean recall, %)",
        ha="center",
        fontsize=10,
        color=GREY,
    )


def main(out: Path, to: Path) -> None:
    results = distil(out)
    made = lors.DistilledSet.load(out / "run" / "distilled.safetensors")
    setting = setting_of(made.config)
    full = results.rows["full data"].pairs
    figure = plt.figure(figsize=(12.8, 4.1), facecolor="white")
    draw_real(figure, full)
    draw_synthetic(figure, setting, made)
    draw_bars(figure, setting, results, len(made), full)
    for left in (0.29, 0.683):
        arrow = FancyArrow(left, 0.51, 0.028, 0, width=0.02, head_length=0.012, color=DARK)
        arrow.set(transform=figure.transFigure, figure=figure)
        figure.patches.append(arrow)
    to.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(to, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/picture"))
    parser.add_argument("--to", type=Path, default=Path("docs/images/picture.png"))
    arguments = parser.parse_args()
    main(arguments.out, arguments.to)
