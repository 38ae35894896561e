"""The notebook door: a set from whatever a caller has, in one call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lors.config import Config, find_method, load_config
from lors.config.keywords import by_dotted_name
from lors.config.methods import Method
from lors.data import Pairs
from lors.data.anything import as_pairs
from lors.encoders.own import Encoder, own_network
from lors.files.artifacts import home
from lors.losses import Loss, named_loss
from lors.runs.folders import CALLS, SET
from lors.runs.pipeline import run
from lors.sets.distilled import DistilledSet
from lors.system.errors import InputError
from lors.system.progress import Progress
from lors.system.showing import showing_progress

if TYPE_CHECKING:
    from torch import nn

__all__ = ["call_folder", "configured", "distill", "skips_bad", "whole_number"]

Network = Callable[[], "tuple[nn.Module, nn.Module]"]

PRESETS = {
    "features": "features",
    "heads": "photos",
    "image": "photos-image",
    "all": "photos-image",
}
"""Where hyper-parameters come from: by what embeddings are, or by what trains."""


def distill(
    data: Any,
    texts: Any = None,
    *,
    pairs: int = 100,
    method: str | Method | None = None,
    encoder: Encoder | None = None,
    model: Network | None = None,
    loss: str | Loss | None = None,
    owner: Any = None,
    captions: Sequence[str] = (),
    val: Any = None,
    test: Any = None,
    out: str | Path | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> DistilledSet:
    """Turn many image-text pairs into a few that train a model as well, or nearly.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(200, 4))
    >>> images, texts = (shared @ rng.normal(size=(4, d)) for d in (12, 10))
    >>> small = distill(images, texts, pairs=10, iterations=2, rank=2, progress=False,
    ...                 experts={"count": 1, "epochs": 2}, evaluate={"epochs": 2})
    >>> small.texts.shape, small.storage() <= 10
    (torch.Size([8, 10]), True)

    Args:
        data: image embeddings, with ``texts``; a ``Pairs``; a folder of photos with a table; a list
            of images, with a list of captions as ``texts``; a Hugging Face dataset; or a PyTorch
            dataset of (image, caption).
        texts: text embeddings, or captions. Shape: (M, d), (M, captions, d) or (C, d)
        pairs: the budget, in plain pairs; what a learned similarity takes is paid from it.
        method: a name that ``lors compare --methods list`` shows, or a ``Method``; default:
            ``hindsight``, or ``lors`` where a trunk trains along.
        encoder: image and text encoder, by name or as modules of your own.
        model: makes a new (image module, text module) of your own at each call, in the place of
            heads.
        loss: a name, or a function of logits and similarity; default: the method's.
        owner: of flat text embeddings (C, d), the image of each.
        captions: the words of text embeddings, if they are to be shown.
        val: a validation split; default: held out from the data.
        test: a test split; default: held out from the data.
        out: a run directory, if the run should be kept and continued when interrupted; without it,
            nothing is written outside the cache.
        progress: True, False, or an object that reports long-running work; default: shown where a
            person looks.
        options: any setting: ``iterations=50``, ``seed=1``, ``evaluate={"epochs": 20}``; see
            ``lors settings``.

    Returns:
        The set. ``lors.evaluate`` says what it is worth.

    Raises:
        InputError: bad input, in one sentence, before any work starts.
    """
    with showing_progress(progress) as shown, call_folder(out) as folder:
        real = as_pairs(
            data,
            texts,
            owner=owner,
            captions=captions,
            val=val,
            test=test,
            progress=shown,
            skip_bad=skips_bad(options),
        )
        config = configured(
            real,
            pairs=pairs,
            method=method,
            encoder=encoder,
            model=model,
            loss=loss,
            options=options,
        )
        run(config, folder, shown, references=False, pairs=real, evaluate=False)
        return DistilledSet.load(folder / SET)


def configured(
    real: Pairs,
    *,
    pairs: int = 100,
    method: str | Method | None = None,
    encoder: Encoder | None = None,
    model: Network | None = None,
    loss: str | Loss | None = None,
    options: dict[str, Any] | None = None,
) -> Config:
    """The configuration of a call; see ``distill``."""
    pairs = whole_number(pairs, "pairs is how many pairs the set may hold")
    if encoder is not None and not isinstance(encoder, Encoder):
        raise InputError(
            f"encoder is a {type(encoder).__name__}: give lors.Encoder(image=…, text=…, scope=…)"
        )
    options = options or {}
    settings = encoder.settings() if encoder is not None else {}
    if (asked_scope := _asked(options, "encoder", "scope")) is not None:
        settings["encoder.scope"] = asked_scope
    pixels = model is not None and not real.features  # which then are what the model takes
    scope = settings.setdefault("encoder.scope", "image" if pixels else "heads")
    preset = PRESETS.get("features" if real.features else scope, "photos")
    chosen = find_method(method or ("hindsight" if scope == "heads" else "lors"))
    settings |= {f"data.{name}": value for name, value in real.settings.items()}
    settings["distill.budget"] = pairs
    if model is not None:
        settings["encoder.network"] = own_network(model)
    if loss is not None:
        settings["loss"] = named_loss(loss)
    settings |= by_dotted_name(options, chosen.matcher)
    asked = {name: settings[name] for name in chosen.settings if name in settings}
    changed = replace(chosen, settings={**chosen.settings, **asked})  # a caller's word counts
    own = method is None and scope == "heads"  # the presets of frozen trunks are of this method
    return load_config(preset, settings, None if own else changed)


def whole_number(value: Any, what: str) -> int:
    """A count that a caller gave, also as a NumPy integer.

    >>> whole_number(3, "pairs is how many pairs the set may hold")
    3

    Raises:
        InputError: it is no whole number, or less than 1.
    """
    count = None if isinstance(value, bool) or not hasattr(value, "__index__") else index(value)
    if count is None or count < 1:
        raise InputError(f"{what}: give 1 or more, not {value!r}")
    return count


def skips_bad(options: Mapping[str, Any]) -> bool:
    """Whether keywords ask to leave out bad rows."""
    return bool(_asked(options, "data", "skip_bad"))


def _asked(options: Mapping[str, Any], section: str, name: str) -> Any:
    """What keywords give for a setting, under any of its names; None if they do not."""
    within = options.get(section)
    inside = within.get(name) if isinstance(within, Mapping) else None
    return options.get(name, options.get(f"{section}.{name}", inside))


@contextmanager
def call_folder(out: str | Path | None) -> Iterator[Path]:
    """The folder of a call, or one in the cache that goes when the call ends."""
    if out is not None:
        yield Path(out)
        return
    room = home() / CALLS
    room.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=room) as folder:
        yield Path(folder)
