from __future__ import annotations

import glob
from pathlib import Path

import pytest

from lors.data import patterns
from lors.data.patterns import matching_files
from lors.system.errors import InputError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "root"
    for name in ("a/x-00.tar", "a/x-01.tar", "a/y-7.tar", "b/x-00.tar", "b/.hidden.tar", "c{d.tar"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (tmp_path / "secret.tar").touch()
    return root


def names(root: Path, pattern: str) -> list[str]:
    return [str(path.relative_to(root)) for path in matching_files(root, pattern, "it")]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a/x-{00..01}.tar", ["a/x-00.tar", "a/x-01.tar"]),
        ("{b,a}/x-{01,00}.tar", None),
        ("a/{y-7,x-{00..01}}.tar", ["a/y-7.tar", "a/x-00.tar", "a/x-01.tar"]),
        ("{b,a}/x-00.tar", ["b/x-00.tar", "a/x-00.tar"]),
        ("{,,}{a}/{y-{7..7}}.tar", ["a/y-7.tar"]),
        ("c{d.tar", ["c{d.tar"]),
        ("{1..999999999}{2..1}.tar", None),
        ("{{1..999999999}{2..1},a/y-7}.tar", ["a/y-7.tar"]),
    ],
)
def test_braces_are_written_out_in_their_order(
    root: Path, pattern: str, expected: list[str] | None
) -> None:
    if expected is None:
        with pytest.raises(InputError, match=r"no shard|no file"):
            names(root, pattern)
    else:
        assert names(root, pattern) == expected


@pytest.mark.parametrize(
    "pattern", ["*/*.tar", "a/x*", "**/x-00.tar", "[ab]/?-0*", "*/.*", "*.tar", "./a/*", "a//*"]
)
def test_wildcards_match_what_those_of_python_match(root: Path, pattern: str) -> None:
    expected = {str(Path(name)) for name in glob.glob(pattern, root_dir=root)}
    assert names(root, pattern) == sorted(expected)
    assert names(root, f"{root}/{pattern}") == sorted(expected)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{1..999999999}.tar", "stands for more than 100,000 names"),
        ("{a,b}" * 40, "stands for more than 100,000 names"),
        ("{a}" * 1300, "has more than 50 braces"),
        ("{" * 1200 + "a" + "}" * 1200, "has more than 50 braces"),
        ("a" * 5000, "longer than any path"),
        ("*" * 100_000, "longer than any path"),
        ("*/.." * 9 + "/*", r"outside the root folder: leave out '\.\.'"),
        ("a/../*", "outside the root folder"),
        ("{.,a}./*.tar", "outside the root folder"),
        ("a\0*", "no shard"),
        ("*\0/a*", "no shard"),
        ("," * 4000, "no file|cannot be the name"),
    ],
)
def test_patterns_out_of_proportion_are_refused(root: Path, pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        names(root, pattern)
    assert len(str(caught.value)) < 600


def test_what_wildcards_look_at_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "VISITED", 1000)
    assert len(names(root, "*/*.tar")) == 4
    for link in "xyz":
        (root / link).symlink_to(root)  # round and round
    for pattern in ("*/*/*/*/*/*.tar", "{0..99}*"):
        with pytest.raises(InputError, match="would look at more than 1,000 files"):
            names(root, pattern)


def test_a_pattern_matches_no_more_files_than_it_may_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "SHARDS", 3)
    with pytest.raises(InputError, match="matches more than 3 files"):
        names(root, "*/*.tar")
