"""What pydantic found wrong with a setting, as a sentence for the user."""

from __future__ import annotations

import reprlib
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from lors.system.errors import shortened, suggestion

__all__ = ["sentence"]


def sentence(error: ValidationError, model: type[BaseModel], prefix: str = "") -> str:
    """The first problem that was found.

    Args:
        error: of validating ``model``.
        model: the settings.
        prefix: of the names of its settings, as in ``"matching."``.
    """
    problem = error.errors()[0]
    steps = [str(step) for step in problem["loc"] if "[" not in str(step)]  # not parts of a union
    where = shortened(prefix + ".".join(steps))
    if problem["type"] == "extra_forbidden":
        *sections, name = problem["loc"]
        section: Any = model
        for step in (step for step in sections if isinstance(step, str)):  # not places in lists
            annotation = section.model_fields[step].annotation
            section = next((a for a in get_args(annotation) if a is not None), annotation)
        return f"unknown setting {where!r}{suggestion(str(name), section.model_fields)}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should", "should")
    if where == prefix:
        return message
    return f"setting {where!r} {message} (it is {_quoted(problem['input'])})"


def _quoted(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # Python does not print numbers of over 4,300 digits
        return "a number of too many digits"
