"""The experts of a setting: kept in a folder, and trained where they are missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from lors.encoders.own import own_digests
from lors.experts.missing import train_missing
from lors.experts.store import TrajectoryStore
from lors.experts.train import Snapshot, train_expert
from lors.files.artifacts import home
from lors.files.cache import cache_errors
from lors.setting import Setting
from lors.setting.memory import explaining_memory
from lors.setting.threads import threads_of

__all__ = ["expert_origin", "experts_of", "store_of"]


def store_of(setting: Setting) -> TrajectoryStore:
    """Where the experts of a setting are kept, whether they are there or not."""
    config, origin = setting.config, expert_origin(setting)
    digest = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:16]
    folder = config.experts.folder or home() / "experts" / digest
    return TrajectoryStore(
        folder, origin, config.expert_snapshots() if config.experts.compact else None
    )


def experts_of(setting: Setting) -> TrajectoryStore:
    """The experts of a setting, after training those that are missing."""
    config, store = setting.config, store_of(setting)
    memory = explaining_memory(config, setting.device, "experts")
    with cache_errors(store.folder), threads_of(setting), memory:
        train_missing(
            store,
            config.experts.count,
            config.experts.epochs,
            partial(_snapshots, setting),
            setting.progress,
            together=setting.data_parallel,
        )
    store.tidy()
    return store


def expert_origin(setting: Setting) -> dict[str, Any]:
    """What experts depend on: another value of any of these gives other experts."""
    config = setting.config
    paths = {"space", "image_weights", "text", "network", "normalisation", "image_outputs"}
    paths.add("trains_from")
    encoder = config.encoder.model_dump(mode="json", exclude=paths) | own_digests(config.encoder)
    encoder["image_trunk"] = setting.image_trunk  # says what it takes and gives, and what trains
    experts = config.experts.model_dump(
        mode="json", exclude={"count", "folder", "compact"}, exclude_none=True
    )
    # What experts were once never asked: without it, those of earlier versions are still found.
    added = {"loss": "nce", "drop_last": False, "schedule": "constant", "autocast": False}
    experts = {name: value for name, value in experts.items() if value != added.get(name)}
    cleaned = {"clean_captions": True} if config.data.clean_captions else {}
    if config.experts.compact:
        experts["epochs_kept"] = config.expert_snapshots()
    return {
        "data": {
            "fingerprint": setting.pairs.fingerprint,
            "augment": config.data.augment,
            "captions": config.data.captions,
            **cleaned,
        },
        "encoder": {**encoder, "text_trunk": setting.text_trunk.fingerprint},
        "experts": experts,
        "dtype": config.dtype,
        "parameters": sum(setting.flat.sides),
    }


def _snapshots(setting: Setting, expert: int, begun: Sequence[Snapshot]) -> Iterator[Snapshot]:
    config = setting.config
    model = setting.model(config.experts.seed, "expert", expert)
    model.divided = setting.data_parallel
    real = setting.real["train"]
    return train_expert(model, real, config.experts, config.data, expert, begun)
