"""Membership attacks: can one tell which real pairs a set, or a model, was made from?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from lors.encoders import DualEncoder, EncodedSplit
from lors.setting import Setting
from lors.setting.neighbours import nearest

__all__ = ["FALSE_POSITIVES", "Attack", "attack_on_model", "attack_on_set", "attacked"]

FALSE_POSITIVES = 0.01
"""The share of non-members that an attack may take for members, where its hits are counted."""

CHUNK = 512


@dataclass(frozen=True)
class Attack:
    """How well an attack tells members from non-members.

    Args:
        name: what it looks at.
        auc: how often a member has the higher score: 0.5 is guessing.
        hits: the share of members that are found where one in a hundred non-members is taken for
            one: 0.01 is guessing.
    """

    name: str
    auc: float
    hits: float


def attacked(name: str, members: np.ndarray, others: np.ndarray) -> Attack:
    """An attack by its scores, which are higher for what looks like a member.

    A non-member that scores as much as a member counts against the attack.

    >>> found = attacked("by name", np.array([3.0, 2.0, 0.0]), np.array([1.0, -1.0]))
    >>> round(found.auc, 2), round(found.hits, 2)
    (0.83, 0.67)

    Args:
        name: what it looks at.
        members: scores of pairs that were used. Shape: (m,)
        others: scores of pairs that were not. Shape: (n,)
    """
    labels = np.repeat([1, 0], [len(members), len(others)])
    auc = float(roc_auc_score(labels, np.concatenate([members, others])))
    allowed = int(FALSE_POSITIVES * len(others))  # so many may score higher than the threshold
    threshold = np.sort(others)[::-1][allowed]
    return Attack(name, auc, float((members > threshold).mean()))


def attack_on_set(setting: Setting, images: Tensor, texts: Tensor) -> list[Attack]:
    """By distance: a real image, or caption, that lies near a synthetic one was used.

    Members are the training split, non-members the splits val and test. Frozen trunks compare
    features, other networks pixels; captions are compared as embeddings. The last attack adds the
    cosine of an image and that of the nearest of its captions.

    Args:
        setting: the real pairs, standardised as the set is.
        images: of the set. Shape: (N, …)
        texts: of the set. Shape: (N, …)
    """
    model = setting.flat.model
    with torch.no_grad():
        anchors = model.freeze(images.detach().to(setting.device, setting.dtype)).flatten(1)
        words = texts.detach().to(setting.device, setting.dtype).flatten(1)
        near = {
            name: (_nearest(_images(split, model), anchors), _nearest(_texts(split, model), words))
            for name, split in setting.real.items()
        }
    own = near["train"]
    others = [np.concatenate([near[name][side] for name in ("val", "test")]) for side in (0, 1)]
    pairs = {name: _of_pairs(setting.real[name], *found) for name, found in near.items()}
    both = np.concatenate([pairs["val"], pairs["test"]])
    return [
        attacked("nearest image of the set", own[0], others[0]),
        attacked("nearest text of the set", own[1], others[1]),
        attacked("nearest image and text", pairs["train"], both),
    ]


def attack_on_model(setting: Setting, model: DualEncoder, name: str) -> Attack:
    """By loss: pairs that a model retrieves surely were trained on.

    As many members as there are non-members are drawn, and each is told from all others by image
    and by caption: the score is minus its InfoNCE among them.

    Args:
        setting: the real pairs.
        model: trained on them, or on what was made of them.
        name: of the attack.
    """
    rng = np.random.default_rng(setting.config.seed)
    others = [setting.real[part] for part in ("val", "test")]
    count = sum(map(len, others))
    drawn = rng.choice(len(setting.real["train"]), min(count, len(setting.real["train"])), False)
    parts = [(setting.real["train"], drawn), *((each, np.arange(len(each))) for each in others)]
    embedded = [_embedded(model, split, index) for split, index in parts]
    u, v = (torch.cat(side) for side in zip(*embedded, strict=True))
    with torch.no_grad():
        logits = u @ v.T / model.temperature
        scores = logits.log_softmax(0).diagonal() + logits.log_softmax(1).diagonal()
    values = scores.double().cpu().numpy()
    return attacked(name, values[: len(drawn)], values[len(drawn) :])


@torch.no_grad()
def _embedded(model: DualEncoder, split: EncodedSplit, index: np.ndarray) -> tuple[Tensor, Tensor]:
    """Images and their first captions in the joint space."""
    first = np.searchsorted(split.owner, index)
    chunks = [slice(i, i + CHUNK) for i in range(0, len(index), CHUNK)]
    images = [model.embed_images(split.inputs(index[c], model)) for c in chunks]
    texts = [model.embed_texts(split.captions(first[c], model)) for c in chunks]
    return torch.cat(images), torch.cat(texts)


def _images(split: EncodedSplit, model: DualEncoder) -> Iterator[Tensor]:
    for start in range(0, len(split), CHUNK):
        index = np.arange(start, min(start + CHUNK, len(split)))
        yield split.inputs(index, model).flatten(1)


def _texts(split: EncodedSplit, model: DualEncoder) -> Iterator[Tensor]:
    for start in range(0, len(split.texts), CHUNK):
        index = np.arange(start, min(start + CHUNK, len(split.texts)))
        captions = split.captions(index, model)
        if not captions.is_floating_point():
            captions = model.text[0].embed_tokens(captions)  # type: ignore[index]
        yield captions.flatten(1)


def _nearest(queries: Iterator[Tensor], anchors: Tensor) -> np.ndarray:
    """The cosine of each real thing with the nearest synthetic one. Shape: (M,)"""
    return np.concatenate([nearest(each, [anchors], 1).cosine[:, 0] for each in queries])


def _of_pairs(split: EncodedSplit, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """The cosine of each image and that of the nearest of its captions, together. Shape: (M,)"""
    first = np.flatnonzero(np.diff(split.owner, prepend=-1))
    return images + np.maximum.reduceat(texts, first)
