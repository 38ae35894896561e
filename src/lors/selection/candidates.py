"""The pairs a selection method may choose from, as joint image-text features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from lors.data.shards import BLOCK, Features, ShardedRows
from lors.selection.span import Span
from lors.system.errors import InputError

__all__ = ["CHUNK", "Candidates", "PairRows", "check_count", "pair_rows"]

# Rows read at a time. What must be converted or gathered is fastest while it fits in the cache.
CHUNK = BLOCK


def check_count(count: int, pairs: int) -> None:
    """Refuse to choose none, or more than there are.

    Raises:
        InputError: ``count`` is not between 1 and ``pairs``.
    """
    if not 1 <= count <= pairs:
        raise InputError(f"cannot choose {count} of {pairs} pairs: ask for 1 to {pairs}")


class PairRows:
    """One side of M pairs, read in float32 chunks without ever copying the whole.

    Args:
        side: "image" or "text", for messages.
        features: of any float type, in memory or in files. Shape: (C, d)
        rows: the row of ``features`` of each pair; evenly spaced ones are sliced. Shape: (M,)
        chunk: rows read at a time.

    Raises:
        InputError: the shapes, types or rows do not fit.
    """

    def __init__(self, side: str, features: Features, rows: np.ndarray, chunk: int) -> None:
        if features.ndim != 2 or features.dtype not in (np.float16, np.float32, np.float64):
            raise InputError(
                f"the {side} features must be a matrix of floating-point numbers, one row each, "
                f"not {features.dtype} of shape {features.shape}"
            )
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
            raise InputError(
                f"the {side} rows must be one whole number for each of at least one pair, "
                f"not {rows.dtype} of shape {rows.shape}"
            )
        if rows.min() < 0 or rows.max() >= len(features):
            raise InputError(
                f"the {side} rows run from {rows.min()} to {rows.max()}, "
                f"but there are {len(features)} {side} features"
            )
        if chunk < 1:
            raise InputError(f"chunk is {chunk}; read at least one row at a time")
        self.side, self.span = side, Span(len(rows), chunk)
        in_files = isinstance(features, ShardedRows)
        even = None if in_files else _even_slice(rows)
        self._rows = rows if even is None else None
        self._features = features if even is None else features[even]

    @property
    def width(self) -> int:
        return self._features.shape[1]

    def row(self, pair: int) -> np.ndarray:
        """The features of one pair in float64. Shape: (d,)"""
        row = pair if self._rows is None else self._rows[pair]
        # By way of float32, which is how the chunks are read.
        return self._features[row].astype(np.float32).astype(np.float64)

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Each chunk of this rank's pairs, and their features. Shape: (chunk, d)

        A chunk is valid until the next one is asked for: they may share a buffer.
        """
        # Buffers of torch, whose place in memory never changes how numbers are added up.
        most = min(self.span.chunk, len(self.span))
        if isinstance(self._features, ShardedRows):
            assert self._rows is not None
            read = torch.empty(most, self.width)
            for pairs in self.span.chunks():
                block = read[: pairs.stop - pairs.start]
                self._features.read(self._rows[pairs], block.numpy())
                yield pairs, block
            return
        source = _as_tensor(self._features)
        gather, convert = self._rows is not None, source.dtype != torch.float32
        gathered = source.new_empty(most if gather else 0, self.width)
        converted = torch.empty(most if convert else 0, self.width)
        for pairs in self.span.chunks():
            size = pairs.stop - pairs.start
            if self._rows is None:
                block = source[pairs]
            else:
                block = gathered[:size]
                # mode="clip" writes straight into the buffer; all rows are known to exist.
                np.take(self._features, self._rows[pairs], 0, out=block.numpy(), mode="clip")
            yield pairs, converted[:size].copy_(block) if convert else block

    def checked_chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """``chunks``, refusing numbers that are not finite.

        Raises:
            InputError: names the first pair that is broken.
        """
        for pairs, block in self.chunks():
            finite = np.isfinite(block.numpy()).all(1)
            if not finite.all():
                broken = pairs.start + finite.argmin()
                raise InputError(
                    f"the {self.side} features of pair {broken} are not all finite numbers; "
                    "encode it again or leave it out"
                )
            yield pairs, block


def pair_rows(
    images: Features, texts: Features, captions: np.ndarray, chunk: int
) -> tuple[PairRows, PairRows]:
    """Both sides of M pairs. Shapes: (M, f), (C, d), (M,)

    Raises:
        InputError: the shapes, types or rows do not fit.
    """
    if len(images) != len(captions):
        raise InputError(
            f"there are {len(images)} images but {len(captions)} captions: give one for each image"
        )
    rows = np.arange(len(images))
    return PairRows("image", images, rows, chunk), PairRows("text", texts, captions, chunk)


