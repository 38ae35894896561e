from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from pydantic import Field

from lors.config import Config, MatchingOptions
from lors.config.describing import described, sections
from lors.config.names import MATCHERS
from lors.config.options import options_of
from lors.config.types import Count
from lors.system.errors import InputError

EVERY = [setting for section in sections() for setting in section.settings]


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All settings of a configuration by dotted name."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_every_setting_has_a_meaning() -> None:
    assert [setting.name for setting in EVERY if not setting.meaning] == []


def test_every_setting_is_described_with_its_default() -> None:
    usual = dict(leaves(Config().model_dump(mode="json")))
    del usual["expected"]
    trajectory = [s for section in described("matching.trajectory") for s in section.settings]
    told = {s.name: s.default for s in EVERY if not s.name.startswith(("matching.", "expected."))}
    told |= {s.name: s.default for s in trajectory} | {"matching.kind": "trajectory"}
    assert {name: yaml.safe_load(text) for name, text in told.items()} == usual


@pytest.mark.parametrize("kind", list(MATCHERS))
def test_every_matcher_has_its_options(kind: str) -> None:
    names = {s.name for each in described(f"matching.{kind}") for s in each.settings}
    assert names >= {f"matching.{name}" for name in options_of(kind).model_fields} - {
        "matching.kind"
    }


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("distill.budget", "integer > 0"),
        ("data.holdout", "number > 0, < 0.5"),
        ("encoder.scope", "heads | image | all"),
        ("similarity.kind", "identity | diagonal | lowrank | full | fixed | lowrank-parts"),
        ("evaluate.legacy", "true | false"),
        ("data.root", "path | null"),
        ("distill.fixed", "list of (images | texts | similarity | rates)"),
        ("data.pairs", "mapping from train | val | test to integer > 0"),
        ("matching.phases", "list of {min_start_epoch, max_start_epoch, last_epoch, above}"),
        ("experts.text_rate", "number > 0 | null"),
        ("seed", "integer"),
    ],
)
def test_types_are_words_for_people(name: str, type_: str) -> None:
    ((setting,),) = [section.settings for section in described(name)]
    assert setting.type == type_


def test_a_section_has_the_sections_within_it() -> None:
    assert [section.name for section in described("distill")] == [
        "distill",
        "distill.learning_rates",
    ]
    assert {section.name for section in described("matching")} == {
        "matching",
        *(f"matching.{kind}" for kind in MATCHERS),
    }


def test_a_matcher_of_a_users_own_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    class Options(MatchingOptions):
        """Everything should be blue."""

        shade: Count = Field(3, description="how blue")

    monkeypatch.setitem(MATCHERS._own, "blue", type("Blue", (), {"Options": Options}))
    (section,) = described("matching.blue")
    assert section.about == "Everything should be blue."
    (shade,) = section.settings
    assert (shade.name, shade.default, shade.meaning) == ("matching.shade", "3", "how blue")


def test_a_misspelt_name_has_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"did you mean 'distill\.budget'"):
        described("distill.bugdet")
