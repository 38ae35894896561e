"""A set as PyTorch's training loops take data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from lors.losses import LOSSES, Loss
from lors.system.errors import InputError
from lors.training import Batch

if TYPE_CHECKING:
    from lors.sets.distilled import DistilledSet

__all__ = ["ClipLoss", "PairDataset", "pair_loader"]

Row = tuple[Tensor, Tensor, int]


class PairDataset(Dataset[Row]):
    """The pairs of a set one by one, as (image, text, number).

    Args:
        distilled: the set.
    """

    def __init__(self, distilled: DistilledSet) -> None:
        self.distilled = distilled
        self._images, self._texts = distilled.images, distilled.texts

    def __len__(self) -> int:
        return len(self.distilled)

    def __getitem__(self, index: int) -> Row:
        place = range(len(self))[index]
        return self._images[place], self._texts[place], place

    def batch(self, rows: list[Row]) -> Batch:
        """Rows as a batch with its block of S."""
        images, texts, numbers = zip(*rows, strict=True)
        index = torch.tensor(numbers)
        return Batch(torch.stack(images), torch.stack(texts), self.distilled.similarity_at(index))


def pair_loader(
    distilled: DistilledSet, batch_size: int = 128, shuffle: bool = True, seed: int = 0
) -> DataLoader[Row]:
    """A PyTorch loader whose batches are (images, texts, S of the batch).

    Args:
        distilled: the set.
        batch_size: pairs per batch.
        shuffle: whether every pass has another order.
        seed: draws the orders.
    """
    if batch_size < 1:
        raise InputError(f"a batch holds at least one pair, not {batch_size}")
    rows = PairDataset(distilled)
    draw = torch.Generator().manual_seed(seed)
    return DataLoader(rows, batch_size, shuffle=shuffle, generator=draw, collate_fn=rows.batch)


class ClipLoss(nn.Module):
    """A set's loss with the call of open_clip's ``ClipLoss``, for training loops made for that.

    Give it the S of a batch before the loss of the batch is asked for.

    >>> loss = ClipLoss("wbce")
    >>> loss.similarity = torch.eye(2)
    >>> u = torch.nn.functional.normalize(torch.eye(2), dim=1)
    >>> loss(image_features=u, text_features=u, logit_scale=torch.tensor(10.0)) < 0.7
    tensor(True)

    Args:
        loss: a name in ``LOSSES``, or a function of logits and S.
    """

    similarity: Tensor | None

    def __init__(self, loss: str | Loss = "wbce") -> None:
        super().__init__()
        self.loss: Loss = LOSSES.choose(loss) if isinstance(loss, str) else loss
        self.similarity = None

    def forward(
        self,
        image_features: Tensor,
        text_features: Tensor,
        logit_scale: Tensor,
        logit_bias: Tensor | None = None,
        output_dict: bool = False,
    ) -> Tensor | dict[str, Tensor]:
        """The loss of normalised features, times ``logit_scale``; S = I where none was given."""
        logits = logit_scale * image_features @ text_features.T
        if logit_bias is not None:
            logits = logits + logit_bias
        similarity = self.similarity
        if similarity is None:
            similarity = torch.eye(len(logits))
        found = self.loss(logits, similarity.to(logits))
        return {"contrastive_loss": found} if output_dict else found
