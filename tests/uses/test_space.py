from __future__ import annotations

from pathlib import Path

import pytest

from lors.system.errors import InputError
from lors.uses.space import SPACE, drawn, read_space


def test_configurations_are_different_and_the_same_for_a_seed() -> None:
    first, again, other = drawn(SPACE, 40), drawn(SPACE, 40), drawn(SPACE, 40, seed=1)
    assert first == again != other
    assert len({tuple(each.values()) for each in first}) == 40
    assert all(each[name] in SPACE[name] for each in first for name in SPACE)


def test_a_small_space_is_tried_whole() -> None:
    space = read_space({"experts.rate": [0.1, 0.3], "encoder.embed_dim": [8, 16, 32]})
    assert len(drawn(space, 40)) == 6


def test_a_file_says_what_to_try(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("experts.rate: [0.1, 0.3]\n")
    assert read_space(path) == {"experts.rate": (0.1, 0.3)}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"experts.loss": ["nce", "wbce"]}, "cannot be searched"),
        ({"experts.rat": [0.1]}, "did you mean 'experts.rate'"),
        ({"experts.rate": 0.1}, "needs a list"),
        ({}, "one per setting"),
    ],
)
def test_what_a_set_cannot_stand_in_for_is_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_space(given)  # type: ignore[arg-type]
