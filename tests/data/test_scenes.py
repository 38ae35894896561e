from __future__ import annotations

import random

import numpy as np

from lors.config import DataConfig
from lors.data.scenes import describe, draw, make_scene, read_scenes
from lors.system.progress import Silent


def test_a_scene_is_a_function_of_seed_and_index() -> None:
    assert make_scene(3, 5) == make_scene(3, 5)
    assert make_scene(3, 5) != make_scene(4, 5)
    first, again = (np.asarray(draw(make_scene(0, 1), 0, 1)) for _ in range(2))
    assert np.array_equal(first, again)


def test_default_sizes_and_five_captions_each() -> None:
    splits = read_scenes(DataConfig(source="scenes"), Silent())
    assert {name: len(items) for name, items in splits.items()} == {
        "train": 2000,
        "val": 250,
        "test": 250,
    }
    assert all(len(item.captions) == 5 for item in splits["val"])


def test_captions_say_only_what_is_there() -> None:
    for index in range(200):
        scene = make_scene(0, index)
        colours = {thing.colour for thing in scene.objects}
        for caption in describe(scene, random.Random(index)):
            named = set(caption.split()) & {"red", "green", "blue", "yellow", "purple", "orange"}
            assert named <= colours


def test_there_are_no_classes_but_pairs_partly_match() -> None:
    captions = [
        item.captions for item in read_scenes(DataConfig(source="scenes"), Silent())["train"][:500]
    ]
    assert len({caption for each in captions for caption in each}) > 2000
    first = set(captions[0][0].split())
    assert any(len(first & set(other[0].split())) > 4 for other in captions[1:])


def test_splits_do_not_share_scenes() -> None:
    splits = read_scenes(
        DataConfig(source="scenes", pairs={"train": 50, "val": 50, "test": 50}), Silent()
    )
    keys = [item.key for items in splits.values() for item in items]
    assert len(set(keys)) == 150
