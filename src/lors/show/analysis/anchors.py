"""What pulls and pushes an image embedding while it trains.

The paper (section 3.3, Flexible contrastive learning anchors): the gradient of each loss with
respect to an embedding u_n is Σ_j W_j v_j. A text v_j with W_j < 0 attracts u_n, one with W_j > 0
repels it; a learned S sets these weights freely.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lors.experts import experts_of
from lors.losses import LOSSES
from lors.runs.opened import Run
from lors.system.errors import choose

__all__ = ["ANCHOR_WEIGHTS", "anchor_weights", "embeddings", "most_similar_image"]


def nce_weights(logits: Tensor, similarity: Tensor, n: int) -> Tensor:
    """Proposition 1: P^V_nj + P^T_nj, less 2 at j = n; all over m."""
    return ence_weights(logits, torch.eye(len(logits)).to(logits), n)


def ence_weights(logits: Tensor, similarity: Tensor, n: int) -> Tensor:
    """Proposition 2: (s_n. P^V_nj + s_.j P^T_nj - 2 s_nj) / m."""
    over_texts, over_images = logits.softmax(1)[n], logits.softmax(0)[n]
    marginal = similarity[n].sum() * over_texts + similarity.sum(0) * over_images
    return (marginal - 2 * similarity[n]) / len(logits)


def bce_weights(logits: Tensor, similarity: Tensor, n: int) -> Tensor:
    """Proposition 3: (σ(ŝ_nj / τ) - s_nj) / m."""
    return (logits[n].sigmoid() - similarity[n]) / len(logits)


def wbce_weights(logits: Tensor, similarity: Tensor, n: int, threshold: float = 0.5) -> Tensor:
    """Proposition 3 with positives and negatives averaged apart, as in the loss."""
    positive = similarity > threshold
    count = positive.sum()
    sizes = torch.where(positive[n], count, positive.numel() - count)
    return (logits[n].sigmoid() - similarity[n]) / sizes


def slope_weights(loss: str, logits: Tensor, similarity: Tensor, n: int) -> Tensor:
    """Of any loss: its derivative in the logits of image n."""
    leaf = logits.detach().requires_grad_()
    (slopes,) = torch.autograd.grad(LOSSES[loss](leaf, similarity), leaf)
    return slopes[n]


ANCHOR_WEIGHTS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "nce": nce_weights,
    "ence": ence_weights,
    "bce": bce_weights,
    "wbce": wbce_weights,
}
"""Those of the paper's propositions."""


def anchor_weights(
    loss: str, images: Tensor, texts: Tensor, similarity: Tensor, n: int, temperature: float
) -> Tensor:
    """W_1 … W_m of image n.

    Args:
        loss: its name.
        images: u, normalised. Shape: (m, d)
        texts: v, normalised. Shape: (m, d)
        similarity: S. Shape: (m, m)
        n: which image.
        temperature: τ.

    Returns:
        W with ∂loss/∂u_n = W v. Shape: (m,)
    """
    choose(LOSSES, loss, "loss")
    weights = ANCHOR_WEIGHTS.get(loss, partial(slope_weights, loss))
    return weights(images @ texts.T / temperature, similarity, n) / temperature


def embeddings(run: Run) -> tuple[Tensor, Tensor]:
    """A distilled set in the joint space of the first expert, after the last of the epochs that
    matching starts from. Shapes: (N, d), (N, d)
    """
    setting, pairs = run.setting, run.distilled.pairs
    model = setting.model("anchors")
    theta = experts_of(setting).snapshots(0, [run.config.matching.last_start()])[0]
    setting.flat.load(theta.to(setting.device, setting.dtype), model)
    images, texts = (t.to(setting.device, setting.dtype) for t in (pairs.images, pairs.texts))
    with torch.no_grad():
        return model.embed_images(model.freeze(images)).cpu(), model.embed_texts(texts).cpu()


def most_similar_image(similarity: np.ndarray) -> int:
    """The image with the largest similarity to a text that is not its own."""
    others = np.where(np.eye(len(similarity), dtype=bool), -np.inf, similarity)
    return int(others.max(1).argmax())
