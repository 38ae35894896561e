"""Sets that other projects publish, read into ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lors.config import Config, SimilarityConfig, load_config
from lors.config.types import LARGE
from lors.data.captioned import captioned_images
from lors.data.captions import worded
from lors.data.decoded import cached_images
from lors.encoders import EncodedSplit, TextTrunk, build_text_trunk
from lors.encoders.features import of_pixels
from lors.encoders.image import (
    CLIP_PIXELS,
    frozen_trunk,
    image_trunk,
    normalisation,
    trunk_key,
)
from lors.encoders.text import text_trunk_class, training_text
from lors.evaluation.tuning import tune, with_rates
from lors.files.published import read_published_set
from lors.sets.checks import check_sizes
from lors.sets.distilled import DistilledSet
from lors.sets.published import published_loss, unpublished
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, resolve, setting_of
from lors.system.errors import InputError, printable
from lors.system.progress import Progress, Silent

__all__ = ["Changes", "import_set", "inputs_of", "is_foreign"]

Changes = Sequence[str] | Mapping[str, Any]


def is_foreign(path: Path) -> bool:
    """Whether a path looks like a set of another project: a pickled file, or a folder of images."""
    if path.is_dir():
        return not any((path / name).exists() for name in ("distilled.safetensors", "config.yaml"))
    return path.suffix in (".pt", ".pth")


def import_set(
    source: str | Path | Sequence[str | Path],
    like: str | Path | Mapping[str, Any],
    overrides: Changes = (),
    *,
    alpha: float | None = None,
    rate: float | None = None,
    progress: Progress | None = None,
) -> DistilledSet:
    """A set of another project: of LoRS, RepBlend or PTM-ST, or a folder of captioned images.

    A file of theirs is a pickle. It is opened here and nowhere else in lors: its content is checked
    first, and nothing but tensors is made of it; no code in it runs. What it does not say comes
    from the configuration: data, encoders, loss and protocol. Its networks do not standardise
    embeddings, and normalise pixels by CLIP's mean and deviation, unless ``overrides`` name another
    ``encoder.normalisation``; the loss is the published code's.

    >>> import lors
    >>> numbers = {"image": torch.rand(6, 3, 16, 16), "text": torch.rand(6, 16),
    ...     "similarity_params": [torch.eye(6)], "similarity_mat": torch.eye(6),
    ...     "syn_lr_img": torch.tensor(0.1), "syn_lr_txt": torch.tensor(0.1)}
    >>> torch.save(numbers, "distilled_3000.pt")
    >>> found = lors.import_set("distilled_3000.pt", like="tiny")
    >>> len(found), found.imported, found.config.loss
    (6, 'distilled_3000.pt', 'wbce-published')

    Args:
        source: a ``.pt`` file; the files of its subsets, which PTM-ST writes, in their order; or a
            folder of images with captions.
        like: a preset, a YAML file or settings that the set was made with.
        overrides: changes to it, as ``"section.key=value"`` or by dotted name.
        alpha: α of S = diag(ω) + (α/r) L Rᵀ, where it cannot be found in the file.
        rate: for a folder, the learning rate; default: tuned on the validation split, with the
            loss.
        progress: reports long-running work.

    Raises:
        InputError: it is no such set, it does not fit the configuration, or α is not known.
    """
    paths = [Path(source)] if isinstance(source, (str, Path)) else [Path(each) for each in source]
    progress = progress or Silent()
    if not paths:
        raise InputError("give a set to import")
    for name, value in (("α", alpha), ("rate", rate)):
        if value is not None and not 0 < value <= LARGE:
            raise InputError(f"{name} must be above 0 and not huge, not {value:g}")
    if len(paths) == 1 and paths[0].is_dir():
        return _folder_set(paths[0], like, overrides, rate, progress)
    if rate is not None:
        raise InputError("the file has learning rates of its own: --rate is for folders of images")
    return _published_set(paths, like, overrides, alpha, progress)


def _published_set(
    paths: Sequence[Path],
    like: str | Path | Mapping[str, Any],
    overrides: Changes,
    alpha: float | None,
    progress: Progress,
) -> DistilledSet:
    load_config(like, overrides)  # a mistake in it shows before files are read
    files = [read_published_set(path) for path in paths]
    if any(not torch.equal(each.rates, files[-1].rates) for each in files):
        progress.say(f"The learning rates of the subsets differ: those of {paths[-1].name} count.")
    try:
        pairs, similarity = unpublished(files, alpha)
    except InputError as error:
        raise InputError(f"cannot import {str(paths[0])!r}: {error}") from None
    config = _like(like, overrides, similarity, pairs)
    encoder = config.encoder
    if encoder.space == "features" or encoder.scope == "all":
        raise InputError(
            "a published set holds pixels and embeddings of captions: choose a configuration in "
            "space pixels and scope image or heads"
        )
    if pairs.images.min() >= 0:
        progress.say(
            "No number of its images is below 0, so they may not have been normalised: they go "
            "into the trunk as they are, and recalls mean little if the set was made otherwise."
        )
    name = paths[0].name if len(paths) == 1 else f"{paths[0].name} … {paths[-1].name}"
    mean, std = _normalised_by(config)
    made = DistilledSet(
        pairs,
        config,
        _text_trunk(config, progress),
        mean,
        std,
        trunk_key(*encoder.trunk(), encoder.trains_from),
        imported=printable(name),
    )
    try:
        check_sizes(made)
    except ValueError as error:
        raise InputError(f"{str(paths[0])!r} does not fit the configuration: {error}") from None
    return made


def _like(
    like: str | Path | Mapping[str, Any],
    overrides: Changes,
    similarity: SimilarityConfig,
    pairs: SyntheticPairs,
) -> Config:
    """The configuration that a published set is one of."""
    config = load_config(like, overrides)
    found = {
        "loss": published_loss(config.loss, similarity.kind),
        "similarity": similarity.model_dump(mode="json"),
        **inputs_of(config, overrides),
        "encoder.image_size": pairs.images.shape[-1],
        "distill.budget": math.ceil(pairs.storage()),
        "selection.kind": None,
        "trackers": [],
    }
    return resolve(load_config(config.model_dump(mode="json"), found))


def inputs_of(config: Config, overrides: Changes) -> dict[str, Any]:
    """How networks take images and embeddings: as in the published codes, unless the user says.

    Raises:
        InputError: embeddings should be standardised, which theirs never are.
    """
    said = {each.partition("=")[0].strip() for each in overrides}
    if "encoder.standardise" in said and config.encoder.standardise:
        raise InputError(
            "published sets and experts are of embeddings as they are: leave out "
            "encoder.standardise=true"
        )
    normalised = config.encoder.normalisation if "encoder.normalisation" in said else "clip"
    return {"encoder.standardise": False, "encoder.normalisation": normalised}


def _normalised_by(config: Config) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and deviation of pixels that a set's images are normalised by."""
    encoder = config.encoder
    if encoder.normalisation == "clip":
        return CLIP_PIXELS["mean"], CLIP_PIXELS["std"]
    return normalisation(image_trunk(*encoder.trunk()))


