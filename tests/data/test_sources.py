"""The file-based sources: Karpathy/BLIP JSON and tables, and what bad input gets."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lors.config import DataConfig
from lors.data import Decoded, load_pairs
from lors.system.errors import InputError
from lors.system.progress import Silent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty small images, each of one grey."""
    (tmp_path / "images").mkdir()
    for i in range(20):
        Image.new("RGB", (9, 7), (i * 10,) * 3).save(tmp_path / "images" / f"{i}.png")
    return tmp_path


def karpathy(folder: Path, rows: object, **settings: object) -> Decoded:
    (folder / "train.json").write_text(json.dumps(rows))
    given = {"source": "karpathy", "root": folder, "annotations": {"train": "train.json"}}
    return load_pairs(DataConfig.model_validate(given | settings), 8)


def rows(count: int = 20) -> list[dict[str, object]]:
    return [{"image": f"images/{i}.png", "caption": [f"grey {i}", f"no {i}"]} for i in range(count)]


def table(folder: Path, text: str, name: str = "table.csv") -> Decoded:
    (folder / name).write_text(text)
    return load_pairs(DataConfig(source="table", root=folder), 8)


def test_captions_in_a_list_or_one_per_row_give_the_same_pairs(folder: Path) -> None:
    listed = karpathy(folder, rows())
    single = [
        {"image": row["image"], "caption": caption}
        for row in rows()
        for caption in row["caption"]  # type: ignore[attr-defined]
    ]
    assert karpathy(folder, single).fingerprint == listed.fingerprint


def test_images_keep_their_captions(folder: Path) -> None:
    pairs = karpathy(folder, rows())
    for split in pairs.splits.values():
        for caption, owner in zip(split.captions, split.owner, strict=True):
            assert np.all(split.images[owner] == 10 * int(caption.split()[1]))


def test_missing_splits_are_held_out_from_train_and_disjoint(folder: Path) -> None:
    pairs = karpathy(folder, rows())
    assert {name: len(split) for name, split in pairs.splits.items()} == {
        "train": 16,
        "val": 2,
        "test": 2,
    }
    greys = [grey for split in pairs.splits.values() for grey in split.images[:][:, 0, 0, 0]]
    assert len(set(greys)) == 20


def test_a_given_split_is_not_held_out(folder: Path) -> None:
    (folder / "val.json").write_text(json.dumps(rows(3)))
    annotations = {"train": "train.json", "val": "val.json"}
    pairs = karpathy(folder, rows(), annotations=annotations)
    assert len(pairs.splits["val"]) == 3
    assert len(pairs.splits["train"]) + len(pairs.splits["test"]) == 20


