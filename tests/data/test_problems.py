"""All problems of a dataset are reported at once, and can be left out."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import lors
from lors.config import DataConfig, load_config
from lors.data import Decoded, Pairs, load_pairs
from lors.data.anything import as_pairs
from lors.data.bad_row import BadRowError
from lors.data.checking import check_pairs
from lors.data.problems import BadDataError
from lors.files import artifacts
from lors.files.tables import read_csv
from lors.runs.pipeline import run
from lors.system.errors import InputError
from lors.system.progress import Silent
from tests.data.test_webdataset import picture, shard


class Telling(Silent):
    def __init__(self) -> None:
        self.said = list[str]()

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty images of one grey each, and a table of them."""
    (tmp_path / "images").mkdir()
    for i in range(30):
        Image.new("RGB", (9, 7), (i * 8,) * 3).save(tmp_path / "images" / f"{i}.png")
    rows = [f"images/{i}.png,a grey {i}," for i in range(30)]
    (tmp_path / "table.csv").write_text("\n".join(["image,caption,split", *rows]))
    return tmp_path


BAD = {
    3: "images/none.png,a cat,",
    7: "images/7.png,,",
    9: "images/9.png,a cat,dev",
    11: "../secret.png,a cat,",
    13: ",a cat,",
    15: 'images/15.png,"a 6" cat,',
    17: "images/17.png,a cat, asleep, on a mat",
    19: "images/absent.png,,validation",
    21: "images/21.png",
    23: "images/23.png,a \0 cat,",
}
"""Row of the table, counted as a spreadsheet does -> what stands there."""


def spoil(folder: Path) -> None:
    lines = (folder / "table.csv").read_text().split("\n")
    for row, line in BAD.items():
        lines[row - 1] = line
    (folder / "table.csv").write_text("\n".join(lines))


def load(folder: Path, progress: Silent | None = None, **settings: Any) -> Decoded:
    data = {"source": "table", "root": folder} | settings
    return load_pairs(DataConfig.model_validate(data), 8, progress)


def images_of(pairs: Decoded) -> list[int]:
    """Which images there are, by their grey."""
    return sorted(
        int(grey) // 8 for split in pairs.splits.values() for grey in split.images[:][:, 0, 0, 0]
    )


def test_every_bad_row_is_in_one_report(folder: Path) -> None:
    spoil(folder)
    with pytest.raises(BadDataError) as caught:
        load(folder)
    first, *lines = str(caught.value).split("\n")
    assert first.startswith("12 problems in 30 rows (")
    for counted in ("missing files: 2", "paths outside the root: 1", "unknown splits: 2"):
        assert counted in first
    assert "data.skip_bad=true" in first
    for row in BAD:
        assert any(f"row {row}" in line or f"line {row}" in line for line in lines), row
    assert sum("row 19" in line for line in lines) == 3  # a missing file, no caption, a split


def test_bad_rows_are_left_out_and_listed(folder: Path) -> None:
    spoil(folder)
    told = Telling()
    pairs = load(folder, told, skip_bad=True)
    assert images_of(pairs) == [i for i in range(30) if i + 2 not in BAD]
    (said,) = [sentence for sentence in told.said if sentence.startswith("Left out")]
    listed = read_csv(Path(said.split("'")[1]))
    assert len(listed) == 12
    assert [row["kind"] for row in listed if "secret.png" in row["problem"]] == [
        "paths outside the root"
    ]


def test_good_data_is_the_same_whether_bad_rows_are_left_out_or_not(folder: Path) -> None:
    assert load(folder).fingerprint == load(folder, skip_bad=True).fingerprint


