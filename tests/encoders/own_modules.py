"""Small modules such as a caller may have."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY = "a an the red green blue yellow purple orange white black circle square star ring on"


def tokenize(captions: list[str]) -> Tensor:
    """Words to ids from 2; 1 is any other word and 0 is padding."""
    known = {word: i for i, word in enumerate(VOCABULARY.split(), start=2)}
    rows = [[known.get(word, 1) for word in caption.lower().split()] for caption in captions]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


class Convolutions(nn.Sequential):
    """An image module that gives a feature map, as a Sequential of more than two."""

    def __init__(self, features: int = 6) -> None:
        super().__init__(
            nn.Conv2d(3, 4, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(4, features, 3, stride=2, padding=1),
        )


class Reader(nn.Module):
    """A text module: words and positions, one layer of attention, the mean of the words."""

    def __init__(self, dim: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(40, dim)
        self.positions = nn.Embedding(64, dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.out = nn.Linear(dim, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = tokens != 0
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.positions(places)
        x = x + self.attention(x, x, x, key_padding_mask=~mask, need_weights=False)[0]
        weights = mask[:, :, None].to(x.dtype)
        return self.out((F.gelu(x) * weights).sum(1) / weights.sum(1).clamp(min=1))


def drawn(make: type[nn.Module], seed: int = 0) -> nn.Module:
    """A module with the weights of a seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()