def _text_trunk(config: Config, progress: Progress) -> TextTrunk:
    """The text trunk alone, unless it is fitted on the captions of the data."""
    if text_trunk_class(config.encoder.text)[0].fitted:
        return setting_of(config, progress).text_trunk
    return build_text_trunk(config.encoder, [])


def _folder_set(
    folder: Path,
    like: str | Path | Mapping[str, Any],
    overrides: Changes,
    rate: float | None,
    progress: Progress,
) -> DistilledSet:
    """Captioned images as plain pairs, whose loss and rate are tuned on the validation split."""
    given = load_config(like, overrides)
    items = captioned_images(folder, progress)
    if len(items) < 2:
        raise InputError(f"{str(folder)!r} holds {len(items)} captioned image: give two or more")
    several = sum(len(item.captions) > 1 for item in items)
    if several:
        progress.say(f"{several} of the images have several captions: the first of each counts.")
    identity = SimilarityConfig(kind="identity").model_dump(mode="json")
    changes = {"distill.budget": len(items), "similarity": identity, "selection.kind": None}
    setting = setting_of(load_config(given.model_dump(mode="json"), changes), progress)
    if setting.given:
        raise InputError("images are compared with images: choose a configuration of images")
    captions = [item.captions[0] for item in items]
    pixels = cached_images(items, setting.config.encoder.size(), progress)
    pairs = SyntheticPairs(*_tensors(setting, pixels, captions)).to(setting.device, setting.dtype)
    loss = setting.config.loss
    if rate is None:
        best = tune(setting, pairs)
        loss, rates = best.loss, best.rates
    else:
        rates = (rate, rate)
    made = setting.distilled(
        with_rates(pairs, rates), loss, SimilarityConfig(kind="identity"), captions
    )
    return replace(made.to("cpu"), imported=printable(folder.resolve().name))


def _tensors(setting: Setting, pixels: np.ndarray, captions: list[str]) -> tuple[Tensor, Tensor]:
    """Images and captions as synthetic pairs are."""
    encoder, model = setting.config.encoder, setting.flat.model
    training = training_text(setting.text_trunk, encoder.scope)
    captions = list(worded(captions, setting.config.data))
    if training is not None:
        words = training.tokens(captions, encoder.text_length)
    else:
        words = setting.text_trunk.embed(captions, setting.progress)
    seen = pixels
    if encoder.space == "features":
        seen = of_pixels(frozen_trunk(encoder, setting.device))(torch.from_numpy(pixels)).numpy()
    every = np.arange(len(pixels))
    split = EncodedSplit(seen, words, every)
    texts = split.captions(every, model)
    if not texts.is_floating_point():
        texts = model.text[0].embed_tokens(texts)  # type: ignore[index]
    return split.normalised(every, model), texts