def test_all_images_are_decoded_before_the_broken_ones_are_reported(folder: Path) -> None:
    for i in (4, 20):
        path = folder / "images" / f"{i}.png"
        path.write_bytes(path.read_bytes()[:45])
    (folder / "images" / "12.png").write_text("no image")
    with pytest.raises(BadDataError) as caught:
        load(folder)
    message = str(caught.value)
    assert message.startswith("3 problems in 30 images (unreadable images: 3)")
    for i in (4, 12, 20):
        assert f"cannot read the image of table.csv row {i + 2}, " in message
    told = Telling()
    pairs = load(folder, told, skip_bad=True)
    assert images_of(pairs) == [i for i in range(30) if i not in (4, 12, 20)]
    assert "unreadable images: 3" in told.said[-1]
    again = load(folder, skip_bad=True)  # from the cache
    assert again.fingerprint == pairs.fingerprint
    Image.new("RGB", (9, 7), (32,) * 3).save(folder / "images" / "4.png")
    assert 4 in images_of(load(folder, skip_bad=True))


def test_an_image_that_could_not_be_read_for_a_while_is_not_left_out_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(where: str) -> Image.Image:
        raise BadRowError(f"cannot read {where}", "unreadable images")

    pictures = [Image.new("RGB", (4, 4), (i, 3, 77)) for i in range(20)]
    pairs = Pairs.images(pictures, [f"number {i}" for i in range(20)])
    config = DataConfig(source="objects", skip_bad=True)
    with monkeypatch.context() as patch:
        patch.setattr("lors.data.objects.as_image", lambda image, where: unreachable(where))
        with pytest.raises(InputError, match="no image of the split 'train' can be decoded"):
            pairs.find(config, Silent())(4)
    assert len(pairs.find(config, Silent())(4).splits["train"]) == 16


def test_one_problem_is_one_sentence(folder: Path) -> None:
    (folder / "images" / "5.png").unlink()
    with pytest.raises(BadDataError) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("table.csv row 7: there is no file 'images/5.png'")


def test_many_problems_are_counted_and_the_first_shown(folder: Path) -> None:
    rows = [f"images/none{i}.png,a cat" for i in range(500)]
    (folder / "table.csv").write_text("\n".join(["image,caption", *rows]))
    with pytest.raises(BadDataError) as caught:
        load(folder)
    lines = str(caught.value).split("\n")
    assert len(lines) == 22
    assert lines[-1].startswith("  … and 480 more")
    assert len(caught.value.problems) == 500


def test_a_row_is_named_as_a_spreadsheet_does(folder: Path) -> None:
    rows = ['images/0.png,"two\nlines"', "images/none.png,a cat"]
    (folder / "table.csv").write_text("\n".join(["image,caption", *rows]))
    with pytest.raises(InputError, match=r"^table\.csv row 3 \(line 4\): there is no file"):
        load(folder)


def test_after_an_unclosed_quote_reading_goes_on_in_the_next_line(folder: Path) -> None:
    lines = (folder / "table.csv").read_text().split("\n")
    lines[4], lines[9] = 'images/3.png,"a 6 inch cat,', "images/none.png,a cat,"
    (folder / "table.csv").write_text("\n".join(lines))
    with pytest.raises(BadDataError) as caught:
        load(folder)
    assert [problem.kind for problem in caught.value.problems] == [
        "quotes that are not closed",
        "missing files",
    ]
    assert images_of(load(folder, skip_bad=True)) == [i for i in range(30) if i not in (3, 8)]


