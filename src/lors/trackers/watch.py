"""What the trackers of a run are told, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lors.evaluation.results import CHANCE, Row, chance_of
from lors.evaluation.statistic import LABELS
from lors.sets.distilled import DistilledSet
from lors.sets.pixels import as_pixels
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.setting.neighbours import nearest_captions
from lors.system import ranks
from lors.trackers import TRACKERS, Tracker
from lors.trackers.pictures import heat_map, side_by_side

__all__ = ["Watch", "watching"]

SHOWN = 16
"""How many pairs are shown; more would only be small."""


@contextmanager
def watching(setting: Setting, out: Path, iteration: int) -> Iterator[Watch]:
    """The trackers of a run, from here to the end of the block.

    Args:
        setting: of the run.
        out: its directory.
        iteration: how far it is.
    """
    with ExitStack() as stack:
        trackers = [
            stack.enter_context(TRACKERS[name](out, setting.config, iteration))
            for name in setting.config.trackers
            if ranks.rank() == 0
        ]
        yield Watch(setting, trackers)


class Watch:
    """Tells all trackers of a run the same. It only looks: a run without it has the same bits.

    Args:
        setting: of the run.
        trackers: those of the run; may be none.
    """

    def __init__(self, setting: Setting, trackers: Sequence[Tracker]) -> None:
        self._setting, self._trackers = setting, trackers

    def record(self, record: Mapping[str, Any], pairs: SyntheticPairs) -> None:
        """A record of ``metrics.jsonl``, and where recall was measured also pictures."""
        values = {name: float(value) for name, value in record.items() if name != "iteration"}
        for tracker in self._trackers:
            tracker.metrics(record["iteration"], values)
        if self._trackers and "recall" in record:
            self._pictures(record["iteration"], pairs)

    def end(self, made: DistilledSet, rows: Mapping[str, Row]) -> None:
        """The set as it is kept, and the table of results.

        Their step is that after the last iteration, so that a run that goes on replaces them.
        """
        if not self._trackers:
            return
        distils = self._setting.config.selection.kind is None
        step = 1 + (self._setting.config.distill.iterations if distils else 0)
        self._pictures(step, made.pairs)
        pairs, recalls = self._nearest(made.pairs), _recalls(rows)
        for tracker in self._trackers:
            tracker.table(step, "pairs", ("pair", "nearest caption", "cosine", "s_ii"), pairs)
            tracker.table(step, "results", ("set", "pairs", "storage", *LABELS), recalls)

    def _pictures(self, step: int, pairs: SyntheticPairs) -> None:
        pictures = {
            "similarity": heat_map(pairs.similarity.matrix().detach().float().cpu().numpy())
        }
        if self._setting.config.encoder.space == "pixels":
            model = self._setting.flat.model
            images = as_pixels(pairs.images[:SHOWN].detach(), model.mean, model.std)
            pictures["synthetic images"] = side_by_side(images)
        for tracker in self._trackers:
            for name, picture in pictures.items():
                tracker.picture(step, name, picture)

    def _nearest(self, pairs: SyntheticPairs) -> list[tuple[int, str, float, float]]:
        """Of each pair that is shown: the nearest real caption, how near it is, and s_ii."""
        found = nearest_captions(self._setting, pairs.texts[:SHOWN])
        captions = self._setting.pairs.splits["train"].captions
        s = pairs.similarity.diagonal().tolist()
        return [
            (pair, captions[nearest] if captions else f"text {nearest}", float(cosine), s[pair])
            for pair, (nearest, cosine) in enumerate(
                zip(found.index[:, 0], found.cosine[:, 0], strict=True)
            )
        ]


def _recalls(rows: Mapping[str, Row]) -> list[tuple[str | float, ...]]:
    recalls: list[tuple[str | float, ...]] = [
        (name, row.pairs, row.storage, *(s.mean for s in row.recall.by_label().values()))
        for name, row in rows.items()
    ]
    least = chance_of(rows)
    return recalls if least is None else [*recalls, (CHANCE, 0, 0, *least.by_label().values())]
