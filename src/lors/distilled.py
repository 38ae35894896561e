"""The distilled set: the artefact a user keeps, shares and trains on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from lors import artifacts
from lors.config import Config
from lors.encoders import DualEncoder, TextTrunk
from lors.encoders.text import TEXT_TRUNKS
from lors.errors import InputError, choose
from lors.losses import LOSSES, Loss
from lors.seeding import generator
from lors.similarity import build_similarity
from lors.synthetic import SyntheticPairs
from lors.training import Batch

__all__ = ["DistilledSet"]

KIND = "distilled set"


@dataclass(frozen=True)
class DistilledSet:
    """Synthetic pairs and everything needed to train with them.

    >>> distilled = DistilledSet.load("runs/demo/distilled.safetensors")  # doctest: +SKIP
    >>> for images, texts, similarity in distilled.batches(20): ...  # doctest: +SKIP

    Args:
        pairs: images, texts, similarity and inner rates.
        config: the configuration it was made with: encoders, loss, protocol, seed.
        text_trunk: embeds new captions as the set's texts are embedded.
        mean: of the image normalisation, per channel.
        std: likewise.
    """

    pairs: SyntheticPairs
    config: Config
    text_trunk: TextTrunk
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        budget = self.config.distill.budget
        if self.pairs.storage() > budget:
            raise InputError(
                f"{len(self.pairs)} pairs with a {self.config.similarity.kind} similarity hold as "
                f"many numbers as {self.pairs.storage():.2f} plain pairs, more than the budget of "
                f"{budget}: use fewer pairs, a lower similarity.rank or a larger distill.budget"
            )
        self.pairs.requires_grad_(False)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def loss(self) -> Loss:
        """The contrastive loss that the set was made for."""
        return choose(LOSSES, self.config.loss, "loss")

    @property
    def rates(self) -> tuple[float, float]:
        """The learned learning rates of the image side and the text side."""
        image, text = self.pairs.rates.tolist()
        return image, text

    def storage(self) -> float:
        """Storage in pair-equivalents: how many plain pairs hold as many numbers."""
        return self.pairs.storage()

    def pixels(self) -> Tensor:
        """The images for looking at. Shape: (N, 3, size, size), uint8"""
        like = {"device": self.pairs.images.device, "dtype": self.pairs.images.dtype}
        mean = torch.tensor(self.mean, **like).view(-1, 1, 1)  # type: ignore[arg-type]
        std = torch.tensor(self.std, **like).view(-1, 1, 1)  # type: ignore[arg-type]
        return (255 * (self.pairs.images * std + mean)).round().clamp(0, 255).to(torch.uint8)

    def batches(
        self, batch_size: int = 128, seed: int = 0, model: DualEncoder | None = None
    ) -> Iterator[Batch]:
        """One shuffled pass over the set as (images, texts, S of the batch).

        Args:
            batch_size: pairs per batch.
            seed: draws the order.
            model: if given, its frozen part is applied to the images.
        """
        inputs = model.freeze(self.pairs.images) if model else self.pairs.images
        order = self.pairs.passes(batch_size, generator(seed, "batches"))
        count = -(-len(self) // batch_size)
        for index in islice(order, count):
            yield from self.pairs.gather([index], inputs)

    def save(self, path: str | Path) -> None:
        """Write the set as one safetensors file with a JSON header."""
        trunk_header, trunk_tensors = self.text_trunk.state()
        header = {
            "config": self.config.model_dump(mode="json"),
            "pairs": len(self),
            "storage": self.storage(),
            "mean": self.mean,
            "std": self.std,
            "text_trunk": trunk_header,
            "versions": artifacts.versions(),
        }
        tensors = dict(self.pairs.state_dict())
        tensors |= {f"text_trunk.{name}": tensor for name, tensor in trunk_tensors.items()}
        artifacts.save(Path(path), KIND, header, tensors)

    @classmethod
    def load(cls, path: str | Path) -> DistilledSet:
        """Read a set.

        Raises:
            InputError: the file is absent, damaged, of a newer format, or over its budget.
        """
        header, tensors = artifacts.load(Path(path), KIND)
        try:
            return cls._restore(header, tensors)
        except (KeyError, TypeError, ValueError, RuntimeError, ValidationError) as error:
            raise InputError(f"{str(path)!r} is damaged: {error}") from None

    @classmethod
    def _restore(cls, header: dict[str, Any], tensors: dict[str, Tensor]) -> DistilledSet:
        config = Config.model_validate(header["config"])
        prefix = "text_trunk."
        trunk = {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
        state = {k: t for k, t in tensors.items() if not k.startswith(prefix)}
        # The values of a fixed similarity are in the set, not where they once came from.
        blank = config.similarity.model_copy(update={"values": None})
        similarity = build_similarity(blank, header["pairs"])
        pairs = SyntheticPairs(state["images"], state["texts"], similarity)
        pairs.load_state_dict(state)
        return cls(
            pairs=pairs,
            config=config,
            text_trunk=choose(TEXT_TRUNKS, config.encoder.text, "text trunk").restore(
                header["text_trunk"], trunk
            ),
            mean=tuple(header["mean"]),
            std=tuple(header["std"]),
        )