def test_a_table_in_another_encoding_is_reported_by_row(folder: Path) -> None:
    text = (folder / "table.csv").read_text().replace("grey 3,", "gr\xe9y 3,")
    (folder / "table.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"row 5: .*not UTF-8"):
        load(folder)
    (folder / "table.csv").write_bytes(text.encode("utf-16"))
    with pytest.raises(InputError, match=r"the first line of table\.csv is not UTF-8"):
        load(folder)


def test_a_file_that_cannot_be_read_at_all_comes_with_the_problems_of_the_others(
    folder: Path,
) -> None:
    (folder / "images" / "5.png").unlink()
    rows = [{"image": f"images/{i}.png", "caption": "" if i == 3 else "x"} for i in range(20)]
    (folder / "train.json").write_text(json.dumps(rows))
    (folder / "val.json").write_text("{")
    files = {"train": "train.json", "val": "val.json"}
    with pytest.raises(InputError) as caught:
        load(folder, source="karpathy", annotations=files)
    assert "cannot read the annotations" in str(caught.value)
    assert "train.json row 3: the caption is empty" in str(caught.value)


def test_shards_report_every_key(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {}
    for i in range(20):
        members |= {f"{i}.png": picture(i), f"{i}.txt": str(i)}
    del members["3.txt"], members["5.png"]
    shard(tmp_path / "train-0.tar", members)
    (tmp_path / "train-1.tar").write_text("not a tar")
    settings: dict[str, Any] = {"source": "webdataset"}
    settings["annotations"] = {"train": "train-*.tar"}
    with pytest.raises(BadDataError) as caught:
        load(tmp_path, **settings)
    assert sorted(problem.kind for problem in caught.value.problems) == [
        "damaged shards",
        "pairs without caption",
        "pairs without image",
    ]
    pairs = load(tmp_path, skip_bad=True, **settings)
    assert sum(map(len, pairs.splits.values())) == 18


def test_lists_in_memory_are_checked_whole() -> None:
    pictures = [Image.new("RGB", (4, 4), (i,) * 3) for i in range(4)]
    with pytest.raises(BadDataError) as caught:
        Pairs.images([*pictures[:3], np.zeros((2, 2))], ["x", "", 3, "y"])
    assert str(caught.value).startswith("3 problems in 4 images (")
    assert "or give skip_bad=True" in str(caught.value)
    assert "lors check" not in str(caught.value)


class Broken(list[Any]):
    """A dataset some of whose files cannot be opened."""

    def __getitem__(self, row: Any) -> Any:
        if row == 7:
            raise OSError("disk error")
        return super().__getitem__(row)


@pytest.mark.parametrize("door", ["lists", "dataset", "huggingface", "arrays"])
def test_bad_rows_in_memory_are_left_out_and_listed(door: str, tmp_path: Path) -> None:
    pictures = [Image.new("RGB", (4, 4), (8 * i,) * 3) for i in range(30)]
    captions: list[Any] = [f"number {i}" for i in range(30)]
    captions[7] = "" if door != "dataset" else captions[7]
    data: Any
    if door == "lists":
        pictures[9] = None  # type: ignore[call-overload]
        data, bad = (pictures, captions), 2
    elif door == "dataset":
        data, bad = Broken(zip(pictures, captions, strict=True)), 1
    elif door == "huggingface":
        datasets = pytest.importorskip("datasets")
        rows = {"image": pictures, "caption": captions}
        data, bad = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image()), 1
    else:
        images, texts = np.random.default_rng(0).normal(size=(2, 30, 3))
        images[7], texts[9:12] = np.nan, np.inf
        data, bad = (images, texts), 4
    with pytest.raises(BadDataError, match="skip_bad=True"):
        as_pairs(data)
    pairs = as_pairs(data, skip_bad=True)
    kinds = 2 if door == "arrays" else bad  # neighbours are one problem
    assert len(pairs.skipped) == kinds
    assert f"{kinds} skipped" in repr(pairs)
    told = Telling()
    config = DataConfig.model_validate(pairs.settings)
    found = pairs.find(config, told)(4)
    assert sum(map(len, found.splits.values())) == 30 - bad
    (said,) = [sentence for sentence in told.said if sentence.startswith("Left out")]
    assert len(read_csv(Path(said.split("'")[1]))) == kinds


def test_what_a_run_leaves_out_is_listed_in_its_directory(folder: Path, tmp_path: Path) -> None:
    spoil(folder)
    settings = {
        "data": {"source": "table", "root": str(folder), "skip_bad": True},
        "encoder.text_dim": 4,
        "selection.kind": "random",
    }
    out = tmp_path / "run"
    before = set((artifacts.home() / "skipped").glob("*"))
    run(load_config("tiny", settings), out, references=False, evaluate=False)
    assert len(read_csv(out / "skipped.csv")) == 12
    assert set((artifacts.home() / "skipped").glob("*")) == before


def test_a_call_that_keeps_no_run_lists_below_the_home() -> None:
    images, texts = np.random.default_rng(0).normal(size=(2, 60, 3))
    images[7] = np.nan
    told = Telling()
    quick: dict[str, Any] = {"evaluate": {"epochs": 1, "seeds": 1}, "tried_rates": [0.1]}
    lors.distill(images, texts, pairs=8, method="random", skip_bad=True, progress=told, **quick)
    (said,) = [sentence for sentence in told.said if sentence.startswith("Left out")]
    path = Path(said.split("'")[1])
    assert path.parent == artifacts.home() / "skipped"
    assert len(read_csv(path)) == 1


def test_rows_of_arrays_that_are_not_finite_are_told_together() -> None:
    images, texts = np.ones((40, 3)), np.ones((40, 2))
    images[3, 1], images[5:9], texts[7, 0] = np.nan, np.inf, np.nan
    with pytest.raises(BadDataError) as caught:
        Pairs.arrays(images, texts)
    message = str(caught.value)
    assert message.startswith("6 problems in 80 embeddings (rows that are not finite: 6)")
    assert "'images' must be finite floating-point numbers: rows 5 to 8 hold" in message


def test_a_report_survives_the_way_back_from_a_worker(folder: Path) -> None:
    spoil(folder)
    with pytest.raises(BadDataError) as caught:
        load(folder)
    back = pickle.loads(pickle.dumps(caught.value))
    assert str(back) == str(caught.value)
    assert [p.kind for p in back.problems] == [p.kind for p in caught.value.problems]


def test_a_check_finds_problems_of_rows_and_of_images_together(folder: Path) -> None:
    spoil(folder)
    (folder / "images" / "27.png").write_text("no image")
    checked = check_pairs(DataConfig(source="table", root=folder))
    assert len(checked.problems) == 13
    assert checked.problems[-1].kind == "unreadable images"
    assert str(checked.error()).startswith("13 problems in 30 rows")
    counts = [int(checked.facts[name].split()[0]) for name in ("train", "val", "test")]
    assert sum(counts) == 30 - len(BAD) - 1


def test_a_check_of_good_data_says_what_it_holds(folder: Path) -> None:
    lines = (folder / "table.csv").read_text().split("\n")
    lines += ["images/0.png,a grey 0,", "images/1.png,another,"]
    lines[5] = lines[5].replace("images/4.png", "images/1.png") + "test"
    (folder / "table.csv").write_text("\n".join(lines))
    Image.new("RGB", (20, 30)).save(folder / "images" / "8.png")
    checked = check_pairs(DataConfig(source="table", root=folder))
    assert checked.error() is None
    assert checked.facts == {
        "train": "26 images, 28 captions",
        "test": "1 images, 1 captions",
        "val": "3 images, 3 captions",
        "captions per image": "1 to 2, mean 1.1",
        "image sizes": "from 9 x 7 to 20 x 30 pixels, median 9 x 7",
        "repeated captions": "1",
        "copies of images": "1",
        "val also in train": "0",
        "test also in train": "1",
    }


def test_a_check_of_what_is_left_may_fail_too(folder: Path) -> None:
    rows = ["images/0.png,a cat", *[f"images/none{i}.png,a cat" for i in range(3)]]
    (folder / "table.csv").write_text("\n".join(["image,caption", *rows]))
    error = check_pairs(DataConfig(source="table", root=folder)).error()
    assert "too few to hold out" in str(error)
    assert "missing files: 3" in str(error)
