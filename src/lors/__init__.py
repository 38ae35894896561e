"""Image-text dataset distillation: a few synthetic pairs that train a CLIP-style model.

>>> import lors
>>> small = lors.distill(images, texts, pairs=9, progress=False, **quick)  # two arrays
>>> reached = lors.evaluate(small, test=(images, texts), progress=False)
>>> small.save("small.safetensors")
>>> lors.__version__.count(".")
2
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from lors.comparison.compare import Comparison, compare
    from lors.config import MatchingOptions, Method, load_config
    from lors.config.registering import loss, matcher, register
    from lors.data import Pairs
    from lors.encoders.own import Encoder
    from lors.encoders.own_by_name import image_trunk, network, text_trunk
    from lors.evaluation.evaluate import evaluate, evaluate_set
    from lors.evaluation.protocol import measure, train_on
    from lors.evaluation.recall import recall
    from lors.evaluation.results import Results, Row
    from lors.runs.distill import distill
    from lors.runs.opened import Run
    from lors.sets.distilled import DistilledSet
    from lors.sets.loading import ClipLoss
    from lors.sets.merging import merge
    from lors.sets.synthetic import SyntheticPairs
    from lors.setting import Setting
    from lors.share.importing import import_set
    from lors.share.importing_experts import import_experts
    from lors.share.judging import judge
    from lors.share.load import load
    from lors.share.published import export_published
    from lors.share.retriever import Retriever
    from lors.share.search import search
    from lors.show.report import write_report
    from lors.show.run import run
    from lors.system.errors import InputError, LorsError
    from lors.system.progress import Progress

__all__ = [
    "ClipLoss",
    "Comparison",
    "DistilledSet",
    "Encoder",
    "InputError",
    "LorsError",
    "MatchingOptions",
    "Method",
    "Pairs",
    "Progress",
    "Results",
    "Retriever",
    "Row",
    "Run",
    "Setting",
    "SyntheticPairs",
    "__version__",
    "compare",
    "distill",
    "evaluate",
    "evaluate_set",
    "export_published",
    "image_trunk",
    "import_experts",
    "import_set",
    "judge",
    "load",
    "load_config",
    "loss",
    "matcher",
    "measure",
    "merge",
    "network",
    "recall",
    "register",
    "run",
    "search",
    "text_trunk",
    "train_on",
    "write_report",
]

_HOMES = {
    "ClipLoss": "sets.loading",
    "Comparison": "comparison.compare",
    "DistilledSet": "sets.distilled",
    "Encoder": "encoders.own",
    "InputError": "system.errors",
    "LorsError": "system.errors",
    "MatchingOptions": "config",
    "Method": "config",
    "Pairs": "data",
    "Progress": "system.progress",
    "Results": "evaluation.results",
    "Retriever": "share.retriever",
    "Row": "evaluation.results",
    "Run": "runs.opened",
    "Setting": "setting",
    "SyntheticPairs": "sets.synthetic",
    "compare": "comparison.compare",
    "distill": "runs.distill",
    "evaluate": "evaluation.evaluate",
    "evaluate_set": "evaluation.evaluate",
    "export_published": "share.published",
    "image_trunk": "encoders.own_by_name",
    "import_experts": "share.importing_experts",
    "import_set": "share.importing",
    "judge": "share.judging",
    "load": "share.load",
    "load_config": "config",
    "loss": "config.registering",
    "matcher": "config.registering",
    "measure": "evaluation.protocol",
    "merge": "sets.merging",
    "network": "encoders.own_by_name",
    "recall": "evaluation.recall",
    "register": "config.registering",
    "run": "show.run",
    "search": "share.search",
    "text_trunk": "encoders.own_by_name",
    "train_on": "evaluation.protocol",
    "write_report": "show.report",
}
"""Where each public name lives; it is imported on first use, as torch and timm take seconds."""

# In a notebook, tqdm advises to install ipywidgets when timm imports it; our progress needs none.
warnings.filterwarnings("ignore", message="IProgress not found")

_ROOMS = ("losses", "similarity", "testing", "training")
"""Modules that are also reached as attributes."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"lors.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return import_module(f"lors.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("lors")
    raise AttributeError(f"module 'lors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
