"""The dual encoder: an image side and a text side that meet in a joint space."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from lors.config import EncoderConfig
from lors.encoders.heads import HEADS
from lors.encoders.image import image_trunk, normalisation
from lors.errors import choose
from lors.seeding import global_seed

__all__ = ["DualEncoder", "FlatModel", "build_dual_encoder"]


class DualEncoder(nn.Module):
    """Image trunk, image head, text head and temperature; the text trunk has done its work before.

    It runs in two stages, so that what is frozen need be computed only once:
    ``freeze`` maps images to what the trainable part takes (themselves in scope ``image``, the
    trunk's features in scope ``heads``), and calling the model maps that to logits.

    It stays in evaluation mode: no dropout, and batch statistics, if any, are frozen, so that a
    step is the same function for experts, matching and evaluation.

    Args:
        trunk: images to features.
        image_head: features to the joint space.
        text_head: text embeddings to the joint space.
        temperature: τ.
        scope: ``image`` trains the trunk and both heads, ``heads`` only the heads.
    """

    def __init__(
        self,
        trunk: nn.Module,
        image_head: nn.Module,
        text_head: nn.Module,
        temperature: float = 0.07,
        scope: str = "image",
    ) -> None:
        super().__init__()
        frozen = scope == "heads"
        self.frozen_trunk = trunk.requires_grad_(False) if frozen else nn.Identity()
        self.image = image_head if frozen else nn.Sequential(trunk, image_head)
        self.text = text_head
        self.temperature = temperature
        self.mean, self.std = normalisation(trunk)
        self.eval()

    def normalise(self, images: Tensor) -> Tensor:
        """uint8 pixels to what the trunk expects. Shape: (m, 3, size, size)"""
        like: dict[str, torch.device | torch.dtype] = {
            "device": images.device,
            "dtype": next(self.parameters()).dtype,
        }
        mean = torch.tensor(self.mean, **like).view(-1, 1, 1)  # type: ignore[arg-type]
        std = torch.tensor(self.std, **like).view(-1, 1, 1)  # type: ignore[arg-type]
        return (images.to(mean.dtype) / 255 - mean) / std

    def freeze(self, images: Tensor) -> Tensor:
        """The frozen part: normalised images to inputs of the trainable part."""
        features: Tensor = self.frozen_trunk(images)
        return features

    def embed_images(self, inputs: Tensor) -> Tensor:
        """u, normalised. Shape: (m, …) -> (m, d)"""
        return F.normalize(self.image(inputs), dim=-1)

    def embed_texts(self, texts: Tensor) -> Tensor:
        """v, normalised. Shape: (m, text_dim) -> (m, d)"""
        return F.normalize(self.text(texts), dim=-1)

    def forward(self, inputs: Tensor, texts: Tensor) -> Tensor:
        """Logits u vᵀ / τ. Shape: (m, m)"""
        return self.embed_images(inputs) @ self.embed_texts(texts).T / self.temperature

    def sides(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """The trainable parameters of the image side and of the text side."""
        return list(self.image.parameters()), list(self.text.parameters())


def build_dual_encoder(config: EncoderConfig, text_dim: int, seed: int) -> DualEncoder:
    """A freshly initialised dual encoder.

    The seed draws what is trained. What is frozen is the same for every seed, and pretrained
    weights, where given, replace the trunk's draw.

    Args:
        config: what to build.
        text_dim: size of the text trunk's embeddings.
        seed: draws the initial weights.
    """
    trunk_seed = 0 if config.scope == "heads" else seed
    with global_seed(trunk_seed, "trunk"):
        trunk = image_trunk(config.image, config.image_weights, config.image_size)
    features = int(trunk.num_features)  # type: ignore[arg-type]
    dim = config.embed_dim or features
    with global_seed(seed, "heads"):
        image_head = choose(HEADS, config.image_head, "head")(features, dim)
        text_head = choose(HEADS, config.text_head, "head")(text_dim, dim)
    return DualEncoder(trunk, image_head, text_head, config.temperature, config.scope)


class FlatModel:
    """A dual encoder as a pure function of one parameter vector θ = (θ_V, θ_T).

    Args:
        model: gives the architecture; its own weights are not touched.
    """

    def __init__(self, model: DualEncoder) -> None:
        self.model = model
        image, text = model.sides()
        by_identity = {id(p): name for name, p in model.named_parameters()}
        self._names = [by_identity[id(p)] for p in (*image, *text)]
        self._shapes = [p.shape for p in (*image, *text)]
        self._sizes = [p.numel() for p in (*image, *text)]
        self.sides = (sum(p.numel() for p in image), sum(p.numel() for p in text))

    def flatten(self, model: DualEncoder) -> Tensor:
        """θ of a model of this architecture. Shape: (P,)"""
        image, text = model.sides()
        return torch.cat([p.detach().reshape(-1) for p in (*image, *text)])

    def load(self, theta: Tensor, model: DualEncoder) -> None:
        """Write θ into a model of this architecture."""
        image, text = model.sides()
        with torch.no_grad():
            for p, part in zip((*image, *text), theta.split(self._sizes), strict=True):
                p.copy_(part.view(p.shape))

    def __call__(self, theta: Tensor, inputs: Tensor, texts: Tensor) -> Tensor:
        """Logits of θ on a batch, differentiable in all three. Shape: (m, m)"""
        parts = zip(self._names, theta.split(self._sizes), self._shapes, strict=True)
        values = {name: part.view(shape) for name, part, shape in parts}
        logits: Tensor = functional_call(self.model, values, (inputs, texts))
        return logits