def test_csv_and_jsonl_with_a_split_column(folder: Path) -> None:
    splits = ["train"] * 16 + ["val"] * 2 + ["test"] * 2
    lines = [f"images/{i}.png,a grey {i},{split}" for i, split in enumerate(splits)]
    from_csv = table(folder, "image,caption,split\n" + "\n".join(lines))
    (folder / "table.csv").unlink()
    objects = [dict(zip(("image", "caption", "split"), x.split(","), strict=True)) for x in lines]
    from_jsonl = table(folder, "\n".join(map(json.dumps, objects)), "table.jsonl")
    assert from_csv.fingerprint == from_jsonl.fingerprint
    assert len(from_csv.splits["test"]) == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"image": "images/none.png", "caption": "x"}, "no file 'images/none.png'"),
        ({"image": "../secret.png", "caption": "x"}, "outside the root"),
        ({"image": "/etc/passwd", "caption": "x"}, "outside the root"),
        ({"image": "images/0.png", "caption": "  "}, "is empty"),
        ({"image": "images/0.png", "caption": []}, "at least one caption"),
        ({"image": "images/0.png"}, "must be text"),
        ({"caption": "x"}, "needs an image"),
        ("x", "needs an image"),
    ],
)
def test_bad_rows_get_a_sentence(folder: Path, row: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        karpathy(folder, [*rows(), row])


@pytest.mark.parametrize(
    ("caption", "message"),
    [
        (3, "must be text"),
        ([["x"]], "must be text"),
        (None, "must be text"),
        ("\0", "characters that no text has"),
        ("half \ud83d", "characters that no text has"),
        ("word " * 250_000, "1,249,999 characters is no caption"),
        ("\u2003\u00a0\t", "is empty"),
    ],
)
def test_a_caption_that_is_none_is_refused(folder: Path, caption: object, message: str) -> None:
    with pytest.raises(InputError, match=f"row 20.*{message}"):
        karpathy(folder, [*rows(), {"image": "images/0.png", "caption": caption}])


@pytest.mark.parametrize("image", ["\0", "a" * 5000, "\ud800.png", "images", ".", "", "~root/x"])
def test_a_name_that_is_no_file_is_refused(folder: Path, image: str) -> None:
    with pytest.raises(InputError, match=r"train\.json row 20"):
        karpathy(folder, [*rows(), {"image": image, "caption": "x"}])


def test_a_name_that_is_no_unicode_is_a_file_like_any(folder: Path) -> None:
    name = os.fsdecode(b"images/\xff.png")
    (folder / "images" / "1.png").rename(folder / name)
    found = [{"image": name, "caption": "x"} if i == 1 else row for i, row in enumerate(rows())]
    assert len(karpathy(folder, found).splits["train"]) == 16


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_of_endless_nesting_is_refused(folder: Path, opening: str) -> None:
    (folder / "train.json").write_text(opening * 200_000)
    config = DataConfig(source="karpathy", root=folder, annotations={"train": "train.json"})
    with pytest.raises(InputError, match="cannot read the annotations"):
        load_pairs(config, 8)
    with pytest.raises(InputError, match="line 1: cannot read it as JSON"):
        table(folder, opening * 200_000, "table.jsonl")


def test_a_table_that_is_a_link_out_of_the_root_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "table.csv"
    outside.write_text("image,caption\nimages/0.png,x")
    (folder / "table.csv").symlink_to(outside)
    with pytest.raises(InputError, match="outside the root"):
        load_pairs(DataConfig(source="table", root=folder), 8)


def test_a_loop_of_links_is_refused(folder: Path) -> None:
    (folder / "images" / "loop.png").symlink_to(folder / "images" / "loop.png")
    with pytest.raises(InputError, match=r"row 20: .*loop\.png"):
        karpathy(folder, [*rows(), {"image": "images/loop.png", "caption": "x"}])


def test_a_link_out_of_the_root_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.png"
    Image.new("RGB", (4, 4)).save(outside)
    (folder / "images" / "link.png").symlink_to(outside)
    with pytest.raises(InputError, match="outside the root"):
        karpathy(folder, [*rows(), {"image": "images/link.png", "caption": "x"}])


@pytest.mark.parametrize("content", [b"", b"not an image", None])
def test_broken_and_truncated_images_are_named(folder: Path, content: bytes | None) -> None:
    path = folder / "images" / "3.png"
    path.write_bytes(path.read_bytes()[:40] if content is None else content)
    with pytest.raises(InputError, match=r"cannot read the image of .*3\.png"):
        karpathy(folder, rows())


def test_too_few_pairs_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="fewer than the 19 asked for"):
        karpathy(folder, rows(), pairs={"train": 19})
    with pytest.raises(InputError, match="too few to hold out"):
        karpathy(folder, rows(1))


def test_bad_files_and_folders_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"data\.root"):
        load_pairs(DataConfig(source="karpathy", annotations={"train": "x"}), 8)
    with pytest.raises(InputError, match="not a folder"):
        load_pairs(DataConfig(source="table", root=folder / "none"), 8)
    with pytest.raises(InputError, match="JSON list"):
        karpathy(folder, {"image": "x"})
    (folder / "train.json").write_text("{")
    with pytest.raises(InputError, match="cannot read the annotations"):
        load_pairs(
            DataConfig(source="karpathy", root=folder, annotations={"train": "train.json"}), 8
        )
    with pytest.raises(InputError, match="0 tables"):
        load_pairs(DataConfig(source="table", root=folder), 8)
    with pytest.raises(InputError, match="columns image and caption"):
        table(folder, "picture,words\nimages/0.png,x")
    with pytest.raises(InputError, match="no training pairs"):
        table(folder, "image,caption,split\nimages/0.png,x,val")
    with pytest.raises(InputError, match="none of train, val, test"):
        table(folder, "image,caption,split\nimages/0.png,x,dev")


class Telling(Silent):
    def __init__(self) -> None:
        self.said = list[str]()

    def say(self, text: str) -> None:
        self.said.append(text)


