"""Caches are named by what files hold, and files that did not change are not read again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from lors.files import digests
from lors.files.digests import file_digests
from lors.system.errors import InputError
from lors.system.progress import Silent

T = TypeVar("T")


class Counting(Silent):
    """Counts the files that are read, and keeps what is said."""

    def __init__(self) -> None:
        self.read, self.said = 0, list[str]()

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        self.read += total
        return iter(items)

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Forty files of one size, and a memory of their own; they count as settled at once."""
    monkeypatch.setenv("LORS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(digests, "SETTLED", -(10**9))
    paths = [tmp_path / f"{i:02d}.bin" for i in range(40)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i]) * 100)
    return paths


def test_equal_content_has_an_equal_digest_whatever_its_name(files: list[Path]) -> None:
    files[1].write_bytes(files[0].read_bytes())
    found = file_digests(files[0].parent, files, Silent())
    assert found[0] == found[1]
    assert len(set(found)) == 39


def test_files_are_read_once_and_again_when_they_change(files: list[Path]) -> None:
    root, told = files[0].parent, Counting()
    first = file_digests(root, files, told)
    assert file_digests(root, files, told) == first
    assert told.read == 40
    files[3].write_bytes(b"x" * 100)
    changed = file_digests(root, files, told)
    assert told.read == 41
    assert [a == b for a, b in zip(first, changed, strict=True)].count(False) == 1


def test_times_that_were_set_back_do_not_hide_a_change(files: list[Path]) -> None:
    root = files[0].parent
    os.utime(files[0], (0, 0))
    first = file_digests(root, files, Silent())
    files[0].write_bytes(b"x" * 100)
    os.utime(files[0], (0, 0))
    assert file_digests(root, files, Silent())[0] != first[0]


def test_a_file_that_changed_just_now_is_read_again(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "SETTLED", 2 * 10**9)
    told = Counting()
    for _ in range(2):
        file_digests(files[0].parent, files, told)
    assert told.read == 80


def test_a_file_system_that_makes_up_times_is_found_out(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, told = files[0].parent, Counting()
    monkeypatch.setattr(digests, "_signature", lambda found: (1, found.st_size, 0, 0))
    first = file_digests(root, files, told)
    assert file_digests(root, files, told) == first
    for path in files:
        path.write_bytes(b"y" + path.read_bytes()[1:])
    changed = file_digests(root, files, told)
    assert not set(changed) & set(first)
    assert any("kept their times" in sentence for sentence in told.said)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1}', b'{"a": [1]}', b"\xff"])
def test_a_damaged_memory_is_made_again(files: list[Path], content: bytes) -> None:
    root = files[0].parent
    first = file_digests(root, files, Silent())
    (memory,) = (root / "home" / "digests").glob("*.json")
    memory.write_bytes(content)
    assert file_digests(root, files, Silent()) == first
    told = Counting()
    assert file_digests(root, files, told) == first
    assert told.read == 0


def test_a_home_that_cannot_be_written_costs_only_time(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (files[0].parent / "file").write_text("")
    monkeypatch.setenv("LORS_HOME", str(files[0].parent / "file" / "home"))
    assert len(file_digests(files[0].parent, files, Silent())) == 40


def test_a_file_that_is_not_there_is_named(files: list[Path]) -> None:
    files[5].unlink()
    with pytest.raises(InputError, match=r"05\.bin"):
        file_digests(files[0].parent, files, Silent())
