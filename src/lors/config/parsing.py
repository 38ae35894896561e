"""Reading YAML: that of the package, and that of users and strangers, with bounds."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from lors.system.errors import InputError, shortened

__all__ = ["CONFIG_BYTES", "package_data", "parse", "read_text"]

CSafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Eight times as fast where PyYAML has it, and not to be bounded: for files of the package only."""

CONFIG_BYTES = 100_000
"""The longest configuration, and the longest override."""
NUMBER_LENGTH = 100
"""The most characters of a number."""
FLOW_DEPTH = 50
"""The most brackets within each other."""


def read_text(path: Path) -> str:
    """The text of a configuration file.

    Raises:
        InputError: it cannot be read, or is too long.
    """
    try:
        if not path.is_file():
            raise OSError("there is no such file")
        if path.stat().st_size > CONFIG_BYTES:
            raise OSError(f"a configuration has at most {CONFIG_BYTES:,} bytes")
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(
            f"cannot read the configuration {shortened(str(path))!r}: {reason}"
        ) from None


def parse(text: str, what: str) -> Any:
    """The values that a YAML text holds.

    Args:
        text: YAML.
        what: it is, for messages.

    Raises:
        InputError: it is not valid, or refers to itself, or is nested too deeply.

    >>> parse("{a: [1, 2]}", "an example")
    {'a': [1, 2]}
    """
    try:
        return yaml.load(text, _Loader)
    except RecursionError:
        raise InputError(f"{what} is not valid YAML: it is nested too deeply") from None
    except Exception as error:  # PyYAML's own, and what its constructors raise on odd values
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{what} is not valid YAML: {reason}") from None


def package_data(room: str, path: str) -> Any:
    """What a YAML file that comes with the package holds.

    >>> package_data("lors.config", "presets/own.yaml")["title"]
    'Your data: embeddings or photos'
    """
    return yaml.load((files(room) / path).read_text("utf-8"), CSafeLoader)


class _Loader(yaml.SafeLoader):
    """Plain values only. Without aliases, because a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not supported: write the value out")
        return super().compose_node(parent, index)

    def fetch_flow_collection_start(self, token: Any) -> None:
        if self.flow_level > FLOW_DEPTH:  # PyYAML takes seconds to find its own limit
            raise yaml.YAMLError("it is nested too deeply")
        super().fetch_flow_collection_start(token)

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """Bounded: reading a number takes time that grows with the square of its digits."""
        if len(node.value) > NUMBER_LENGTH:
            raise yaml.YAMLError(f"a number of {len(node.value):,} characters is too long")
        whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _Loader.construct_number)
