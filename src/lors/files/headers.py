"""What the JSON header of each kind of artefact must hold: nothing in a file is believed unchecked.

Settings beyond those named here are kept, so that a field can be added without a new format.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from lors.config import Config, EncoderConfig
from lors.config.upgrade import upgraded
from lors.system.errors import InputError, out_of_memory, suggestion

__all__ = [
    "FORMAT",
    "HEADERS",
    "NamedTrunk",
    "TrunkSize",
    "parse_header",
    "restoring",
]

FORMAT = 1
"""Version of all file formats; raised when a reader of the old one could misread a new file."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Header(BaseModel):
    """What every artefact says; files from before there were checksums have none."""

    model_config = ConfigDict(extra="allow", strict=True)

    format: int = Field(ge=1)
    kind: str
    checksum: str | None = None


class Trunk(BaseModel):
    """How a text trunk is made again; each kind of trunk checks its own fields."""

    model_config = ConfigDict(extra="allow", strict=True)

    kind: str


class TrunkSize(Trunk):
    dim: int = Field(gt=0, le=2**31)
    fingerprint: str


class NamedTrunk(TrunkSize):
    """A trunk that is not in the file: a name of the Hub, or a folder."""

    name: str
    pooling: Literal["cls", "mean", "projected"] = "cls"
    weights: Literal["pretrained", "none"]


class SetHeader(Header):
    config: Annotated[Config, BeforeValidator(upgraded)]
    pairs: int = Field(gt=0)
    storage: Finite
    mean: list[Finite]
    std: list[Positive]
    image_trunk: str
    text_trunk: Trunk
    versions: dict[str, str]
    captions: list[str] = []
    imported: Annotated[str, Field(max_length=600)] = ""

    @field_validator("imported")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("must be a name that can be printed")
        return name

    @model_validator(mode="after")
    def _one_caption_each(self) -> SetHeader:
        if len(self.captions) not in (0, self.pairs):
            raise ValueError(f"{len(self.captions)} captions do not fit {self.pairs} pairs")
        return self


class CheckpointHeader(Header):
    iteration: int = Field(ge=0)
    best_recall: Finite | None
    best_iteration: Annotated[int, Field(ge=0)] | None = None
    slowed: dict[str, Annotated[int, Field(ge=0, le=1000)]] = {}


class ExpertHeader(Header):
    origin: dict[str, Any]
    epochs: list[Annotated[int, Field(ge=0)]] = []
    checks: list[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        [], description="of each snapshot; experts written before there were any have none"
    )
    learned_check: int | None = None

    @field_validator("epochs")
    @classmethod
    def _ascend(cls, epochs: list[int]) -> list[int]:
        if epochs != sorted(set(epochs)):
            raise ValueError("must ascend")
        return epochs


class RetrieverHeader(Header):
    encoder: EncoderConfig
    text_trunk: Trunk
    made_from: str = ""
    versions: dict[str, str]


class TrunkHeader(Header):
    terms: list[str]


HEADERS: dict[str, type[Header]] = {
    "distilled set": SetHeader,
    "checkpoint": CheckpointHeader,
    "trajectory": ExpertHeader,
    "snapshot": ExpertHeader,
    "text trunk": TrunkHeader,
    "retriever": RetrieverHeader,
}
"""Every kind of artefact that lors writes."""


def parse_header(text: str, kind: str | None, name: str) -> dict[str, Any]:
    """The header in a JSON text.

    Args:
        text: as it is in the file.
        kind: the kind that the file must have; any known one if None.
        name: the file, for messages.

    Raises:
        InputError: it is not a header, not of this kind, of a newer format, or a field is wrong.
    """
    try:
        header = Header.model_validate_json(text)
    except ValidationError:
        raise InputError(f"{name} was not written by lors: it has no header") from None
    if header.format > FORMAT:
        raise InputError(
            f"{name} has format {header.format}, but this lors reads up to {FORMAT}: upgrade lors "
            "to open it"
        )
    if kind is not None and header.kind != kind:
        raise InputError(f"{name} holds a {header.kind[:40]}, not a {kind}")
    if header.kind not in HEADERS:
        near = suggestion(header.kind[:40], HEADERS)
        raise InputError(
            f"{name} holds a {header.kind[:40]!r}, which this lors does not know{near}"
        )
    try:
        return HEADERS[header.kind].model_validate_json(text).model_dump(mode="json")
    except (ValidationError, InputError) as error:
        problem = _first_problem(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{name} is damaged or from another version of lors: {problem}") from None


def _first_problem(error: ValidationError) -> str:
    """The first thing that pydantic found wrong, in words."""
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(step) for step in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return f"{where} {message}" if where else message


@contextmanager
def restoring(path: str | Path) -> Iterator[None]:
    """Say of which file it is what goes wrong when its content is put together again.

    Raises:
        InputError: it is damaged, or cannot be used here.
    """
    try:
        yield
    except ValidationError as error:
        raise InputError(f"{str(path)!r} is damaged: {_first_problem(error)}") from None
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if out_of_memory(error):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"{str(path)!r} is damaged: {reason}") from None
    except InputError as error:
        raise InputError(f"{str(path)!r} cannot be used: {error}") from None
