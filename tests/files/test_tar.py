from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lors.files import tar
from lors.files.tar import TarError, tar_members

NAMES = [
    "a.jpg",
    "folder/b.txt",
    "é" * 45 + ".png",
    "x" * 70 + "/" + "y" * 60 + "/" + "z" * 90 + ".txt",  # fits the prefix of ustar
    "long/" * 60 + "z" * 200 + ".json",
]


def header(kind: bytes, size: int | bytes = 0, name: bytes = b"a.txt", **more: bytes) -> bytes:
    """One block of a tar file, with a checksum that fits."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124:136] = size if isinstance(size, bytes) else b"%011o\0" % size
    block[156:157], block[257:265] = kind, b"ustar\x0000"
    for place, content in more.items():
        block[int(place[1:]) : int(place[1:]) + len(content)] = content
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def record(key: bytes, value: bytes) -> bytes:
    """``LENGTH KEY=VALUE``, where the length counts itself."""
    size = len(key) + len(value) + 3
    size += len(str(size + len(str(size))))
    return b"%d %s=%s\n" % (size, key, value)


def extended(kind: bytes, body: bytes) -> bytes:
    return header(kind, len(body)) + padded(body)


END = bytes(1024)
FILE = header(b"0", 3) + padded(b"abc")


def by_tarfile(path: Path) -> list[tuple[str, int, int]]:
    with tarfile.open(path, "r:") as found:
        return [(m.name, m.offset_data, m.size) for m in found if m.isreg()]


def check_like_tarfile(path: Path, count: int) -> None:
    found = list(tar_members(path))
    assert found == by_tarfile(path)
    assert len(found) == count


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_python_are_read_as_tarfile_reads_them(tmp_path: Path, kind: int) -> None:
    names = NAMES[:4] if kind == tarfile.USTAR_FORMAT else NAMES
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=kind) as made:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = 300 * number, 1.5 if kind == tarfile.PAX_FORMAT else 1
            made.addfile(member, io.BytesIO(bytes(member.size)))
            for other in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
                link = tarfile.TarInfo(f"{name[:70]}.{other.decode()}")
                link.type, link.linkname = other, name[:70]
                made.addfile(link)
    check_like_tarfile(path, len(names))


@pytest.mark.parametrize("program", ["tar", "bsdtar"])
@pytest.mark.parametrize("kind", ["v7", "ustar", "gnu", "posix"])
def test_archives_of_tar_programs_are_read_as_tarfile_reads_them(
    tmp_path: Path, program: str, kind: str
) -> None:
    if shutil.which(program) is None or (program, kind) == ("bsdtar", "gnu"):
        pytest.skip(f"{program} is not here, or does not write {kind}")
    folder, path = tmp_path / "files", tmp_path / "a.tar"
    names = NAMES[: {"v7": 2, "ustar": 4}.get(kind, 5)]
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(700 * number))
    (folder / "link").symlink_to("a.jpg")
    form = "pax" if (program, kind) == ("bsdtar", "posix") else kind
    places = sorted(entry.name for entry in folder.iterdir())
    options = ["--format", form, "-cf", str(path), "-C", str(folder)]
    subprocess.run([program, *options, *places], check=True)
    check_like_tarfile(path, len(names))


@given(
    st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=300), max_size=5),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_any_names_come_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], kind: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.tar"
    with tarfile.open(path, "w", format=kind, encoding="utf-8", errors="surrogatepass") as made:
        for name in names:
            made.addfile(tarfile.TarInfo(f"x{name}y"))
    found = [member.name for member in tar_members(path)]
    assert found == [
        f"x{name}y".encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
        for name in names
    ]


def test_sizes_beyond_8_gib_are_read(tmp_path: Path) -> None:
    size = 9 * 2**30
    for number, start in enumerate(
        [
            header(b"0", b"\x80" + size.to_bytes(11, "big")),
            extended(b"x", record(b"size", b"%d" % size)) + header(b"0"),
        ]
    ):
        path = tmp_path / f"{number}.tar"
        with path.open("wb") as file:
            file.write(start)
            file.seek(size, io.SEEK_CUR)  # a hole: it takes no space on disk
            file.write(FILE + END)
        check_like_tarfile(path, 2)


def test_times_of_gnu_tar_are_not_part_of_a_name(tmp_path: Path) -> None:
    block = header(b"0", p257=b"ustar  \0", p345=b"14700000000\0")
    assert [m.name for m in tar_members(write(tmp_path / "a.tar", block + END))] == ["a.txt"]


def test_an_archive_may_end_without_its_end(tmp_path: Path) -> None:
    for end in (b"", bytes(100), bytes(512), END + b"more"):
        assert len(list(tar_members(write(tmp_path / "a.tar", FILE + end)))) == 1


@pytest.mark.parametrize("kind", [b"x", b"X", b"g", b"L", b"K"])
@pytest.mark.parametrize("size", [2**16 + 1, 4 * 10**6, 3 * 2**30])
def test_large_extended_headers_are_refused_before_they_are_read(
    tmp_path: Path, kind: bytes, size: int
) -> None:
    path = tmp_path / "a.tar"
    with path.open("wb") as file:
        file.write(header(kind, size) + b"1" * 512)
        file.truncate(512 + -(-size // 512) * 512)  # a hole: it takes no space on disk
        file.seek(0, io.SEEK_END)
        file.write(FILE + END)
    with pytest.raises(TarError, match=f"has {size:,} bytes, and 65,536 are enough"):
        list(tar_members(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\x1f\x8b" + bytes(600), "header at byte 0 is damaged"),
        (FILE + b"z" * 512 + FILE + END, "header at byte 1,024 is damaged"),
        (FILE + FILE[:300], "cut off"),
        (header(b"0", 3), "cut off"),
        (header(b"0", 3) + b"abc", "cut off"),
        (header(b"0", 10**6) + END, "cut off"),
        (header(b"0", b"-0000000010\0") + END, "header at byte 0 is damaged"),
        (header(b"0", b"0_0\0") + END, "header at byte 0 is damaged"),
        (header(b"0", b"\xff" * 12) + END, "header at byte 0 is damaged"),
        (header(b"S", 3, p482=b"\1") + END, "sparse file at byte 0"),
        (extended(b"x", record(b"GNU.sparse.major", b"1")) + FILE + END, "sparse file"),
        (extended(b"g", record(b"path", b"a")) + FILE + END, "gives all members one name"),
        (extended(b"x", record(b"path", b"a\0b")) + FILE + END, "holds a NUL"),
        (extended(b"x", record(b"size", b"9" * 6000)) + FILE + END, "is damaged"),
        (extended(b"x", record(b"size", b"-512")) + FILE + END, "is damaged"),
        (extended(b"x", b"1" * 60_000) + FILE + END, "extended header at byte 0 is damaged"),
        (extended(b"x", b"99 path=a\n") + FILE + END, "extended header at byte 0 is damaged"),
        (extended(b"x", b"0 path=a\n") + FILE + END, "extended header at byte 0 is damaged"),
        (extended(b"x", b"6 path\n") + FILE + END, "extended header at byte 0 is damaged"),
        (extended(b"L", b"name") + END, "no member follows"),
        (extended(b"L", b"name") * 5000 + FILE + END, "too many extended headers"),
    ],
)
def test_damaged_archives_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(TarError, match=message):
        list(tar_members(write(tmp_path / "a.tar", content)))


def test_endless_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar, "MEMBERS", 3)
    assert len(list(tar_members(write(tmp_path / "a.tar", FILE * 3 + END)))) == 3
    with pytest.raises(TarError, match="too many members"):
        list(tar_members(write(tmp_path / "a.tar", FILE * 4 + END)))
