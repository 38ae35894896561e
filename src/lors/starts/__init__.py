"""Initialisers: what synthetic pairs are before distillation."""

from collections.abc import Callable

from lors.selection import SELECTIONS
from lors.starts.canonical import canonical
from lors.starts.cross_covariance import cross_covariance
from lors.starts.k_means import centroids, nearest_to_centroids
from lors.starts.material import Material, Start
from lors.starts.real import noise, real, replicas

__all__ = ["INITIALS", "Initialiser", "Material", "Start"]

Initialiser = Callable[[Material], Start]


def _selected(name: str) -> Initialiser:
    return lambda material: material.start(*material.select(name, material.count))


INITIALS: dict[str, Initialiser] = {
    **{name: _selected(name) for name in SELECTIONS},
    "real": real,
    "replicas": replicas,
    "noise": noise,
    "k-means": nearest_to_centroids,
    "centroids": centroids,
    "cross-covariance": cross_covariance,
    "canonical": canonical,
}
