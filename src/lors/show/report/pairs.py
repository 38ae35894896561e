"""The pairs of a set for looking at: pictures, nearest captions, and what became of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lors.runs.opened import Run
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.setting.neighbours import nearest_captions, nearest_images
from lors.show.report.album import CRISP, Album
from lors.system.errors import LorsError

__all__ = ["PairView"]

SHOWN = 1000
"""Of a larger set, the first pairs stand for all: nobody looks at more, and files stay small."""
NEAREST = {"before": 1, "after": 3}
"""How many captions are shown: a text begins as one, and may end among several."""

Looks = list[dict[str, Any]]


class PairView:
    """What a page shows of the pairs of a set.

    Args:
        run: whose pairs.
        similarity: S between them. Shape: (N, N)

    ``missing`` says why the real pairs cannot be shown, if they cannot.
    """

    def __init__(self, run: Run, similarity: np.ndarray) -> None:
        self.run, self.album = run, Album()
        self.count = min(len(run.distilled), SHOWN)
        self.similarity = similarity[: self.count, : self.count]
        self.missing = ""
        self.setting = self._real()

    def content(self) -> dict[str, Any]:
        """The pairs as the page's script takes them."""
        after = self._looks(self.run.distilled.pairs, "after")
        before: Looks = []
        if self.setting is not None and self.run.config.selection.kind is None:
            before = self._looks(self.run.start, "before")
        moved = self._moved() if before else None
        items = [
            {
                "after": after[i],
                "before": before[i] if before else None,
                "moved": None if moved is None else moved[i],
                **self._similarities(i),
            }
            for i in range(self.count)
        ]
        return {
            "items": items,
            "captions": self.album.captions(),
            "pictures": self.album.pictures(),
            "crisp": (self.run.config.encoder.image_size or 0) <= CRISP,
        }

    def _real(self) -> Setting | None:
        """The real pairs, if they are still where the run found them."""
        try:
            setting = self.run.setting
            setting.real  # noqa: B018
            return setting
        except (LorsError, OSError) as error:
            self.missing = str(error)
            return None

    def _looks(self, pairs: SyntheticPairs, when: str) -> Looks:
        """For each pair, a picture or what stands in for it, and the nearest captions."""
        looks = self._pictures(pairs, when)
        for look, texts in zip(looks, self._texts(pairs, NEAREST[when]), strict=True):
            look["texts"] = texts
        return looks

    def _pictures(self, pairs: SyntheticPairs, when: str) -> Looks:
        if self.run.config.encoder.space == "pixels":
            pixels = replace(self.run.distilled, pairs=pairs).pixels()[: self.count].cpu().numpy()
            numbers = [self.album.picture((when, i), p) for i, p in enumerate(pixels)]
            return [{"picture": number, "name": ""} for number in numbers]
        if self.setting is None:
            return [{"picture": None, "name": ""} for _ in range(self.count)]
        found = nearest_images(self.setting, pairs.images[: self.count])
        real = self.setting.pairs.splits["train"].images
        has_pixels = real.dtype == np.uint8
        return [
            {
                "picture": self.album.picture(index, real[index]) if has_pixels else None,
                "name": f"real image {index}, cosine {cosine:.2f}",
            }
            for index, cosine in zip(found.index[:, 0].tolist(), found.cosine[:, 0], strict=True)
        ]

    def _texts(self, pairs: SyntheticPairs, most: int) -> list[list[tuple[int, float]]]:
        """The nearest captions of each text with their cosines; the same words count once."""
        if self.setting is None:
            return [[] for _ in range(self.count)]
        found = nearest_captions(self.setting, pairs.texts[: self.count], most)
        captions = self.setting.pairs.splits["train"].captions
        texts = []
        for indices, cosines in zip(found.index.tolist(), found.cosine.tolist(), strict=True):
            near: dict[int, float] = {}
            for index, cosine in zip(indices, cosines, strict=True):
                words = captions[index] if captions else f"text {index} of the training split"
                near.setdefault(self.album.caption(words), round(cosine, 3))
            texts.append(list(near.items()))
        return texts

    def _moved(self) -> list[float]:
        """How far each text moved, relative to its length at the start."""
        start, end = (
            pairs.texts[: self.count].detach().float().cpu().flatten(1)
            for pairs in (self.run.start, self.run.distilled.pairs)
        )
        distance = torch.linalg.vector_norm(end - start, dim=1)
        length = torch.linalg.vector_norm(start, dim=1).clamp_min(1e-12)
        return (distance / length).nan_to_num().tolist()

    def _similarities(self, i: int) -> dict[str, Any]:
        """S of a pair with itself, and of its image with the text that is nearest but not its."""
        row = self.similarity[i].copy()
        own, row[i] = float(row[i]), -np.inf
        if self.count == 1:
            return {"diagonal": own, "partner": None, "largest": None}
        partner = int(row.argmax())
        return {"diagonal": own, "partner": partner, "largest": float(row[partner])}
