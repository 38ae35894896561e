"""Damaged and hostile files: an error of ours or a correct load, never anything else.

``LORS_FUZZ=5000 pytest tests/fuzz`` tries 5,000 mutants of each kind of file instead of 100, and
fewer where a reader is slow. A failure names the mutant's number and keeps it in the temporary
folder. ``python -m tests.fuzz`` goes deeper, guided by coverage.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.limits import attempt, bounded_memory, watched
from tests.fuzz.mutate import mutants
from tests.fuzz.targets import TARGETS

COUNT = int(os.environ.get("LORS_FUZZ", "100"))
LEAST = 3

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="bounds are those of Linux"
)


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with bounded_memory(), watched(300):
        yield


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_refused_with_a_sentence_or_read_correctly(
    name: str, tmp_path: Path
) -> None:
    target, root = TARGETS[name], tmp_path / "root"
    if target.needs:
        pytest.importorskip(target.needs)
    root.mkdir()
    originals = target.originals(root)
    whole = attempt(target, root, originals[0])
    assert whole.kind == "loaded", whole.details
    count = max(LEAST, round(COUNT * target.share))
    outcomes: Counter[str] = Counter()
    for number, mutant in enumerate(mutants(originals, target.aware, count, name)):
        outcome = attempt(target, root, mutant)
        outcomes[outcome.kind] += 1
        if outcome.wrong:
            kept = tmp_path / f"mutant-{number}"
            kept.write_bytes(mutant)
            pytest.fail(f"{outcome.kind}, kept as {kept}: {outcome.details}")
    print(f"{name}: {dict(outcomes)}")
    assert outcomes["refused"] or target.share < 1
