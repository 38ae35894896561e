from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lors.config import DataConfig
from lors.data import load_pairs
from lors.data.pairs import Item
from lors.data.webdataset import read_webdataset
from lors.system.errors import InputError
from lors.system.progress import Silent


def picture(grey: int, kind: str = "png") -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (5, 4), (grey,) * 3).save(data, kind)
    return data.getvalue()


def shard(path: Path, members: dict[str, bytes | str], mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def read(root: Path, train: str = "train.tar", **others: str) -> dict[str, list[Item]]:
    annotations = {"train": train, **others}
    return read_webdataset(
        DataConfig(source="webdataset", root=root, annotations=annotations), Silent()
    )


def grey(item: Item) -> int:
    image = item.load()
    assert image.mode == "RGB"
    return int(np.asarray(image)[0, 0, 0])


def test_captions_come_from_text_lines_or_json(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        "a.png": picture(10),
        "a.txt": "one\n\n two  words\n",
        "b.json": json.dumps({"caption": ["three", "four"]}),
        "b.WEBP": picture(20, "webp"),
        "folder/c.jpg": picture(30, "jpeg"),
        "folder/c.json": json.dumps({"caption": "five"}),
        "d.png": picture(40),
        "d.txt": "text wins",
        "d.json": "{}",
    }
    shard(tmp_path / "train.tar", members)
    items = read(tmp_path)["train"]
    assert [item.captions for item in items] == [
        ("one", "two words"),
        ("three", "four"),
        ("five",),
        ("text wins",),
    ]
    assert [grey(item) for item in items] == pytest.approx([10, 20, 30, 40], abs=2)


@pytest.mark.parametrize(
    "pattern", ["a/train-{008..011}.tar", "a/train-*.tar", "a/train-{008,009,01[01],010}.tar"]
)
def test_patterns_name_the_same_shards(tmp_path: Path, pattern: str) -> None:
    for i in range(8, 12):
        members: dict[str, bytes | str] = {"x.png": picture(i), "x.txt": str(i)}
        shard(tmp_path / "a" / f"train-{i:03d}.tar", members)
        shard(tmp_path / "a" / f"val-{i:03d}.tar", members)
    splits = read(tmp_path, pattern, val="a/val-009.tar")
    assert [item.captions for item in splits["train"]] == [("8",), ("9",), ("10",), ("11",)]
    assert [grey(item) for item in splits["train"]] == [8, 9, 10, 11]
    assert [item.captions for item in splits["val"]] == [("9",)]
    assert len({item.key for item in splits["train"]}) == 4


def test_a_changed_shard_changes_its_keys(tmp_path: Path) -> None:
    shard(tmp_path / "train.tar", {"a.png": picture(1), "a.txt": "x"})
    before = read(tmp_path)["train"][0].key
    assert read(tmp_path)["train"][0].key == before
    shard(tmp_path / "train.tar", {"a.png": picture(2), "a.txt": "x"})
    assert read(tmp_path)["train"][0].key != before


def test_links_and_folders_in_a_shard_are_ignored(tmp_path: Path) -> None:
    shard(tmp_path / "train.tar", {"a.png": picture(1), "a.txt": "x", "._a.png": "mac"})
    with tarfile.open(tmp_path / "train.tar", "a") as tar:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"b{kind.decode()}.png")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    assert len(read(tmp_path)["train"]) == 1


def test_broken_images_are_named_by_shard_and_key(tmp_path: Path) -> None:
    contents = {"empty": b"", "text": b"no image", "short": picture(1)[:45]}
    members: dict[str, bytes | str] = {}
    for key, content in contents.items():
        members |= {f"{key}.png": content, f"{key}.txt": "x"}
    shard(tmp_path / "train.tar", members)
    for item, key in zip(read(tmp_path)["train"], contents, strict=True):
        with pytest.raises(InputError, match=rf"cannot read the image of '{key}' .*train\.tar"):
            item.load()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.txt": "x"}, "'a' in the shard .* has no image: add a .jpg"),
        ({"a.png": "x"}, "'a' in the shard .* has no caption: add a .txt"),
        ({"a.png": "x", "a.txt": " \n"}, "the caption is empty"),
        ({"a.png": "x", "a.txt": b"\xff"}, r"cannot read its \.txt"),
        ({"a.png": "x", "a.json": "{"}, r"cannot read its \.json"),
        ({"a.png": "x", "a.json": "[]"}, 'an object with "caption"'),
        ({"a.png": "x", "a.json": '{"text": "x"}'}, 'an object with "caption"'),
        ({"a.png": "x", "a.json": '{"caption": [3]}'}, "must be text"),
        ({"a.png": "x", "a.json": '{"caption": []}'}, "the caption is empty"),
        ({"a.png": "x", "a.PNG": "x", "a.txt": "x"}, "'a.png' twice"),
    ],
)
def test_bad_samples_get_a_sentence(
    tmp_path: Path, members: dict[str, bytes | str], message: str
) -> None:
    shard(tmp_path / "train.tar", members)
    with pytest.raises(InputError, match=message):
        read(tmp_path)


