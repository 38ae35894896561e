"""Image-text dataset distillation with low-rank similarity mining (LoRS)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lors.config import load_config
    from lors.distilled import DistilledSet
    from lors.evaluate import measure, train_on
    from lors.pipeline import evaluate_set, run
    from lors.report import write_report
    from lors.retrieval import recall
    from lors.retriever import Retriever
    from lors.workbench import Workbench

__all__ = [
    "DistilledSet",
    "Retriever",
    "Workbench",
    "evaluate_set",
    "load_config",
    "measure",
    "recall",
    "run",
    "train_on",
    "write_report",
]

_HOMES = {
    "DistilledSet": "distilled",
    "Retriever": "retriever",
    "Workbench": "workbench",
    "evaluate_set": "pipeline",
    "load_config": "config",
    "measure": "evaluate",
    "recall": "retrieval",
    "run": "pipeline",
    "train_on": "evaluate",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    """Import on first use: torch and timm take seconds, and ``lors --help`` needs neither."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lors' has no attribute {name!r}")
    return getattr(import_module(f"lors.{_HOMES[name]}"), name)
