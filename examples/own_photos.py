"""From a folder of captioned photos to a distilled set, and to a model that finds photos by words.

The folder holds the photos and ``captions.csv`` with the columns ``image`` and ``caption``. Without
a folder, one of built-in scenes is written first, so that it can be tried without any data::

    python examples/own_photos.py
    python examples/own_photos.py ~/photos --query "a dog on a beach" --set encoder.image_size=64

What ``--set`` takes are the settings of ``lors distill``.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Callable
from pathlib import Path

import torch
from PIL.Image import Image

import lors
from lors.cli.app import console
from lors.cli.display import Display, results_table
from lors.data import load_pairs
from lors.data.scenes import describe, draw, make_scene
from lors.evaluation.recall import chance, recall
from lors.system.errors import InputError, LorsError

SHORT = ("experts.count=2", "experts.epochs=8", "distill.iterations=30", "evaluate.seeds=2")
"""The demo's settings, cut to a minute."""


def write_scenes(
    folder: Path, count: int, seed: int = 0, change: Callable[[Image], Image] = lambda image: image
) -> None:
    """A folder as one's own would be: PNG files, and a table with five captions of each."""
    folder.mkdir(parents=True)
    with (folder / "captions.csv").open("w", encoding="utf-8", newline="") as table:
        rows = csv.writer(table)
        rows.writerow(("image", "caption"))
        for index in range(count):
            scene, name = make_scene(seed, index), f"{index:04}.png"
            change(draw(scene, seed, index)).save(folder / name)
            rows.writerows((name, caption) for caption in describe(scene, random.Random(index)))


def distil(folder: Path, out: Path, preset: str, settings: list[str]) -> Path:
    """Distil the folder into a set, and show what it is worth beside random pairs."""
    data = ["data.source=table", f"data.root={folder.resolve()}", "data.annotations={}"]
    config = lors.load_config(preset, [*data, *settings])
    with Display() as display:
        results = lors.run(config, out, display)
    console.print(results_table(results.rows))
    return out / "distilled.safetensors"


def held_out_recall(retriever: lors.Retriever, distilled: lors.DistilledSet) -> tuple[float, float]:
    """The mean recall on photos that neither the set nor the retriever has seen, and chance."""
    config = distilled.config
    test = load_pairs(config.data, config.encoder.size()).splits["test"]
    images, texts = retriever.embed_pixels(test.images), retriever.embed_texts(test.captions)
    found = recall(images, texts, torch.from_numpy(test.owner))
    return found.mean, chance(test.owner).mean


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="photos and captions.csv")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--out", type=Path, default=Path("runs/own-photos"))
    parser.add_argument("--preset", default="demo", help="what to start from: see 'lors presets'")
    parser.add_argument("--budget", type=int, default=40, help="storage of the set, in pairs")
    parser.add_argument("--query", default="a large red circle on a grey background")
    parser.add_argument("--scenes", type=int, default=1000, help="how many, without a folder")
    given = parser.parse_args(arguments)

    settings = [f"distill.budget={given.budget}", *given.settings]
    folder = given.folder
    if folder is None:
        folder, settings = given.out / "photos", [*SHORT, *settings]
        if not folder.exists():
            write_scenes(folder, given.scenes)
    if not (folder / "captions.csv").is_file():
        raise InputError(f"there is no captions.csv in {str(folder)!r}: see docs/guide/photos.md")

    distilled = lors.DistilledSet.load(distil(folder, given.out / "run", given.preset, settings))
    lors.Retriever.train(distilled).save(given.out / "retriever.safetensors")

    # From here on, neither the set nor the training is needed: only this file and the photos.
    retriever = lors.Retriever.load(given.out / "retriever.safetensors")
    reached, least = held_out_recall(retriever, distilled)
    print(f"Mean recall on held-out photos: {reached:.1f} (chance: {least:.1f})")

    with (folder / "captions.csv").open(encoding="utf-8-sig", newline="") as table:
        captions = {row["image"]: row["caption"] for row in csv.DictReader(table)}
    names = list(captions)
    photos = retriever.embed_photos([folder / name for name in names])
    print(f"The photos that fit {given.query!r} best:")
    for place, cosine in retriever.search(given.query, photos):
        print(f"  {cosine:.2f}  {folder / names[place]}  {captions[names[place]]!r}")


if __name__ == "__main__":
    try:
        main()
    except LorsError as error:
        raise SystemExit(f"error: {error}") from None
