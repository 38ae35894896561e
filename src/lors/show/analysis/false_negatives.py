"""Does similarity mining find pairs that only seem not to belong together?

The paper's toy experiment (section 3.3, False negative mining): N/2 real pairs and their replicas
are N synthetic pairs, so that image i also fits text i + 1. S starts at the identity, which calls
these false negatives; after distillation their similarity should exceed that of true negatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from lors.config import Config, load_config
from lors.runs.opened import Run
from lors.runs.pipeline import run
from lors.show.analysis.rows import Row
from lors.system.errors import InputError
from lors.system.progress import Progress

__all__ = ["auc", "find_false_negatives", "groups", "replicas", "summary", "toy", "values"]

SETTINGS = (
    "distill.budget=100",
    "distill.init=replicas",
    "similarity.kind=full",
    "matching.batch_size=100",
    "matching.steps=1",
    "distill.iterations=400",
    "distill.evaluate_every=0",  # the set after the last iteration, not the best on val
    "evaluate.seeds=1",
)
"""What makes a configuration the toy experiment.

100 pairs and a full matrix as in the paper. One inner step on the whole set, because replicas that
are always in one batch have equal gradients and stay replicas: in small batches they drift apart,
until they are as different as any two pairs and no false negatives any more. More steps tell the
groups apart less well, and more iterations better (measured in docs/results/analyses.md).
"""


def toy(source: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """A configuration turned into the toy experiment; overrides have the last word."""
    config = load_config(source, [*SETTINGS, *overrides])
    if config.similarity.kind not in ("full", "lowrank"):
        raise InputError(
            f"a similarity of kind {config.similarity.kind!r} learns nothing off the diagonal: "
            "set similarity.kind=full or similarity.kind=lowrank"
        )
    return config


def find_false_negatives(
    config: Config, out: Path, seeds: Iterable[int], progress: Progress | None = None
) -> list[Row]:
    """Run the toy experiment once per seed; every run is kept in a folder below ``out``.

    Args:
        config: see ``toy``.
        out: the folder; what is finished there is not repeated.
        seeds: each draws other pairs.
        progress: reports long-running work.

    Returns:
        One row per seed: AUC, and the mean similarity of each group.
    """
    rows = []
    for seed in seeds:
        folder = out / f"seed-{seed}"
        run(config.model_copy(update={"seed": seed}), folder, progress, references=False)
        found = values(Run(folder))
        means = {name: float(group.mean()) for name, group in found.items()}
        rows.append({"seed": seed, "auc": auc(found), **means})
    return rows


def summary(rows: Sequence[Row]) -> Row:
    """The mean over seeds of what they found."""
    columns = [name for name in rows[0] if name != "seed"]
    return {"seed": "mean", **{c: float(np.mean([row[c] for row in rows])) for c in columns}}


def values(opened: Run) -> dict[str, np.ndarray]:
    """The learned similarities of a finished toy experiment, by group.

    Raises:
        InputError: the run did not start from replicas.
    """
    if opened.config.distill.init != "replicas":
        raise InputError(
            "this run has no planted false negatives: make one with 'lors analyze false-negatives'"
        )
    return groups(opened.distilled.pairs.similarity.matrix().float().cpu().numpy())


def replicas(count: int) -> np.ndarray:
    """Where S has planted false negatives: pairs 2k and 2k + 1 are replicas. Shape: (N, N), bool

    >>> replicas(3).astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """
    index = np.arange(count)
    return (index ^ 1)[:, None] == index


def groups(similarity: np.ndarray) -> dict[str, np.ndarray]:
    """The values of S that are true positives, planted false negatives and true negatives.

    Args:
        similarity: S of N pairs that are replicas two by two. Shape: (N, N)
    """
    diagonal, planted = np.eye(len(similarity), dtype=bool), replicas(len(similarity))
    return {
        "true positives": similarity[diagonal],
        "false negatives": similarity[planted],
        "true negatives": similarity[~(diagonal | planted)],
    }


def auc(found: Mapping[str, np.ndarray]) -> float:
    """How often a false negative has more similarity than a true negative: 0.5 is chance.

    Raises:
        InputError: a group is empty.
    """
    false, true = found["false negatives"], found["true negatives"]
    if not len(false) or not len(true):
        raise InputError("replicas and others need at least 3 pairs: raise distill.budget")
    labels = np.repeat([1, 0], [len(false), len(true)])
    return float(roc_auc_score(labels, np.concatenate([false, true])))
