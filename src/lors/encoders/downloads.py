"""Pretrained weights that must be downloaded before a configuration can be used."""

from __future__ import annotations

from typing import NamedTuple

from huggingface_hub import try_to_load_from_cache

from lors.config import EncoderConfig, names
from lors.encoders.image import hub_place
from lors.encoders.transformers_text import library
from lors.encoders.weights import LOCAL_FILES, not_downloaded
from lors.system.hub import cache_folder, hub_answers, megabytes, on_hub
from lors.system.progress import Progress

__all__ = ["announce_downloads"]


class _Needed(NamedTuple):
    """A repository of the Hub: a file that shows whether it is cached, and its weights."""

    repository: str
    sign: str
    weights: str
    revision: str | None = None

    def missing(self) -> bool:
        found = try_to_load_from_cache(self.repository, self.sign, revision=self.revision)
        return not isinstance(found, str)

    def words(self) -> str:
        size = megabytes(self.repository, self.weights, self.revision)
        return self.repository if size is None else f"{self.repository} ({size:.0f} MB)"


def announce_downloads(config: EncoderConfig, progress: Progress) -> None:
    """Say which weights are downloaded, how large they are and where they go.

    Raises:
        InputError: some are needed, and the Hub does not answer.
    """
    missing = [needed for needed in _needed(config) if needed.missing()]
    if not missing:
        return
    if not hub_answers():
        raise not_downloaded(" and ".join(needed.repository for needed in missing))
    progress.say(
        f"Downloading the weights of {' and '.join(needed.words() for needed in missing)}, once, "
        f"to {cache_folder()}. To use local files: {LOCAL_FILES}."
    )


def _needed(config: EncoderConfig) -> list[_Needed]:
    """What a configuration takes from the Hub."""
    needed = []
    if config.image_weights == "hub":
        repository, file, revision = hub_place(config.image)
        needed.append(_Needed(repository, file, file, revision))
    kind, _, name = names.TEXT_ALIASES.get(config.text, config.text).partition(":")
    if kind == "transformers" and on_hub(name) and config.text_weights == "pretrained":
        library()  # names the extra to install, before anything else that is missing
        needed.append(_Needed(name, "config.json", "model.safetensors"))
    return needed
