from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lors.data.decoded import cached_images
from lors.data.pairs import Item
from lors.files import arrays
from lors.files.cache import cached_array, fingerprint
from lors.system.errors import InputError, LorsError
from lors.system.progress import Silent


def item(key: str, grey: int, decoded: list[str]) -> Item:
    def load() -> Image.Image:
        decoded.append(key)
        return Image.new("RGB", (5, 3), (grey,) * 3)

    return Item(key, ("x",), load)


def test_images_are_decoded_once_per_content_and_size() -> None:
    decoded: list[str] = []
    items = [item("cache a", 1, decoded), item("cache b", 2, decoded)]
    first, second = (cached_images(items, 4, Silent()) for _ in range(2))
    assert sorted(decoded) == ["cache a", "cache b"]
    assert isinstance(second, np.memmap)
    assert second.shape == (2, 3, 4, 4)
    assert np.array_equal(first, second)
    cached_images(items, 6, Silent())
    cached_images([item("cache c", 1, decoded)], 4, Silent())
    assert len(decoded) == 5


def test_a_failed_decode_leaves_nothing_behind(lors_home: Path) -> None:
    def broken() -> Image.Image:
        raise InputError("broken")

    def files() -> set[Path]:
        return {path for path in (lors_home / "images").iterdir() if path.suffix != ".lock"}

    before = files()
    with pytest.raises(InputError, match="broken"):
        cached_images([Item("broken", ("x",), broken)], 4, Silent())
    assert files() == before


def test_a_damaged_cache_says_that_it_can_be_deleted(lors_home: Path) -> None:
    items = [item("damaged", 1, [])]
    cached_images(items, 5, Silent())
    path = max((lors_home / "images").glob("*.npy"), key=lambda path: path.stat().st_mtime_ns)
    for content in (path.read_bytes()[:-1], b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match="run 'lors doctor --clean', and it is made again"):
            cached_images(items, 5, Silent())
    np.save(path, np.zeros((1, 3, 6, 6), np.uint8))
    with pytest.raises(InputError, match="delete it, and it is made again"):
        cached_images(items, 5, Silent())
    path.unlink()
    assert cached_images(items, 5, Silent()).shape == (1, 3, 5, 5)


def test_what_a_killed_process_left_is_removed_by_the_next_one(lors_home: Path) -> None:
    path = lors_home / "features" / "left.npy"
    path.parent.mkdir(exist_ok=True)
    for name in (".left.npy.77.tmp", ".other.npy.77.tmp"):
        path.with_name(name).write_bytes(b"half")
    cached_array(path, lambda: np.zeros(3), Silent())
    assert not path.with_name(".left.npy.77.tmp").exists()
    assert path.with_name(".other.npy.77.tmp").exists()  # which another process may be writing
    path.with_name(".other.npy.77.tmp").unlink()


@pytest.fixture(params=["size=64k", "size=64k,ro"])
def small_disk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A home on a disk that is nearly full, or cannot be written."""
    mount = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(tmp_path)]
    if os.name == "nt" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root")
    monkeypatch.setenv("LORS_HOME", str(tmp_path))
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_disk_without_room_is_a_sentence_before_anything_is_decoded(small_disk: Path) -> None:
    decoded: list[str] = []
    items = [item(f"small {i}", 1, decoded) for i in range(10)]
    with pytest.raises(LorsError, match=r"cannot be written \((No space|Read-only).*LORS_HOME"):
        cached_images(items, 64, Silent())
    with pytest.raises(LorsError, match=r"cannot be written \((No space|Read-only).*LORS_HOME"):
        cached_array(small_disk / "features" / "a.npy", lambda: np.zeros(100_000), Silent())
    assert not decoded
    assert not list(small_disk.rglob("*.tmp")) + list(small_disk.rglob("*.npy"))


def test_a_disk_that_fills_while_images_are_decoded_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORS_HOME", str(tmp_path))
    monkeypatch.setattr(arrays, "_reserve", lambda file, count: None)

    def full() -> Image.Image:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(LorsError, match=r"cannot be written \(No space"):
        cached_images([Item("full", ("x",), full)], 8, Silent())
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".tmp", ".npy")]


def test_parts_of_a_fingerprint_cannot_run_into_each_other() -> None:
    assert fingerprint("a", "b") != fingerprint("ab") != fingerprint("a", "b", "")
    with pytest.raises(InputError, match="NUL"):
        fingerprint("a\0b")