def test_compressed_truncated_and_false_shards_are_refused(tmp_path: Path) -> None:
    whole: dict[str, bytes | str] = {"a.txt": "x", "a.png": picture(1) + bytes(5000)}
    shard(tmp_path / "packed.tar", whole, "w:gz")
    shard(tmp_path / "short.tar", whole)
    (tmp_path / "short.tar").write_bytes((tmp_path / "short.tar").read_bytes()[:3000])
    (tmp_path / "false.tar").write_text("not a tar")
    for name in ("packed", "short", "false"):
        with pytest.raises(InputError, match=rf"cannot read the shard .*{name}\.tar.*complete tar"):
            read(tmp_path, f"{name}.tar")


def with_size(content: bytes, member: int, size: bytes) -> bytes:
    """A tar file in which the header of a member claims another size."""
    start = [s for s in range(0, len(content), 512) if content[s + 257 : s + 262] == b"ustar"]
    block = bytearray(content[start[member] : start[member] + 512])
    block[124:136] = size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return content[: start[member]] + bytes(block) + content[start[member] + 512 :]


@pytest.mark.parametrize("member", [0, 1, 2, 3])
@pytest.mark.parametrize("back", [512, 1024, 1536, 10**6])
def test_a_shard_that_leads_backwards_is_refused(tmp_path: Path, member: int, back: int) -> None:
    path = tmp_path / "train.tar"
    shard(path, {"a.png": picture(1), "a.txt": "x", "é" * 200 + ".png": picture(1)})
    negative = b"\xff" * 4 + (2**64 - back).to_bytes(8, "big")
    path.write_bytes(with_size(path.read_bytes(), member, negative))
    with pytest.raises(InputError, match="the shard"):
        read(tmp_path)


def test_a_member_beyond_any_photo_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "train.tar").open("wb") as file:
        for name, size in (("a.txt", 1), ("a.png", 2**29)):
            member = tarfile.TarInfo(name)
            member.size = size
            file.write(member.tobuf())
            file.seek(-(-size // 512) * 512, io.SEEK_CUR)  # a hole: it takes no space on disk
        file.write(bytes(1024))
    with pytest.raises(InputError, match=r"'a' .*its \.png file has 536,870,912 bytes"):
        read(tmp_path)


def test_json_of_endless_nesting_is_refused(tmp_path: Path) -> None:
    shard(tmp_path / "train.tar", {"a.png": picture(1), "a.json": "[" * 200_000})
    with pytest.raises(InputError, match=r"cannot read its \.json"):
        read(tmp_path)


@pytest.mark.parametrize("pattern", ["train{,}" + "{,}" * 20, "train{0..999999999}.tar"])
def test_a_pattern_of_endless_names_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InputError, match="more than 100,000 names"):
        read(tmp_path, pattern)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("train-*.tar", "no shard below .* matches"),
        ("train-{0..3}.tar", "no file 'train-0.tar'"),
        ("../secret.tar", "outside the root"),
        ("../secret*.tar", "outside the root"),
        ("link.tar", "outside the root"),
        ("/etc/*.tar", "is not below the root folder"),
    ],
)
def test_shards_must_exist_below_the_root(tmp_path: Path, pattern: str, message: str) -> None:
    shard(tmp_path / "secret.tar", {"a.png": picture(1), "a.txt": "x"})
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.tar").symlink_to(tmp_path / "secret.tar")
    with pytest.raises(InputError, match=message):
        read(root, pattern)


def test_the_settings_must_name_splits(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs data\.annotations\.train"):
        read_webdataset(DataConfig(source="webdataset", root=tmp_path), Silent())
    shard(tmp_path / "train.tar", {"a.png": picture(1), "a.txt": "x"})
    names = {"train": "train.tar", "validation": "train.tar"}
    with pytest.raises(InputError, match="none of train, val, test"):
        load_pairs(DataConfig(source="webdataset", root=tmp_path, annotations=names), 8)
