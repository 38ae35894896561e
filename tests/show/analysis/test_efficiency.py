from __future__ import annotations

import pytest

from lors.config import load_config
from lors.show.analysis.efficiency import efficiency
from lors.system.errors import InputError


def test_a_learned_similarity_against_the_identity() -> None:
    plain, learned = efficiency(load_config("tiny"), rounds=2)
    assert (plain["similarity"], learned["similarity"]) == ("identity", "lowrank")
    assert (plain["pairs"], learned["pairs"]) == (7, 7)
    assert plain["memory_mb"] == pytest.approx(learned["memory_mb"], rel=0.2)
    assert learned["more_seconds"] == pytest.approx(learned["seconds"] - plain["seconds"])


def test_mistakes_are_sentences() -> None:
    with pytest.raises(InputError, match="nothing to compare"):
        efficiency(load_config("tiny", ["similarity.kind=identity"]))
