"""Analytic matching: linear heads fitted to synthetic pairs should be those fitted to real ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lors.config.matchers import AnalyticOptions
from lors.encoders import DualEncoder, EncodedSplit
from lors.encoders.encoded import mean_captions
from lors.matching.matcher import add_gradients, whole_set
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting

__all__ = [
    "AnalyticMatcher",
    "Covariances",
    "Side",
    "covariances",
    "head_distance",
    "real_covariances",
    "real_sides",
    "relative_distance",
]

CHUNK = 2048


class Side(NamedTuple):
    """What one head of the real data is, and what it takes to fit the same one to other data.

    The head maps centred features x of its side to the features y of the other side. It is ridge
    regression, W = (XᵀX/M + γI)⁻¹ XᵀY/M, the closed form of a linear head.

    Args:
        head: W. Shape: (f, d)
        ridge: γ.
    """

    head: Tensor
    ridge: float


def head_distance(side: Side, x: Tensor, y: Tensor) -> Tensor:
    """‖W_syn - W_real‖² / ‖W_real‖² for the head fitted to N centred pairs.

    W_syn = XᵀGY with G = (XXᵀ/N + γI)⁻¹/N, which is the same head from N x N matrices. With them,
    ‖W_syn‖² = ⟨G, XXᵀ G YYᵀ⟩ and ⟨W_syn, W_real⟩ = ⟨G, X W_real Yᵀ⟩.

    Args:
        side: the head fitted to real pairs.
        x: features of this side. Shape: (N, f)
        y: what they should be mapped to. Shape: (N, d)
    """
    x, y = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in (x, y))
    head, count, products = side.head.to(x), len(x), x @ x.T
    regular = products / count + side.ridge * torch.eye(count, dtype=x.dtype, device=x.device)
    g = torch.linalg.inv_ex(regular).inverse / count  # which does not wait to look for errors
    ours = (g * (products @ g @ (y @ y.T))).sum()
    common = (g * (x @ head @ y.T)).sum()
    whole = head.square().sum()
    return (ours - 2 * common + whole) / whole


def real_sides(real: EncodedSplit, model: DualEncoder, ridge: float) -> tuple[Side, Side]:
    """The image head and the text head of the real pairs, each image with the mean of its captions.

    Args:
        real: the training split.
        model: standardises features.
        ridge: γ of both, as a multiple of the mean variance of a feature of the side.
    """
    x, y = [], []
    for images in np.array_split(np.arange(len(real)), -(-len(real) // CHUNK)):
        bounds = np.searchsorted(real.owner, [images[0], images[-1] + 1])
        captions = np.arange(*bounds)
        texts = real.captions(captions, model).float().cpu().numpy()
        with torch.no_grad():
            x.append(real.inputs(images, model))
        y.append(torch.from_numpy(mean_captions(texts, real.owner[captions])).to(x[-1]))
    image, text = (_centred(torch.cat(parts)).double() for parts in (x, y))
    heads = _fitted(image, text, ridge), _fitted(text, image, ridge)
    return heads[0], heads[1]


def _fitted(x: Tensor, y: Tensor, ridge: float) -> Side:
    """Shapes: (M, f), (M, d), centred"""
    covariance = x.T @ x / len(x)
    gamma = ridge * covariance.diagonal().mean().item()
    regular = covariance + gamma * torch.eye(len(covariance), dtype=x.dtype, device=x.device)
    return Side(torch.linalg.solve(regular, x.T @ y / len(x)), gamma)


def _centred(features: Tensor) -> Tensor:
    return features - features.mean(0)


class Covariances(NamedTuple):
    """All that linear heads by least squares depend on: C_xx⁻¹ C_xy, and C_yy⁻¹ C_yx.

    Args:
        image: C_xx. Shape: (f, f)
        text: C_yy. Shape: (d, d)
        common: C_xy. Shape: (f, d)
    """

    image: Tensor
    text: Tensor
    common: Tensor


def covariances(x: Tensor, y: Tensor, similarity: Tensor | None = None) -> Covariances:
    """XᵀX/N, YᵀY/N and XᵀSY/N of centred features.

    >>> covariances(torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [5.0]])).common
    tensor([[2.]])

    Args:
        x: image features. Shape: (N, f)
        y: text features. Shape: (N, d)
        similarity: S; None: the identity. Shape: (N, N)
    """
    x, y = (_centred(t.to(torch.promote_types(t.dtype, torch.float32))) for t in (x, y))
    tied = y if similarity is None else similarity.to(y) @ y
    return Covariances(*(a.T @ b / len(x) for a, b in ((x, x), (y, y), (x, tied))))


def relative_distance(real: Covariances, synthetic: Covariances) -> Tensor:
    """Σ ‖C_syn - C_real‖² / ‖C_real‖² over the three: 0 means equal heads, 3 is that of zeros."""
    pairs = zip(real, synthetic, strict=True)
    return torch.stack([(b - a).square().sum() / a.square().sum() for a, b in pairs]).sum()


def real_covariances(real: EncodedSplit, model: DualEncoder, subsets: int) -> list[Covariances]:
    """Those of the real pairs with the first caption of each image, with the second, and so on.

    An image with fewer captions begins again with its first.

    Args:
        real: the training split.
        model: standardises features.
        subsets: how many.
    """
    every = np.arange(len(real))
    first, beyond = (np.searchsorted(real.owner, every, side) for side in ("left", "right"))
    with torch.no_grad():
        parts = np.array_split(every, -(-len(real) // CHUNK))
        x = torch.cat([real.inputs(images, model) for images in parts]).double()
        found = []
        for number in range(subsets):
            captions = first + number % (beyond - first)
            found.append(covariances(x, real.captions(captions, model).double()))
    return found


class AnalyticMatcher:
    """Analytic parameter matching (APM), for frozen trunks: no expert, no network, no inner run.

    The image head maps image features to text features, the text head the other way round, both by
    least squares. With ``target=covariances`` the objective is how far the centred covariances that
    give the two heads are from those of the real pairs; each iteration takes the next caption of
    every image. With ``target=heads`` the two heads of the real pairs are computed once, by ridge
    regression, and the objective is how far those of the synthetic pairs are from them, relative to
    their size. A learned similarity says which texts, in which mixture, an image is mapped to: SY
    in the place of Y. The inner rates are not learned.

    Paper: `Efficient Multi-modal Dataset Distillation via Analytic Parameter Matching
    <https://icml.cc/virtual/2026/poster/63258>`_. That the three covariances count alike, each
    relative to its size, is our reading.

    Args:
        setting: the real pairs.
        options: how to match.
    """

    Options = AnalyticOptions

    def __init__(self, setting: Setting, options: AnalyticOptions) -> None:
        self.model, self.options = setting.flat.model, options
        like, real = next(self.model.parameters()), setting.real["train"]
        self.subsets: list[Covariances] = []
        if options.target == "covariances":
            found = real_covariances(real, self.model, options.subsets)
            digits = torch.promote_types(like.dtype, torch.float32)
            self.subsets = [Covariances(*(c.to(like.device, digits) for c in s)) for s in found]
        else:
            sides = real_sides(real, self.model, options.ridge)
            self.image, self.text = (Side(side.head.to(like), side.ridge) for side in sides)
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> Tensor:
        """Add the gradient of the objective to images, texts and similarity.

        Args:
            synthetic: the set being learned.
            generator: nothing is left to chance.

        Returns:
            The relative distance of the covariances, at most 3 for a set of zeros; or that of the
            image heads plus that of the text heads, which is 2 for heads of zeros.
        """
        inputs, texts, similarity = whole_set(synthetic, self.model)
        if self.subsets:
            calls = int(self.state.get("calls", 0))
            self.state = {"calls": torch.tensor(calls + 1)}
            real = self.subsets[calls % len(self.subsets)]
            objective = relative_distance(real, covariances(inputs, texts, similarity))
        else:
            x, y = _centred(inputs), _centred(texts)
            objective = head_distance(self.image, x, similarity @ y)
            objective = objective + head_distance(self.text, y, similarity.T @ x)
        add_gradients(objective, synthetic)
        return objective.detach()
