from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lors
from lors.comparison import load_table, own_table, with_controls
from lors.comparison.remaining import remaining, remaining_lines
from lors.comparison.results import Filled
from lors.comparison.run import fill_table
from lors.system.errors import InputError
from tests.conftest import FEATURES

QUICK = (*FEATURES, "experts.count=2", "evaluate.tried_rates=[0.1]")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("controls")


@pytest.fixture(scope="module")
def filled(out: Path) -> Filled:
    table = with_controls(own_table("tiny", ["lors-wbce"], [8]))
    return fill_table(table, out, [0], QUICK, jobs=0)


def test_every_set_is_read_again_and_real_pairs_stay_what_they_are(
    filled: Filled, out: Path
) -> None:
    found = {(record.row, record.column): record for record in filled.records}
    assert len(found) == 3 * 4
    assert not any(record.failed for record in filled.records)
    for control in ("S = I", "nearest captions"):
        assert found["8 pairs", "Random"].mean == found[f"8 pairs, {control}", "Random"].mean
    plain, learned = found["8 pairs, S = I", "LoRS (wBCE)"], found["8 pairs", "LoRS (wBCE)"]
    assert plain.storage == plain.pairs == learned.pairs < learned.storage
    assert found["8 pairs", "Random, teachers' S"].storage <= 8
    assert len(list(out.glob("runs/*/distilled.safetensors"))) == 4  # none was made twice


def test_the_full_data_is_taught_where_teachers_are(filled: Filled) -> None:
    (reference,) = filled.references
    assert reference.rows == ["8 pairs"]
    assert reference.taught is not None
    assert reference.taught != reference.recall


def test_what_remains_is_written_and_told(filled: Filled, out: Path) -> None:
    head, line = remaining(filled.table, filled.records, filled.references)
    mean = {(r.row, r.column): r.mean or 0 for r in filled.records}
    ours, random = mean["8 pairs", "LoRS (wBCE)"], mean["8 pairs", "Random"]
    told = dict(zip(head, line, strict=True))
    assert told["mean recall"] == f"{ours:.1f}"
    assert told["over random pairs"] == f"{ours - random:+.1f}"
    with_identity = mean["8 pairs, S = I", "LoRS (wBCE)"] - random
    assert told["with S = I"].startswith(f"{with_identity:+.1f}")
    assert f"| {' | '.join(line)} |" in (out / "table.md").read_text("utf-8")
    assert "taught by the experts: " in (out / "table.md").read_text("utf-8")


def test_shares_are_of_the_gain_over_random_pairs() -> None:
    means = {
        ("9 pairs", "Random"): 10.0,
        ("9 pairs", "Random, teachers' S"): 14.0,
        ("9 pairs", "CLIP score, teachers' S"): 20.0,
        ("9 pairs", "AMD"): 30.0,
        ("9 pairs, S = I", "AMD"): 5.0,
        ("9 pairs, nearest captions", "AMD"): 25.0,
        ("9 pairs", "DM"): 9.0,
    }
    methods = ["AMD", "DM", "Random", "Random, teachers' S"]
    _, amd, dm = remaining_lines(means, ["9 pairs"], methods, {"9 pairs": (29.0, 32.0)})
    assert amd[1:6] == ["30.0", "+20.0", "+16.0 (80 %)", "+10.0 (50 %)", "-5.0 (-25 %)"]
    assert amd[6:] == ["+15.0 (75 %)", "+1.0", "-2.0"]
    assert dm[1:6] == ["9.0", "-1.0", "-5.0", "-11.0", "–"]


def test_a_finished_comparison_can_be_controlled_later(out: Path, filled: Filled) -> None:
    again = fill_table(filled.table, out, [0], QUICK, jobs=0)
    assert again.records == filled.records
    assert with_controls(load_table("leaderboard", "small")).rows[-1].control == "captions"


def test_controls_work_on_arrays() -> None:
    draw = np.random.default_rng(0)
    shared = draw.normal(size=(120, 4))
    images, texts = (shared @ draw.normal(size=(4, size)) for size in (12, 10))
    found = lors.compare(
        *(images, texts),
        methods=["k-center"],
        pairs=9,
        seeds=1,
        controls=True,
        tried_rates=[0.3],
        progress=False,
        experts={"count": 1, "epochs": 4},
        evaluate={"epochs": 4, "seeds": 1},
    )
    assert set(found.to_pandas()["control"]) == {"", "identity", "captions"}
    own = [r.mean for r in found.records if (r.row, r.column) == ("9 pairs", "K-center")]
    assert found.mean("k-center") == own[0]
    assert "over taught full data" in found._repr_html_()
    assert found.remaining[1][0] == "K-center"


def test_a_table_of_times_has_no_controls() -> None:
    with pytest.raises(InputError, match="leave out --controls"):
        with_controls(load_table("time"))
