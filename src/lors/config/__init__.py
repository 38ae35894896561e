"""Typed configuration: one YAML file, or the name of a preset, plus ``key=value`` overrides.

A file may start from another with ``base: NAME`` and say only what differs.
"""

from lors.config.config import Config
from lors.config.reading import difference, load_config, presets
from lors.config.sections import (
    DataConfig,
    DistillConfig,
    EncoderConfig,
    EvaluateConfig,
    Expected,
    ExpertsConfig,
    MatchingConfig,
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
    "MatchingConfig",
    "SelectionConfig",
    "SimilarityConfig",
    "SplitName",
    "difference",
    "load_config",
    "presets",
]
