"""The finder: photos encoded once, and the models that search them by words."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lors.data.pairs import Item
from lors.runs.opened import Run
from lors.share.retriever import Retriever
from lors.share.search.embedded import embedded_photos
from lors.share.search.models import full_data_retriever, set_retriever
from lors.share.search.photos import folder_photos, run_photos
from lors.system.errors import InputError
from lors.system.progress import Progress, Silent
from lors.system.showing import showing_progress

__all__ = ["DISTILLED", "FULL", "Finder", "Match", "search"]

DISTILLED, FULL = "distilled set", "full data"


@dataclass(frozen=True)
class Match:
    """A photo that was found.

    Args:
        place: its number among the photos that were searched.
        name: its file below the folder, or its name in the data.
        score: the cosine between the photo and the words.
        caption: its first caption, where the data has captions.
    """

    place: int
    name: str
    score: float
    caption: str = ""


class Finder:
    """Finds photos by words, with one or more models.

    Args:
        photos: what to search.
        models: by name; all embed photos and words.
        progress: reports long-running work.

    ``photos`` holds those that can be decoded, and ``unreadable`` counts the others.

    Raises:
        InputError: no photo can be read.
    """

    def __init__(
        self,
        photos: Sequence[Item],
        models: Mapping[str, Retriever],
        progress: Progress | None = None,
    ) -> None:
        progress = progress or Silent()
        embedded = {
            name: embedded_photos(photos, model, progress) for name, model in models.items()
        }
        places = sorted(set.intersection(*(set(found) for found in embedded.values())))
        self.unreadable = len(photos) - len(places)
        if self.unreadable:
            what = "photo" if self.unreadable == 1 else "photos"
            progress.say(f"Skipped {self.unreadable:,} {what} that cannot be read.")
        if not places:
            raise InputError("none of the photos can be read")
        self.models = dict(models)
        self.photos = [photos[place] for place in places]
        self._embeddings: dict[str, Tensor] = {
            name: torch.stack([found[place] for place in places])
            for name, found in embedded.items()
        }
        self._lock = threading.Lock()  # tokenisers are not made for several threads

    @classmethod
    def of_folder(
        cls,
        folder: str | Path,
        models: Mapping[str, Retriever],
        progress: Progress | None = None,
    ) -> Finder:
        """A finder of the photos below a folder."""
        progress = progress or Silent()
        return cls(folder_photos(folder, progress), models, progress)

    @classmethod
    def of_run(
        cls,
        run: Run | Retriever,
        photos: str | Path | None = None,
        full: bool = False,
        split: str = "test",
        progress: Progress | None = None,
    ) -> Finder:
        """A finder with the model trained on the set of a run.

        Args:
            run: the run; or a retriever, which then is the only model.
            photos: a folder; default: the run's own data.
            full: whether to search with the model trained on all real pairs, too.
            split: of the run's own data.
            progress: reports long-running work.
        """
        progress = progress or Silent()
        if isinstance(run, Retriever):
            if photos is None:
                raise InputError("a retriever alone has no photos of its own: give a folder")
            if full:
                raise InputError("a retriever alone does not know the full data: give its run")
            return cls.of_folder(photos, {DISTILLED: run}, progress)
        models = {DISTILLED: set_retriever(run, progress)}
        if full:
            models[FULL] = full_data_retriever(run, progress)
        if photos is not None:
            return cls.of_folder(photos, models, progress)
        heard = Silent() if full else progress  # the full-data model has told of the data
        return cls(run_photos(run.config.data, split, heard), models, progress)

    def embeddings(self, model: str) -> Tensor:
        """The photos in the joint space of a model. Shape: (M, d)"""
        return self._embeddings[model]

    def find(self, query: str, count: int = 10) -> dict[str, list[Match]]:
        """The photos that fit a query best, best first, by model."""
        if not query.strip():
            raise InputError("give one or more words to search for")
        if count < 1:
            raise InputError(f"count is how many photos to find: give 1 or more, not {count}")
        with self._lock:
            found = {
                name: model.search(query, self._embeddings[name], count)
                for name, model in self.models.items()
            }
        return {
            name: [self._match(place, score) for place, score in matches]
            for name, matches in found.items()
        }

    def _match(self, place: int, score: float) -> Match:
        photo = self.photos[place]
        return Match(place, photo.name, score, photo.captions[0] if photo.captions else "")


def search(
    run: str | Path | Run | Retriever,
    query: str,
    photos: str | Path | None = None,
    *,
    count: int = 10,
    split: str = "test",
    progress: Progress | bool | None = None,
) -> list[Match]:
    """Find photos by words, with the model trained on the set of a run.

    >>> import lors
    >>> _ = lors.run(lors.load_config("tiny"), "runs/tiny", False, references=False)
    >>> found = search("runs/tiny", "a red circle", count=3, progress=False)
    >>> len(found), found[0].score >= found[1].score, found[0].caption != ""
    (3, True, True)

    Args:
        run: a run directory, a set, or a retriever; or one of them opened.
        query: in words.
        photos: a folder of images, at any depth; default: the run's own data.
        count: how many to find.
        split: of the run's own data: train, val or test.
        progress: True, False, or an object that reports long-running work.

    Raises:
        InputError: there are no photos, or the run has no encoders for photos and words.
    """
    with showing_progress(progress) as shown:
        opened = run if isinstance(run, (Run, Retriever)) else open_run(run, (), shown)
        folder = None if photos is None else Path(photos).expanduser()
        finder = Finder.of_run(opened, folder, split=split, progress=shown)
        return finder.find(query, count)[DISTILLED]


def open_run(
    path: str | Path, overrides: Sequence[str] = (), progress: Progress | None = None
) -> Run | Retriever:
    """What can search: a run directory, a set, or a retriever.

    Raises:
        InputError: it is none of these, or the data behind it consists of embeddings.
    """
    from lors.files.artifacts import open_artifact
    from lors.share.retriever import KIND

    if Path(path).is_file():
        with open_artifact(Path(path)) as (header, _):
            if header["kind"] == KIND:
                return Retriever.load(path)
    run = Run(path, overrides, progress)
    if run.distilled.given:
        raise InputError(
            f"{str(path)!r} was made from embeddings: lors does not know what encoded them, so it "
            "cannot encode photos or words. Search works with runs on photos, e.g. of the preset "
            "'photos'"
        )
    return run
