"""A text module of the caller's own as what trains along, in scope all."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lors.encoders.trial import features_of
from lors.system.errors import InputError

__all__ = ["OwnTower", "check_tower", "place_of_words"]


class Words(nn.Module):
    """Stands in the place of a module's word embeddings, and lets vectors enter after them.

    Args:
        embedding: of token ids; frozen, because synthetic texts enter after it and could never move
            it.
    """

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding.requires_grad_(False)
        self.embedding_dim = embedding.embedding_dim
        self.given: Tensor | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape: (m, L) -> (m, L, h)"""
        if self.given is not None:
            return self.given
        return self.embedding(tokens) * (tokens != 0)[:, :, None]


class OwnTower(nn.Module):
    """A text module that takes token ids, or vectors in the place of its word embeddings.

    Padding is token 0, and a row of zeros: the module sees no difference between the two.

    Args:
        module: token ids to one embedding. Shape: (m, L) -> (m, dim)
        place: where in it the word embeddings are.
    """

    def __init__(self, module: nn.Module, place: str) -> None:
        super().__init__()
        parent, _, last = place.rpartition(".")
        embedding = module.get_submodule(place)
        assert isinstance(embedding, nn.Embedding)
        setattr(module.get_submodule(parent), last, Words(embedding))
        self.module, self.place = module, place
        self.eval()

    @property
    def words(self) -> Words:
        words = self.module.get_submodule(self.place)
        assert isinstance(words, Words)
        return words

    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """The vectors that stand for token ids. Shape: (m, L) -> (m, L, h)"""
        return self.words(tokens)

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape: (m, L) ids or (m, L, h) vectors -> (m, dim)"""
        if not tokens.is_floating_point():
            return self.module(tokens)
        self.words.given = tokens
        try:
            return self.module((tokens.detach() != 0).any(-1).long())
        finally:
            self.words.given = None


def place_of_words(module: nn.Module, tokens: Tensor, what: str) -> str:
    """The name of the one ``nn.Embedding`` that looks the token ids up.

    Raises:
        InputError: there is none, or there are several.
    """
    found: list[str] = []

    def sees(name: str, given: Tensor) -> None:
        if given.shape == tokens.shape and torch.equal(given.to(tokens), tokens):
            found.append(name)

    hooks = [
        part.register_forward_pre_hook(lambda _, args, name=name: sees(name, args[0]))
        for name, part in module.named_modules()
        if isinstance(part, nn.Embedding) and name
    ]
    try:
        with torch.no_grad():
            features_of(module, tokens, what)
    finally:
        for hook in hooks:
            hook.remove()
    if len(found) != 1:
        several = "several" if found else "none"
        raise InputError(
            f"synthetic texts enter {what} in the place of the nn.Embedding that takes its token "
            f"ids, and it has {several}: look ids up once, or set encoder.scope=image"
        )
    return found[0]


@torch.no_grad()
def check_tower(tower: OwnTower, tokens: Tensor, what: str) -> None:
    """Refuse a module that uses token ids for more than to look them up, as vectors have none."""
    ids = features_of(tower, tokens, what)
    vectors = features_of(tower, tower.embed_tokens(tokens), what)
    if not torch.allclose(ids, vectors, rtol=1e-4, atol=1e-5):
        raise InputError(
            f"{what} uses its token ids outside of its nn.Embedding, other than to find padding "
            "(id 0), so that texts cannot be learned as vectors: pool by position or by the mean, "
            "or set encoder.scope=image"
        )
