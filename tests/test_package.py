"""The wheel and the sdist have what users need and nothing else; ``make package`` tests dist/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    path.relative_to(ROOT / "src").as_posix()
    for path in (ROOT / "src" / "lors").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist: the one in LORS_DIST, or a new one."""
    if given := os.environ.get("LORS_DIST"):
        return Path(given)
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    (path,) = dist.glob("lors-*-py3-none-any.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_the_wheel_is_the_package_and_its_licence(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    beside = {re.sub(r"^lors-[^/]*\.dist-info/", "", name) for name in names - SOURCES}
    assert names >= SOURCES
    assert beside == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert {"lors/py.typed", "lors/config/methods.yaml", "lors/config/presets/start.yaml"} <= names


def test_the_sdist_has_what_the_wheel_is_built_from(dist: Path) -> None:
    (path,) = dist.glob("lors-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    documents = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md"}
    beside = names - {f"src/{name}" for name in SOURCES}
    assert {f"src/{name}" for name in SOURCES} <= names
    assert beside == documents | {"pyproject.toml", "PKG-INFO", ".gitignore"}


def test_both_have_less_than_a_megabyte(dist: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in dist.glob("lors-*")}
    assert len(sizes) == 2
    assert max(sizes.values()) < 1_000_000, sizes


def test_the_readme_of_the_package_has_no_link_that_works_only_in_the_repository(
    metadata: Message,
) -> None:
    readme = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)\s]+)", readme) + re.findall(
        r'(?:src|srcset|href)="([^"]+)', readme
    )
    assert readme.startswith("# lors")
    assert links
    assert [link for link in links if not re.match("https://|#", link)] == []


def test_the_package_says_where_its_home_is_and_what_it_is(metadata: Message) -> None:
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert urls.keys() >= {"Homepage", "Documentation", "Changelog", "Issues"}
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["License-Expression"] == "MIT"


def test_the_wheel_works_where_nothing_else_of_the_repository_is(
    wheel: zipfile.ZipFile, metadata: Message, tmp_path: Path
) -> None:
    wheel.extractall(tmp_path)
    code = "import sys, lors, lors.__main__ as m; print(lors.__file__); sys.argv[1:] = {}; m.main()"
    for words, answer in (
        (["--version"], f"lors {metadata['Version']}"),
        (["settings", "distill.budget"], "distill.budget = 100"),
        (["presets", "tiny"], "distill:"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code.format(words)],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert str(tmp_path) in done.stdout
        assert answer in done.stdout, done.stderr
