"""Decorators that give encoders of one's own a name, which settings then have as ``own:NAME``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lors.encoders.own_parts import NETWORKS, OWN_IMAGES, OwnImage, OwnNetwork
from lors.encoders.own_text import OWN_TEXTS, own_text_part

__all__ = ["image_trunk", "network", "text_trunk"]


def network(
    name: str, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> Callable[[Any], Any]:
    """Decorates a function that makes all that trains, as ``lors.distill(model=…)`` takes it.

    >>> import lors
    >>> from torch import nn
    >>> @network("small-heads")
    ... def small_heads():
    ...     return nn.Linear(12, 4), nn.Linear(10, 4)
    >>> lors.Encoder(network="own:small-heads").settings()
    {'encoder.network': 'own:small-heads'}

    Args:
        name: ``encoder.network=own:NAME`` then names it.
        mean: of the pixels that the image module expects, as for ``Encoder``.
        std: likewise.
    """
    return _keeping(lambda factory: NETWORKS.give(OwnNetwork(factory, mean, std), name))


def image_trunk(
    name: str, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> Callable[[Any], Any]:
    """Decorates a module class, or a function that makes a module: an image trunk by name.

    >>> import lors
    >>> from torch import nn
    >>> @image_trunk("flat", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    ... def flat():
    ...     return nn.Flatten()
    >>> lors.Encoder(image="own:flat", image_size=8).settings()["encoder.image"]
    'own:flat'

    Args:
        name: ``encoder.image=own:NAME`` then names it.
        mean: of the pixels that it expects, as for ``Encoder``.
        std: likewise.
    """
    return _keeping(lambda given: OWN_IMAGES.give(OwnImage(given, mean, std), name))


def text_trunk(
    name: str, tokenize: Callable[[list[str]], Any] | None = None
) -> Callable[[Any], Any]:
    """Decorates a function of captions, or with ``tokenize`` a module class: a text trunk by name.

    >>> import lors
    >>> @text_trunk("lengths")
    ... def lengths(captions):
    ...     return [[float(len(caption)), float(caption.count(" "))] for caption in captions]
    >>> lors.Encoder(text="own:lengths").settings()
    {'encoder.text': 'own:lengths'}

    Args:
        name: ``encoder.text=own:NAME`` then names it.
        tokenize: as of ``Encoder``.
    """
    return _keeping(lambda given: OWN_TEXTS.give(own_text_part(given, tokenize), name))


def _keeping(give: Callable[[Any], object]) -> Callable[[Any], Any]:
    """A decorator that gives a thing to its registry and leaves it as it is."""

    def keep(given: Any) -> Any:
        give(given)
        return given

    return keep