class Candidates:
    """Joint features of M pairs: an image's features followed by its caption's.

    Each side is centred by its mean over the pairs and divided by one number, so that its mean
    squared norm is 1 and neither side dominates, whatever its size. A side that is the same for all
    pairs tells nothing apart and counts as zero. The joint mean is therefore zero, and the mean
    squared norm is 2.

    The features are not copied: they are standardised as they are read, so that a million pairs in
    files need no more memory than a few numbers each. Products are taken in float32; means, norms
    and sums in float64. Under torchrun, each rank reads the pairs of its ``span``.

    >>> import numpy as np
    >>> images, texts = np.eye(3, dtype=np.float32), np.eye(6, dtype=np.float32)
    >>> candidates = Candidates(images, texts, captions=np.array([0, 2, 4]))
    >>> len(candidates), candidates.row(0).shape, candidates.norms().round(3).tolist()
    (3, (9,), [2.0, 2.0, 2.0])

    Args:
        images: image features. Shape: (M, f)
        texts: caption features. Shape: (C, d)
        captions: the row of ``texts`` that belongs to each image. Shape: (M,)
        chunk: pairs read at a time.

    Raises:
        InputError: the lengths do not fit, or a number is not finite.
    """

    def __init__(
        self, images: Features, texts: Features, captions: np.ndarray, chunk: int = CHUNK
    ) -> None:
        sides = pair_rows(images, texts, captions, chunk)
        self._images, self._texts = map(_Standardised, sides)
        self.span = sides[0].span

    def __len__(self) -> int:
        return self.span.pairs

    @property
    def width(self) -> int:
        """The length of a joint feature, f + d."""
        return sum(self.widths)

    @property
    def widths(self) -> tuple[int, int]:
        """f and d."""
        return self._images.rows.width, self._texts.rows.width

    def norms(self) -> np.ndarray:
        """The squared norm of every joint feature of the span. Shape: (span,)"""
        return self._images.norms + self._texts.norms

    def dot(self, vector: np.ndarray) -> np.ndarray:
        """Inner products of those of the span with one: one pass. Shape: (f + d,) -> (span,)"""
        image, text = np.split(vector, [self._images.rows.width])
        return self._images.dot(image) + self._texts.dot(text)

    def row(self, pair: int) -> np.ndarray:
        """The joint feature of any pair. Shape: (f + d,)"""
        return np.concatenate([self._images.row(pair), self._texts.row(pair)])

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Each chunk's pairs and their joint features: one pass. Shape: (chunk, f + d)"""
        sides = zip(self._images.blocks(), self._texts.blocks(), strict=True)
        for (pairs, image), (_, text) in sides:
            yield pairs, torch.cat([image, text], 1)

    def sides(self, joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Joint features as image and caption features, no longer standardised.

        Shape: (n, f + d) -> (n, f), (n, d)
        """
        image, text = np.split(joint, [self._images.rows.width], axis=1)
        return self._images.undone(image), self._texts.undone(text)


class _Standardised:
    """One side, centred by its mean and scaled to a mean squared norm of 1 as it is read."""

    def __init__(self, rows: PairRows) -> None:
        self.rows, span = rows, rows.span
        sums = span.sums(rows.width)
        for pairs, block in rows.checked_chunks():
            span.add(sums, pairs, block.numpy().sum(0, dtype=np.float64))
        self.mean = span.total(sums) / span.pairs
        self.norms, sums = np.empty(len(span)), span.sums(1)
        for pairs, block in rows.chunks():
            centred = block.numpy() - self.mean
            self.norms[span.here(pairs)] = norms = np.einsum("ij,ij->i", centred, centred)
            span.add(sums, pairs, norms.sum(keepdims=True))
        spread = span.total(sums).item() / span.pairs
        # Deviations below the resolution of float32 are rounding: the side is constant.
        resolution = np.square(np.finfo(np.float32).eps * self.mean).sum()
        self.scale = spread**-0.5 if spread > resolution else 0.0
        self.norms *= self.scale**2

    def dot(self, vector: np.ndarray) -> np.ndarray:
        span = self.rows.span
        if not self.scale:
            return np.zeros(len(span))
        # scale (x - mean)ᵀ vector, without centring x.
        weight = torch.from_numpy(self.scale * vector).float()
        products = torch.empty(len(span))
        for pairs, block in self.rows.chunks():
            torch.mv(block, weight, out=products[span.here(pairs)])
        return products.numpy() - self.mean @ weight.numpy().astype(np.float64)

    def row(self, pair: int) -> np.ndarray:
        return self.scale * (self.rows.row(pair) - self.mean)

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        mean = torch.from_numpy(self.mean).float()
        for pairs, block in self.rows.chunks():
            yield pairs, self.scale * (block - mean)

    def undone(self, standardised: np.ndarray) -> np.ndarray:
        """The features of which these are the standardised ones, in float32."""
        spread = standardised / self.scale if self.scale else np.zeros_like(standardised)
        return (self.mean + spread).astype(np.float32)


def _even_slice(rows: np.ndarray) -> slice | None:
    """The slice that gives these rows, if they are evenly spaced and ascend.

    >>> _even_slice(np.array([1, 3, 5]))
    slice(1, 6, 2)
    """
    first, last = int(rows[0]), int(rows[-1])
    step = int(rows[1]) - first if len(rows) > 1 else 1
    if step < 1 or not np.array_equal(rows, np.arange(first, first + step * len(rows), step)):
        return None
    return slice(first, last + 1, step)


def _as_tensor(array: np.ndarray) -> Tensor:
    with warnings.catch_warnings():
        # torch warns that a read-only array must not be written to; nothing here does.
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)
