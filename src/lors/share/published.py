"""A set as one file for the published code of LoRS, RepBlend and PTM-ST."""

from __future__ import annotations

from pathlib import Path

from lors.files.published import write_published_set
from lors.sets.distilled import DistilledSet
from lors.sets.published import PUBLISHED, published
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent

__all__ = ["export_published"]


def export_published(
    distilled: DistilledSet, out: str | Path, progress: Progress | None = None
) -> None:
    """Write what their scripts read: a dictionary of tensors, by ``torch.save``.

    Images are normalised by CLIP's mean and deviation, and rates are those of their halved loss. An
    imported set is written as it was read, every number.

    >>> pixels = lors.distill(lors.Pairs({"source": "scenes", "pairs": {"train": 60}}), pairs=9,
    ...     method="random", encoder=lors.Encoder(image_size=8, scope="image"), progress=False,
    ...     evaluate={"epochs": 1, "seeds": 1}, tried_rates=[0.1])
    >>> export_published(pixels, "published.pt")
    >>> lors.import_set("published.pt", like="tiny", overrides=["encoder.text_dim=64"]).images.shape
    torch.Size([9, 3, 8, 8])

    Args:
        distilled: a set of pixels.
        out: the file, which must not exist.
        progress: is told of what their code cannot know.

    Raises:
        InputError: the file is taken, or the set has no pixels, or tokens for texts.
    """
    path, progress = Path(out), progress or Silent()
    if path.exists():
        raise InputError(f"{str(path)!r} is there already: choose another --out, or delete it")
    content = published(distilled)
    if distilled.text_standard is not None or distilled.image_standard is not None:
        progress.say(
            "Warning: this set was made for networks that standardise embeddings, and the "
            "published code does not: there it may be worth less. encoder.standardise=false makes "
            "one for it."
        )
    if not distilled.config.loss.endswith(PUBLISHED):
        progress.say(
            f"The set was made for the loss {distilled.config.loss}; the published code's is half "
            "of it, so the rates are written doubled."
        )
    write_published_set(path, content)