def test_two_roots_that_only_pixels_tell_apart_share_nothing(folder: Path) -> None:
    other = folder / "other"
    shutil.copytree(folder / "images", other / "images")
    swapped = [(other / "images" / f"{i}.png").read_bytes() for i in (1, 2)]
    for i, content in zip((2, 1), swapped, strict=True):
        (other / "images" / f"{i}.png").write_bytes(content)
    for path in (*folder.rglob("*.png"),):
        os.utime(path, (0, 0))
    ours, theirs = karpathy(folder, rows()), karpathy(other, rows())
    assert ours.fingerprint != theirs.fingerprint
    for pairs in (ours, theirs):
        greys = {
            split.captions[i]: int(split.images[split.owner[i]][0, 0, 0])
            for split in pairs.splits.values()
            for i in range(len(split.captions))
        }
        assert greys["grey 1"] == (10 if pairs is ours else 20)


def test_captions_that_read_alike_when_joined_are_different_data(folder: Path) -> None:
    def of_the_first(caption: object) -> str:
        return karpathy(folder, [{**rows()[0], "caption": caption}, *rows()[1:]]).fingerprint

    assert of_the_first("a|b") != of_the_first(["a", "b"])


def test_an_unclosed_quote_is_refused_with_its_line(folder: Path) -> None:
    lines = [f"images/{i}.png,a grey {i}" for i in range(20)]
    for broken, later in (
        ('"a 6 inch thing', "plain"),
        ('"a 6 inch thing', '"a, b"'),
        ('"a 6" thing', "plain"),
    ):
        bad = [*lines[:2], f"images/2.png,{broken}", *lines[3:], f"images/19.png,{later}"]
        with pytest.raises(InputError, match=r"table\.csv line 4 is not valid CSV"):
            table(folder, "\n".join(["image,caption", *bad]))
    swallowed = [*lines[:2], 'images/2.png,"a 6 inch thing', *lines, *lines, 'images/3.png,x"']
    with pytest.raises(
        InputError, match=r"line 4 starts a row of more than 20 lines: close its quotes"
    ):
        table(folder, "\n".join(["image,caption", *swallowed]))


@pytest.mark.parametrize("columns", ["image,caption,split", "split,caption,image"])
def test_an_unclosed_quote_that_a_later_caption_closes_is_refused(
    columns: str, folder: Path
) -> None:
    captions = [f"grey {i}" for i in range(20)]
    captions[2], captions[4] = '"a 6 inch thing', 'a thing of 5"'
    lines = [[f"images/{i}.png", caption, "train"] for i, caption in enumerate(captions)]
    if columns.startswith("split"):
        lines = [line[::-1] for line in lines]
    with pytest.raises(InputError, match="line 4 starts a row of 3 lines that name further images"):
        table(folder, "\n".join([columns, *map(",".join, lines)]))


def test_a_quoted_caption_may_hold_commas_quotes_and_a_line_break(folder: Path) -> None:
    lines = [f'images/{i}.png,"a ""grey"",\nno {i}"' for i in range(20)]
    pairs = table(folder, "\n".join(["image,caption", *lines]))
    assert 'a "grey", no 3' in [c for split in pairs.splits.values() for c in split.captions]


def test_a_caption_that_would_lose_its_end_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"row 2 has 3 columns, more than the 2"):
        table(folder, "image,caption\nimages/0.png,a dog, running")
    with pytest.raises(InputError, match="names a column twice"):
        table(folder, "image,caption,caption\nimages/0.png,x,y")


def test_what_was_read_is_counted(folder: Path) -> None:
    shutil.copy(folder / "images" / "0.png", folder / "images" / "copy.png")
    lines = [f"images/{i}.png,a grey {i},train" for i in range(16)]
    lines += ["images/3.png,a grey 3,train", "images/copy.png,x,val", "images/17.png,x,test"]
    (folder / "table.csv").write_text("\n".join(["image,caption,split", *lines]))
    told = Telling()
    load_pairs(DataConfig(source="table", root=folder), 8, told)
    assert told.said == [
        "Image files without a caption, which are left out: 3.",
        "Read 19 captions of 18 images: 16 train, 1 val, 1 test.",
        "Captions that stand more than once with the same image: 1.",
        "Images that are copies of others: 1.",
        "Warning: images of val that are also in train: 1. Recall on val looks better than it is "
        "on new images.",
    ]


def test_missing_images_are_counted(folder: Path) -> None:
    for i in (3, 7):
        (folder / "images" / f"{i}.png").unlink()
    with pytest.raises(InputError, match=r"^2 problems in 20 rows \(missing files: 2\)"):
        karpathy(folder, rows())
