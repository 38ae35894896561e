"""What settings can name, and where each thing is: one line for each file that holds one."""

from __future__ import annotations

from typing import Any

from lors.system.errors import InputError, suggestion
from lors.system.registry import FROM_PLUGIN, Registry

__all__ = [
    "HEADS",
    "LOSSES",
    "MATCHERS",
    "PLAIN_LOSSES",
    "PUBLISHED",
    "SELECTIONS",
    "SIMILARITIES",
    "SOURCES",
    "STARTS",
    "TEXT_ALIASES",
    "TEXT_TRUNKS",
    "TRACKERS",
    "check_text_trunk",
    "names_a_model",
]


def _plugins() -> None:
    """Import what may register more, the first time that a name is asked for."""
    from lors.config.plugins import load_plugins  # which needs what is below

    load_plugins()


SOURCES: Registry[Any] = Registry(
    "data source",
    {
        "scenes": "lors.data.scenes:SOURCE",
        "karpathy": "lors.data.karpathy:SOURCE",
        "table": "lors.data.table:SOURCE",
        "flickr30k": "lors.data.known:FLICKR30K_SOURCE",
        "coco": "lors.data.known:COCO_SOURCE",
        "huggingface": "lors.data.huggingface:SOURCE",
        "webdataset": "lors.data.webdataset:SOURCE",
        "embeddings": "lors.data.embeddings:SOURCE",
        "arrays": "lors.data.in_memory:ARRAYS",
        "objects": "lors.data.in_memory:OBJECTS",
    },
    _plugins,
    maker="lors.data.source:Source",
)
HEADS: Registry[Any] = Registry(
    "head",
    {
        "none": "lors.encoders.heads:no_head",
        "linear": "torch.nn:Linear",
        "mlp": "lors.encoders.heads:MlpHead",
        "mlp-published": "lors.encoders.heads:PublishedHead",
    },
    _plugins,
)
TEXT_TRUNKS: Registry[Any] = Registry(
    "text trunk",
    {
        "lsa": "lors.encoders.lsa:Lsa",
        "transformers": "lors.encoders.transformers_text:TransformersText",
        "open_clip": "lors.encoders.open_clip_text:OpenClipText",
        "own": "lors.encoders.own_text:OwnText",
        "given": "lors.encoders.given_text:GivenText",
    },
    _plugins,
)
TEXT_ALIASES = {
    "bert": "transformers:bert-base-uncased",
    "distilbert": "transformers:distilbert-base-uncased",
    "clip": "transformers:openai/clip-vit-base-patch32",
}
"""The paper's names of text trunks."""

PUBLISHED = "-published"
"""The end of the names of what is computed as in the published LoRS code."""

LOSSES: Registry[Any] = Registry(
    "loss",
    {
        f"{name}{reading}": f"lors.losses:{name}{reading}".replace("-", "_")
        for reading in ("", PUBLISHED)
        for name in ("nce", "ence", "bce", "wbce")
    },
    _plugins,
)
PLAIN_LOSSES = ("nce", "nce-published")
"""Those that know no similarity but the identity."""

SIMILARITIES: Registry[Any] = Registry(
    "similarity",
    {
        "identity": "lors.similarity:Identity",
        "diagonal": "lors.similarity:Diagonal",
        "lowrank": "lors.similarity:LowRank",
        "full": "lors.similarity:Full",
        "fixed": "lors.similarity:Fixed",
        "lowrank-parts": "lors.sets.parts:LowRankParts",
    },
    _plugins,
)
SELECTIONS: Registry[Any] = Registry(
    "selection",
    {
        "random": "lors.selection.random:at_random",
        "herding": "lors.selection.herding:by_herding",
        "k-center": "lors.selection.k_center:by_k_center",
        "forgetting": "lors.selection.forgetting:by_forgetting",
        "clip-score": "lors.selection.score:by_score",
        "facility-location": "lors.selection.facility_location:by_facility_location",
        "graph-cut": "lors.selection.graph_cut:by_graph_cut",
        "deduplication": "lors.selection.deduplication:by_deduplication",
        "medoids": "lors.selection.k_means:by_medoids",
    },
    _plugins,
)
STARTS: Registry[Any] = Registry(
    "start",
    {
        "real": "lors.starts.real:real",
        "replicas": "lors.starts.real:replicas",
        "noise": "lors.starts.real:noise",
        "k-means": "lors.starts.k_means:nearest_to_centroids",
        "centroids": "lors.starts.k_means:centroids",
        "cross-covariance": "lors.starts.cross_covariance:cross_covariance",
        "canonical": "lors.starts.canonical:canonical",
        "fitted": "lors.starts.fitted:fitted",
        "prototypes": "lors.starts.prototypes:prototypes",
    },
    _plugins,
)
MATCHERS: Registry[Any] = Registry(
    "matcher",
    {
        "trajectory": "lors.matching.trajectory:TrajectoryMatcher",
        "gradient": "lors.matching.gradient:GradientMatcher",
        "distribution": "lors.matching.distribution:DistributionMatcher",
        "covariance": "lors.matching.covariance:CovarianceMatcher",
        "joint-distribution": "lors.matching.joint_distribution:JointDistributionMatcher",
        "analytic": "lors.matching.analytic:AnalyticMatcher",
        "relation": "lors.matching.relation:RelationMatcher",
        "hindsight": "lors.matching.hindsight:HindsightMatcher",
    },
    _plugins,
)
TRACKERS: Registry[Any] = Registry(
    "tracker",
    {
        "tensorboard": "lors.trackers.tensorboard:TensorBoard",
        "wandb": "lors.trackers.wandb:WeightsAndBiases",
    },
    _plugins,
)


def check_text_trunk(text: str) -> str:
    """``KIND`` or ``KIND:NAME``, if there is such a kind of text trunk.

    Raises:
        InputError: there is none; the message has the nearest name.
    """
    kind = TEXT_ALIASES.get(text, text).partition(":")[0]
    if kind not in TEXT_TRUNKS:
        known = [*TEXT_TRUNKS, *TEXT_ALIASES]
        raise InputError(f"unknown text trunk {text!r}{suggestion(kind, known)}{FROM_PLUGIN}")
    return text


def names_a_model(text: str) -> bool:
    """Whether a text trunk is read from somewhere, rather than made from the data."""
    return ":" in text or text in TEXT_ALIASES
