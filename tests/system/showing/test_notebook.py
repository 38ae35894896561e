"""What a notebook keeps of calls that showed their progress, after a real kernel ran it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

SETUP = """
import json, sys, time, warnings
from lors.system.showing import as_progress, showing_progress

published, publisher = [], get_ipython().display_pub
publish = publisher.publish

def counting(data, *args, **keywords):
    published.append((time.monotonic(), data))
    return publish(data, *args, **keywords)

publisher.publish = counting
"""
LOOP = """
with showing_progress() as progress:
    for step in progress.track(range(1000), "distil", 1000):
        progress.note(rate_image=0.1, loss=1 / (1 + step), recall=34.21)
        time.sleep(0.001)
"""
PUBLISHED = "print(json.dumps(published))"
SENTENCES = """
with showing_progress() as progress:
    progress.say("Warning: the recall is <b>near</b>\\nchance.")
    for step in progress.track(range(20), "tune", 20):
        if step == 10:
            warnings.warn("from Python")
        time.sleep(0.01)
    for step in progress.track(range(3), "measure", 3):
        time.sleep(0.4)
    progress.say("Going on.")
"""
NESTED = """
published.clear()
with showing_progress() as progress:
    for _ in progress.track(range(2), "train experts", 2):
        for _ in progress.track(range(3), "epoch", 3):
            with showing_progress() as same:
                assert same is progress
            time.sleep(0.2)
print(json.dumps(published))
"""
TWICE = """
with showing_progress() as progress:
    for done in (0, 2):
        for step in progress.track(range(done, 5), "distil", 5, done):
            time.sleep(0.2)
            if not done and step == 3:
                break
"""
FAILS = """
with showing_progress() as progress:
    for step in progress.track(range(100), "distil", 100):
        if step == 30:
            raise ValueError("that was wrong")
        time.sleep(0.02)
"""
FAILS_UNENTERED = FAILS.replace(
    "with showing_progress() as progress", "progress = as_progress()\nif 1"
)
ANOTHER_CELL = """
assert not progress.running
for _ in progress.track(range(4), "measure", 4):
    time.sleep(0.1)
progress.say("Said afterwards.")
"""
SILENT = """
with showing_progress(False) as progress:
    for _ in progress.track(range(5), "distil", 5):
        time.sleep(0.1)
"""
SHORT = """
with showing_progress() as progress:
    for _ in progress.track(range(10), "distil", 10):
        pass
"""
CHILD = """
!{sys.executable} -c 'import time; from lors.system.showing import showing_progress as showing; \\
    progress = showing().__enter__(); \\
    [time.sleep(0.05) for _ in progress.track(range(30), "distil", 30)]'
"""
CELLS = [SETUP, LOOP, PUBLISHED, SENTENCES, NESTED, TWICE]
CELLS += [FAILS, FAILS_UNENTERED, ANOTHER_CELL, SILENT, SHORT, CHILD]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The outputs of each cell by its source; one kernel ran them all."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp("jupyter")))
        nbclient.NotebookClient(notebook, timeout=300, allow_errors=True).execute()
    return {cell.source: cell.outputs for cell in notebook.cells}


def text(output: Any) -> str:
    """What is kept of a display: nothing but plain text."""
    assert set(output.data) == {"text/plain"}
    return str(output.data["text/plain"])


def drawings(output: Any) -> list[tuple[float, dict[str, str]]]:
    """What the kernel sent and when, as a cell printed it."""
    return list(map(tuple, json.loads(output.text)))


def test_a_loop_of_1000_items_leaves_one_short_line(outputs: dict[str, list[Any]]) -> None:
    (output,) = outputs[LOOP]
    assert re.fullmatch(r"distil 1000/1000, loss 0\.001, recall 34\.2, \d+(\.\d)? s", text(output))


def test_while_it_runs_there_is_a_bar_that_is_drawn_at_most_ten_times_a_second(
    outputs: dict[str, list[Any]],
) -> None:
    (printed,) = outputs[PUBLISHED]
    sent = drawings(printed)
    seconds = sent[-1][0] - sent[0][0]
    assert 2 < len(sent) <= 10 * seconds + 2
    row = sent[-2][1]["text/html"]
    done = re.search(r'<progress value="(\d+)" max="1000"', row)
    assert done
    assert f"{done[1]}/1000, loss 0.0" in row
    assert re.search(r"recall 34.2, rate image 0.1, \d+(\.\d)? s left<", row)
    assert sent[-2][1]["text/plain"].startswith(f"distil {done[1]}/1000, ")


def test_sentences_and_warnings_stay(outputs: dict[str, list[Any]]) -> None:
    shown, warned = outputs[SENTENCES]
    *said, measured = text(shown).splitlines()
    assert said == ["Warning: the recall is <b>near</b> chance.", "Going on."]
    assert re.fullmatch(r"measure 3/3, \d+(\.\d)? s", measured)
    assert "UserWarning: from Python" in warned.text


def test_a_track_within_another_is_a_row_below_it_and_goes_with_it(
    outputs: dict[str, list[Any]],
) -> None:
    shown, printed = outputs[NESTED]
    assert re.fullmatch(r"train experts 2/2, \d+(\.\d)? s", text(shown))
    rows = [data["text/html"] for _, data in drawings(printed)[:-1]]
    assert all(row.count("<progress") == 2 and "margin-left: 2em" in row for row in rows)


def test_work_that_went_on_after_a_stop_has_its_last_count_and_all_its_time(
    outputs: dict[str, list[Any]],
) -> None:
    (output,) = outputs[TWICE]
    seconds = re.fullmatch(r"distil 5/5, (\d+(?:\.\d)?) s", text(output))
    assert seconds
    assert float(seconds[1]) >= 1.4


@pytest.mark.parametrize("cell", [FAILS, FAILS_UNENTERED])
def test_an_exception_ends_it_and_it_says_where(outputs: dict[str, list[Any]], cell: str) -> None:
    shown, error = outputs[cell]
    assert re.fullmatch(r"distil 30/100, stopped after \d+(\.\d)? s", text(shown))
    assert error.evalue == "that was wrong"


def test_each_cell_has_an_output_of_its_own(outputs: dict[str, list[Any]]) -> None:
    (output,) = outputs[ANOTHER_CELL]
    assert re.fullmatch(r"Said afterwards\.\nmeasure 4/4, \d+(\.\d)? s", text(output))


def test_silence_leaves_nothing_nor_does_what_is_too_short_to_be_seen(
    outputs: dict[str, list[Any]],
) -> None:
    assert outputs[SILENT] == []
    assert outputs[SHORT] == []


def test_a_program_that_a_cell_starts_writes_plain_lines(outputs: dict[str, list[Any]]) -> None:
    lines = "".join(output.text for output in outputs[CHILD]).splitlines()
    assert 1 <= len(lines) <= 5
    assert lines[-1].partition(" ")[2].startswith("distil 30/30, took 0:0")
