"""What fuzzing has found: every case stays an error of ours or a correct load.

A case is a file ``cases/TARGET/NAME``, named after the bug it found; ``python -m tests.fuzz
--minimise`` adds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.explore import slug
from tests.fuzz.limits import attempt, bounded_memory, watched
from tests.fuzz.targets import TARGETS

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*"))
NAMES = {slug(name): name for name in TARGETS}

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="bounds are those of Linux"
)


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with bounded_memory(), watched(300):
        yield


@pytest.mark.parametrize("case", CASES)
def test_what_was_found_is_refused_with_a_sentence_or_read_correctly(
    case: str, tmp_path: Path
) -> None:
    target, root = TARGETS[NAMES[case.partition("/")[0]]], tmp_path / "root"
    if target.needs:
        pytest.importorskip(target.needs)
    root.mkdir()
    target.originals(root)
    outcome = attempt(target, root, (FOLDER / case).read_bytes())
    assert not outcome.wrong, f"{outcome.kind}: {outcome.details}"


def test_cases_are_small() -> None:
    assert CASES
    assert all((FOLDER / case).stat().st_size <= 4096 for case in CASES)
