"""Scenes: a built-in dataset of drawn objects with captions from a small grammar.

Like real captioned photos, and unlike labelled ones, it has no classes: a scene is one to three
objects with a shape, a colour, a size, a texture and a place on a background, and a caption is a
paraphrase that leaves things out. Different pairs therefore partly match each other.

Scene i of seed s is a function of (s, i) alone: nothing is downloaded, nothing is stored but the
decoded arrays.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial

from PIL import Image, ImageDraw

from lors.config import DataConfig, SplitName
from lors.data.pairs import Item
from lors.data.source import Source
from lors.system.progress import Progress
from lors.system.seeding import derive_seed

__all__ = ["SOURCE", "Scene", "SceneObject", "describe", "draw", "make_scene", "read_scenes"]

SIZES: dict[SplitName, int] = {"train": 2000, "val": 250, "test": 250}
CANVAS = 96
"""Side of a drawn image, before it is resized to what the encoder wants."""

COLOURS = {
    "red": (214, 40, 40),
    "green": (46, 160, 67),
    "blue": (38, 84, 205),
    "yellow": (248, 214, 42),
    "purple": (134, 58, 176),
    "orange": (245, 134, 30),
    "white": (248, 248, 248),
    "black": (22, 22, 22),
}
BACKGROUNDS = {
    "grey": (150, 150, 150),
    "pink": (250, 190, 205),
    "brown": (122, 84, 56),
    "cyan": (130, 220, 228),
}
SHAPES = {
    "circle": ("circle", "disc", "ball"),
    "square": ("square", "box", "block"),
    "triangle": ("triangle", "wedge"),
    "star": ("star",),
    "cross": ("cross", "plus sign"),
    "ring": ("ring", "hoop", "donut"),
}
SCALES = {"small": ("small", "little", "tiny"), "large": ("large", "big", "huge")}
TEXTURES = {"plain": ("plain", "solid"), "striped": ("striped",), "dotted": ("dotted", "spotted")}
RADIUS = {"small": 0.10, "large": 0.19}
COLUMNS, ROWS = ("left", "middle", "right"), ("top", "middle", "bottom")


@dataclass(frozen=True)
class SceneObject:
    """One drawn thing; ``column`` and ``row`` are its cell in a 3 x 3 grid."""

    shape: str
    colour: str
    scale: str
    texture: str
    column: int
    row: int


@dataclass(frozen=True)
class Scene:
    """One to three objects on a background."""

    background: str
    objects: tuple[SceneObject, ...]


def read_scenes(config: DataConfig, progress: Progress) -> dict[str, list[Item]]:
    """Splits of the sizes asked for; 2,000 / 250 / 250 by default."""
    splits: dict[str, list[Item]] = {}
    start = 0
    for name, size in {**SIZES, **config.pairs}.items():
        splits[name] = [_item(config.seed, start + i) for i in range(size)]
        start += 1_000_000  # splits of any size draw from disjoint ranges
    return splits


def _item(seed: int, index: int) -> Item:
    scene = make_scene(seed, index)
    captions = describe(scene, random.Random(derive_seed(seed, "captions", index)))
    load = partial(draw, scene, seed, index)
    return Item(f"scene|1|{seed}|{index}", captions, load, f"scene {index}")


def make_scene(seed: int, index: int) -> Scene:
    """Scene ``index`` of the endless sequence of ``seed``."""
    rng = random.Random(derive_seed(seed, "scene", index))
    cells = rng.sample([(c, r) for c in range(3) for r in range(3)], rng.choice((1, 2, 2, 3)))
    return Scene(
        background=rng.choice(list(BACKGROUNDS)),
        objects=tuple(
            SceneObject(
                shape=rng.choice(list(SHAPES)),
                colour=rng.choice(list(COLOURS)),
                scale=rng.choice(list(SCALES)),
                texture=rng.choice(("plain", "plain", "striped", "dotted")),
                column=column,
                row=row,
            )
            for column, row in cells
        ),
    )


def describe(scene: Scene, rng: random.Random, count: int = 5) -> tuple[str, ...]:
    """``count`` captions: paraphrases that name some of what is there."""
    return tuple(_caption(scene, rng) for _ in range(count))


def _caption(scene: Scene, rng: random.Random) -> str:
    objects = list(scene.objects)
    rng.shuffle(objects)
    if len(objects) > 1 and rng.random() < 0.2:
        objects.pop()  # captions leave things out
    text = _noun(objects[0], rng)
    if len(objects) == 1:
        if rng.random() < 0.5:
            text += _place(objects[0], rng)
    else:
        text += f" {_relation(objects[0], objects[1], rng)} {_noun(objects[1], rng)}"
        if len(objects) == 3:
            text += f" {rng.choice(('and', 'with', 'together with'))} {_noun(objects[2], rng)}"
    if rng.random() < 0.5:
        text += " " + rng.choice(("on a {} background", "against {}", "on {}")).format(
            scene.background
        )
    return rng.choice(("{}", "there is {}", "a picture of {}", "{} can be seen")).format(text)


def _noun(thing: SceneObject, rng: random.Random) -> str:
    words = []
    if rng.random() < 0.6:
        words.append(rng.choice(SCALES[thing.scale]))
    if rng.random() < (0.15 if thing.texture == "plain" else 0.7):
        words.append(rng.choice(TEXTURES[thing.texture]))
    if rng.random() < 0.9:
        words.append(thing.colour)
    words.append(rng.choice(SHAPES[thing.shape]) if rng.random() < 0.9 else "shape")
    article = "an" if words[0][0] in "aeiou" else "a"
    return f"{article} {' '.join(words)}"


def _place(thing: SceneObject, rng: random.Random) -> str:
    row, column = ROWS[thing.row], COLUMNS[thing.column]
    if row == column == "middle":
        return rng.choice((" in the middle", " in the centre"))
    if row == "middle":
        return rng.choice((f" on the {column}", f" at the {column} edge"))
    if column == "middle":
        return f" at the {row}"
    return rng.choice((f" in the {row} {column} corner", f" at the {row}", f" on the {column}"))


def _relation(first: SceneObject, second: SceneObject, rng: random.Random) -> str:
    relations = ["and", "next to"]
    if first.row != second.row:
        relations += ["above" if first.row < second.row else "below"] * 2
    if first.column != second.column:
        relations += ["left of" if first.column < second.column else "right of"] * 2
    return rng.choice(relations)


def draw(scene: Scene, seed: int, index: int) -> Image.Image:
    """The picture of a scene; places and sizes jitter by (seed, index)."""
    rng = random.Random(derive_seed(seed, "drawing", index))
    image = Image.new("RGB", (CANVAS, CANVAS), _jitter(BACKGROUNDS[scene.background], rng))
    for thing in scene.objects:
        radius = CANVAS * RADIUS[thing.scale] * rng.uniform(0.85, 1.15)
        x = CANVAS * ((2 * thing.column + 1) / 6 + rng.uniform(-0.05, 0.05))
        y = CANVAS * ((2 * thing.row + 1) / 6 + rng.uniform(-0.05, 0.05))
        mask = Image.new("L", image.size, 0)
        _outline(ImageDraw.Draw(mask), thing.shape, x, y, radius)
        image.paste(_fill(thing, _jitter(COLOURS[thing.colour], rng), radius), mask=mask)
    return image


def _jitter(colour: tuple[int, int, int], rng: random.Random) -> tuple[int, ...]:
    return tuple(min(255, max(0, value + rng.randint(-14, 14))) for value in colour)


def _outline(pen: ImageDraw.ImageDraw, shape: str, x: float, y: float, r: float) -> None:
    box = (x - r, y - r, x + r, y + r)
    if shape == "circle":
        pen.ellipse(box, fill=255)
    elif shape == "square":
        pen.rectangle((x - 0.85 * r, y - 0.85 * r, x + 0.85 * r, y + 0.85 * r), fill=255)
    elif shape == "triangle":
        pen.regular_polygon((x, y, 1.1 * r), 3, fill=255)
    elif shape == "star":
        pen.regular_polygon((x, y, 1.1 * r), 3, fill=255)
        pen.regular_polygon((x, y, 1.1 * r), 3, rotation=180, fill=255)
    elif shape == "cross":
        pen.rectangle((x - r, y - r / 3, x + r, y + r / 3), fill=255)
        pen.rectangle((x - r / 3, y - r, x + r / 3, y + r), fill=255)
    else:
        pen.ellipse(box, outline=255, width=max(2, round(0.45 * r)))


def _fill(thing: SceneObject, colour: tuple[int, ...], radius: float) -> Image.Image:
    fill = Image.new("RGB", (CANVAS, CANVAS), colour)
    if thing.texture == "plain":
        return fill
    pen = ImageDraw.Draw(fill)
    light = sum(colour) > 380
    ink = tuple(
        round(value * 0.35) if light else round(255 - (255 - value) * 0.4) for value in colour
    )
    step = max(4, round(radius * 0.6))
    for y in range(0, CANVAS, step):
        if thing.texture == "striped":
            pen.rectangle((0, y, CANVAS, y + step // 3), fill=ink)
        else:
            for x in range(0, CANVAS, step):
                pen.ellipse((x, y, x + step // 2, y + step // 2), fill=ink)
    return fill


SOURCE = Source(read_scenes, built_in=True)
