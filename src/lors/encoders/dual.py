"""The dual encoder: an image side and a text side that meet in a joint space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lors.config import EncoderConfig
from lors.encoders.compiled import Compiler
from lors.encoders.heads import HEADS
from lors.encoders.image import feature_size, image_trunk, normalisation
from lors.encoders.own_parts import NETWORKS
from lors.encoders.recompute import recompute_blocks
from lors.encoders.splitting import split_trunk
from lors.encoders.standard import Standard
from lors.system.errors import InputError
from lors.system.memory import in_pieces
from lors.system.parallel import joined_rows
from lors.system.seeding import global_seed

__all__ = ["DualEncoder", "Frozen", "Side", "build_dual_encoder"]

CPU_PIECE = 16


@dataclass(frozen=True)
class Frozen:
    """What all dual encoders of one setting share because it does not train.

    Args:
        text_dim: size of what the text head takes.
        feature_dim: scope heads: size of the image trunk's features.
        trunk: scope heads with pixels: the image trunk; else its first part, if that is frozen.
        image_standard: scope heads: standardises the trunk's features.
        text_standard: standardises text embeddings.
        text_tower: scope all: makes a copy of the text trunk that trains.
    """

    text_dim: int
    feature_dim: int | None = None
    trunk: nn.Module | None = None
    image_standard: Standard | None = None
    text_standard: Standard | None = None
    text_tower: Callable[[], nn.Module] | None = None


class Side(nn.Sequential):
    """A side of a dual encoder whose trunk trains along: the trunk, and the head after it."""

    def __init__(self, trunk: nn.Module, head: nn.Module) -> None:
        super().__init__(trunk, head)


class DualEncoder(nn.Module):
    """An image side and a text side, each trunk and head as far as they train, and a temperature.

    It runs in two stages, so that what is frozen need be computed only once:
    ``freeze`` maps images to what the trainable part takes (themselves if the trunk trains, the
    trunk's standardised features if not), and calling the model maps that to logits.

    It stays in evaluation mode: batch statistics, if any, are frozen, and dropout is at work only
    inside ``lors.encoders.dropout.dropping``, so that a step is the same function for experts,
    matching and evaluation.

    Where ``divided`` is set, each rank gives its part of a batch and all get the logits of the
    whole; a gradient in the parameters is then a part, to be summed over the ranks. ``compiler``,
    if there is one, is for training steps.

    Args:
        image: the trainable part of the image side.
        text: the trainable part of the text side.
        temperature: τ.
        trunk: the frozen image trunk, if images are pixels and it does not train.
        image_standard: standardises the frozen trunk's features.
        text_standard: standardises text embeddings.
        normalised_by: mean and deviation of the pixels, per channel; empty for features.
    """

    def __init__(
        self,
        image: nn.Module,
        text: nn.Module,
        temperature: float = 0.07,
        *,
        trunk: nn.Module | None = None,
        image_standard: Standard | None = None,
        text_standard: Standard | None = None,
        normalised_by: tuple[tuple[float, ...], tuple[float, ...]] = ((), ()),
    ) -> None:
        super().__init__()
        self.image, self.text = image, text
        self.temperature = temperature
        self.trunk = None if trunk is None else trunk.requires_grad_(False)
        self.image_standard: nn.Module = image_standard or nn.Identity()
        self.text_standard: nn.Module = text_standard or nn.Identity()
        self.mean, self.std = normalised_by
        self.divided = False
        self.compiler: Compiler | None = None
        self.eval()

    def normalise(self, images: Tensor) -> Tensor:
        """uint8 pixels to what the trunk expects. Shape: (m, 3, size, size)"""
        values = images.to(next(self.parameters()).dtype, copy=True)
        mean, std = (values.new_tensor(v).view(-1, 1, 1) for v in (self.mean, self.std))
        return values.div_(255).sub_(mean).div_(std)  # in place: new memory costs more than sums

    def freeze(self, images: Tensor) -> Tensor:
        """The frozen part: normalised images to inputs of the trainable part."""
        if self.trunk is None:
            return images
        trunk, images = self.trunk, images.contiguous(memory_format=torch.channels_last)

        def features(piece: int) -> Tensor:
            return torch.cat([trunk(images) for images in images.split(piece)])

        # Small pieces stay in a CPU's cache.
        piece = CPU_PIECE if images.device.type == "cpu" else max(1, len(images))
        if torch.is_grad_enabled():  # the graphs of all pieces would take as much as that of one
            return self.image_standard(features(piece))
        return self.image_standard(in_pieces(features, piece))

    def embed_images(self, inputs: Tensor) -> Tensor:
        """u, normalised. Shape: (m, …) -> (m, d)"""
        return F.normalize(self.image(_channels_last(inputs)), dim=-1)

    def embed_texts(self, texts: Tensor) -> Tensor:
        """v, normalised. Shape: (m, …) -> (m, d)"""
        return F.normalize(self.text(texts), dim=-1)

    def trunk_features(self, inputs: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """What the two heads take: features of the trunks that train, or the inputs themselves."""
        return self.image_features(inputs), _parts(self.text)[0](texts)

    def image_features(self, inputs: Tensor) -> Tensor:
        """What the image head takes. Shape: (m, …) -> (m, f)"""
        features: Tensor = _parts(self.image)[0](_channels_last(inputs))
        return features

    def project(self, images: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """u and v of what the two heads take. Shapes: (m, d), (m, d)"""
        image, text = (_parts(side)[1] for side in (self.image, self.text))
        return F.normalize(image(images), dim=-1), F.normalize(text(texts), dim=-1)

    def forward(self, inputs: Tensor, texts: Tensor) -> Tensor:
        """Logits u vᵀ / τ. Shape: (m, m)"""
        images, texts = self.image(_channels_last(inputs)), self.text(texts)
        if self.divided:
            images, texts = joined_rows(images), joined_rows(texts)
        return self.logits(images, texts)

    def logits(self, images: Tensor, texts: Tensor) -> Tensor:
        """Logits of what the two sides give, not yet normalised. Shape: (m, d), (m, d) -> (m, m)"""
        return F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T / self.temperature

    def recompute(self) -> bool:
        """Compute activations again on the way back, from now on; False: it did so before."""
        self.compiler = None  # compiled code keeps what it wants
        trunks = [_parts(side)[0] for side in (self.image, self.text)]
        return recompute_blocks(*trunks, *([] if self.trunk is None else [self.trunk]))

    def sides(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """The trainable parameters of the image side and of the text side."""
        image, text = (
            [p for p in side.parameters() if p.requires_grad] for side in (self.image, self.text)
        )
        return image, text


def _channels_last(inputs: Tensor) -> Tensor:
    """Images in the order of memory that convolutions are fastest with; features as they are.

    So it was measured on CPUs; on CUDA, it is the order that tensor cores take (TF32, bfloat16).
    """
    if inputs.dim() == 4 and inputs.device.type in ("cpu", "cuda"):
        return inputs.contiguous(memory_format=torch.channels_last)
    return inputs


def _parts(side: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The trunk and the head of a side; where the trunk is frozen, a side is only a head."""
    if isinstance(side, Side):
        trunk, head = side
        return trunk, head
    return nn.Identity(), side


def build_dual_encoder(config: EncoderConfig, frozen: Frozen, seed: int) -> DualEncoder:
    """A freshly initialised dual encoder.

    The seed draws what is trained, except where pretrained weights take its place.

    Args:
        config: what to build.
        frozen: what is shared with all others of this setting.
        seed: draws the initial weights.
    """
    trunk = frozen.trunk
    if config.network is not None:
        image, text, normalised_by = _own_sides(config.network, config.scope != "heads", seed)
    else:
        trunk, image, text = _trunk_and_heads(config, frozen, seed)
        normalised_by = ((), ())
    if frozen.text_tower is not None:
        with global_seed(seed, "text tower"):  # networks are made side by side
            text = Side(frozen.text_tower(), text)
    for side, part in (("image", image), ("text", text)):
        if not any(p.requires_grad for p in part.parameters()):
            raise InputError(f"nothing trains on the {side} side: set encoder.{side}_head=linear")
    return DualEncoder(
        image,
        text,
        config.temperature,
        trunk=frozen.trunk,
        image_standard=frozen.image_standard,
        text_standard=frozen.text_standard,
        normalised_by=normalised_by if trunk is None else normalisation(trunk),
    )


def _trunk_and_heads(
    config: EncoderConfig, frozen: Frozen, seed: int
) -> tuple[nn.Module | None, nn.Module, nn.Module]:
    """The image trunk, if images are pixels; what trains of the image side; the text head."""
    trunk, features = frozen.trunk, frozen.feature_dim
    if config.scope != "heads":
        with global_seed(seed, "trunk"):
            trunk = image_trunk(*config.trunk())
        features = feature_size(trunk)
        if config.trains_from is not None:
            _, trunk = split_trunk(trunk.eval(), config.trains_from)
    assert features is not None
    dim = config.embed_dim or features
    with global_seed(seed, "heads"):
        image: nn.Module = HEADS.choose(config.image_head)(features, dim)
        text: nn.Module = HEADS.choose(config.text_head)(frozen.text_dim, dim)
    if config.scope != "heads" and trunk is not None:
        image = Side(trunk, image)
    return trunk, image, text


def _own_sides(
    name: str, pixels: bool, seed: int
) -> tuple[nn.Module, nn.Module, tuple[tuple[float, ...], tuple[float, ...]]]:
    """What trains of both sides, as the caller's own function makes it, and how pixels enter it."""
    part = NETWORKS.choose(name)
    with global_seed(seed, "heads"):
        image, text = part.sides(pixels)
    if not pixels:
        return image, text, ((), ())
    return Side(image, nn.Identity()), text, part.normalised_by
