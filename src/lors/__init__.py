"""Image-text dataset distillation with low-rank similarity mining (LoRS)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lors.config import load_config
    from lors.data import Pairs
    from lors.evaluation.evaluate import evaluate_set
    from lors.evaluation.protocol import measure, train_on
    from lors.evaluation.recall import recall
    from lors.evaluation.results import Results, Row
    from lors.runs.pipeline import run
    from lors.sets.distilled import DistilledSet
    from lors.setting import Setting
    from lors.share.retriever import Retriever
    from lors.show.report import write_report

__all__ = [
    "DistilledSet",
    "Pairs",
    "Results",
    "Retriever",
    "Row",
    "Setting",
    "evaluate_set",
    "load_config",
    "measure",
    "recall",
    "run",
    "train_on",
    "write_report",
]

_HOMES = {
    "DistilledSet": "sets.distilled",
    "Pairs": "data",
    "Results": "evaluation.results",
    "Retriever": "share.retriever",
    "Row": "evaluation.results",
    "Setting": "setting",
    "evaluate_set": "evaluation.evaluate",
    "load_config": "config",
    "measure": "evaluation.protocol",
    "recall": "evaluation.recall",
    "run": "runs.pipeline",
    "train_on": "evaluation.protocol",
    "write_report": "show.report",
}


def __getattr__(name: str) -> Any:
    """Import on first use: torch and timm take seconds, and ``lors --help`` needs neither."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lors' has no attribute {name!r}")
    return getattr(import_module(f"lors.{_HOMES[name]}"), name)
