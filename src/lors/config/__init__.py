"""Typed configuration: one YAML file, or the name of a preset, plus ``key=value`` overrides.

A file may start from another with ``base: NAME`` and say only what differs.
"""

from lors.config.catalogue import presets
from lors.config.config import Config, Expected
from lors.config.matching import MatchingOptions
from lors.config.methods import Method, find_method, methods
from lors.config.outer_loop import DistillConfig
from lors.config.protocol import EvaluateConfig
from lors.config.reading import difference, load_config
from lors.config.sections import (
    DataConfig,
    EncoderConfig,
    ExpertsConfig,
    SelectionConfig,
    SimilarityConfig,
    SplitName,
)

__all__ = [
    "Config",
    "DataConfig",
    "DistillConfig",
    "EncoderConfig",
    "EvaluateConfig",
    "Expected",
    "ExpertsConfig",
    "MatchingOptions",
    "Method",
    "SelectionConfig",
    "SimilarityConfig",
    "SplitName",
    "difference",
    "find_method",
    "load_config",
    "methods",
    "presets",
]
