"""Fuzzing guided by coverage: what takes a new step in the code is kept and damaged further.

Each target runs in a child process with limits. If an input hangs in native code, or ends the
process, it is recorded and the next child goes on behind it. Everything is kept in a folder, so
that a longer run continues a shorter one.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from tests.fuzz.child import Child, Say
from tests.fuzz.limits import SECONDS, WALL, Outcome, attempt, bounded_memory
from tests.fuzz.mutate import next_input
from tests.fuzz.reached import PACKAGE, Reached, Step
from tests.fuzz.target import Target

GENERATION = 2000
"""Inputs of one child, so that what readers leak does not count as what one input asks for."""
START = 60.0
"""Seconds that a child may take to import what it needs."""
KEPT_BYTES = 2**18
"""The largest input that is damaged further."""


@dataclass
class Tally:
    """What is known of a target so far.

    Args:
        inputs: tried.
        seconds: taken.
        lines: of lors that were reached.
        kinds: how often each outcome was seen.
    """

    inputs: int = 0
    seconds: float = 0.0
    lines: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def findings(self) -> list[str]:
        return [kind for kind in self.kinds if Outcome(kind).wrong]

    @classmethod
    def load(cls, path: Path) -> Tally:
        if not path.is_file():
            return cls()
        known = json.loads(path.read_text("utf-8"))
        return cls(**{**known, "kinds": Counter(known["kinds"])})

    def save(self, path: Path) -> None:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(vars(self), indent=1), "utf-8")
        os.replace(temporary, path)


@dataclass(frozen=True)
class Exploration:
    """The fuzzing of one target.

    Args:
        name: of the target; seeds its inputs.
        target: the reader.
        folder: for the tally, the corpus and the findings.
        seed: draws the inputs.
        seconds: the limit of one input.
        package: the folder whose code is to be covered.
    """

    name: str
    target: Target
    folder: Path
    seed: int = 0
    seconds: float = SECONDS
    package: str = PACKAGE

    def run(self, inputs: int, until: float = float("inf")) -> Tally:
        """Try inputs until there were so many, or until a time of ``time.monotonic``."""
        (self.folder / "corpus").mkdir(parents=True, exist_ok=True)
        tally = Tally.load(self.folder / "tally.json")
        while tally.inputs < inputs and time.monotonic() < until:
            begun, first = time.monotonic(), tally.inputs
            last = min(inputs, first + GENERATION)
            child = Child(partial(self._generation, first=first, last=last, until=until))
            for report in child.reports(2 * WALL * self.seconds + START):
                tally.inputs = report["number"] + 1
                tally.lines = max(tally.lines, report["lines"])
                tally.kinds.update(report["kinds"])
            outcome = child.end()
            if outcome is not None:
                tally.inputs += 1
                tally.kinds[outcome.kind] += 1
                self._keep_finding(outcome, self._current.read_bytes())
            tally.seconds += time.monotonic() - begun
            tally.save(self.folder / "tally.json")
        return tally

    @property
    def _current(self) -> Path:
        """The input that is being read, for whoever finds the child dead."""
        return self.folder / "current"

    def _generation(self, say: Say, first: int, last: int, until: float) -> None:
        """Try the inputs of these numbers; runs in a child."""
        root = self.folder / "root" / "root"
        shutil.rmtree(root.parent, ignore_errors=True)
        root.mkdir(parents=True)
        originals, reached = self.target.originals(root), Reached(self.package)
        say({"number": first - 1, "lines": 0, "kinds": []})
        seen: set[Step] = set()
        kept: list[bytes] = []
        with bounded_memory():
            for data in originals:
                self._attempt(root, data, reached)
                seen |= reached.steps
            for path in sorted((self.folder / "corpus").iterdir()):
                kept.append(path.read_bytes())
                self._attempt(root, kept[-1], reached)
                seen |= reached.steps
                say({"number": first - 1, "lines": 0, "kinds": []})
            for number in range(first, last):
                if time.monotonic() > until:
                    break
                rng = random.Random(f"{self.seed}/{self.name}/{number}")
                data = next_input(originals, kept, self.target.aware, rng)
                outcome = self._attempt(root, data, reached)
                new = not reached.steps <= seen
                seen |= reached.steps
                if outcome.wrong:
                    self._keep_finding(outcome, data)
                elif new and len(data) <= KEPT_BYTES:
                    kept.append(data)
                    (self.folder / "corpus" / f"{number:07}").write_bytes(data)
                if new or number == first:
                    lines = len({(file, line) for file, _, line in seen})
                say({"number": number, "lines": lines, "kinds": [outcome.kind]})

    def _attempt(self, root: Path, data: bytes, reached: Reached) -> Outcome:
        self._current.write_bytes(data)
        with reached:
            return attempt(self.target, root, data, self.seconds)

    def _keep_finding(self, outcome: Outcome, data: bytes) -> None:
        """Keep the smallest input of each bug."""
        folder = self.folder / "findings" / slug(outcome.kind)
        folder.mkdir(parents=True, exist_ok=True)
        known = folder / "input"
        if not known.exists() or len(data) < known.stat().st_size:
            known.write_bytes(data)
            why = f"{outcome.kind}\n{outcome.details}"
            (folder / "why.txt").write_text(why, "utf-8", "backslashreplace")


def slug(words: str) -> str:
    """Words as the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def isolated(target: Target, data: bytes, folder: Path, seconds: float = SECONDS) -> Outcome:
    """Read one input in a process of its own, which it may end."""

    def work(say: Say) -> None:
        root = folder / "root"
        shutil.rmtree(folder, ignore_errors=True)
        root.mkdir(parents=True)
        target.originals(root)
        with bounded_memory():
            say(asdict(attempt(target, root, data, seconds)))

    child = Child(work)
    outcomes = [Outcome(**report) for report in child.reports(2 * WALL * seconds)]
    return child.end() or outcomes[0]


def minimised(
    target: Target, data: bytes, kind: str, folder: Path, seconds: float = SECONDS, tries: int = 400
) -> bytes:
    """The shortest input that is found to do the same, by leaving out stretches of it."""
    size = len(data) // 2
    while size and tries:
        start = 0
        while start < len(data) and tries:
            tries -= 1
            shorter = data[:start] + data[start + size :]
            if isolated(target, shorter, folder, seconds).kind == kind:
                data = shorter
            else:
                start += size
        size = min(size // 2, len(data))
    return data
