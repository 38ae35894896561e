from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lors import load_config
from lors.runs.folders import saved_results
from lors.system.errors import InputError
from lors.trackers.wandb import WeightsAndBiases

BLOCK, HEADER = 32768, 7


def records(path: Path) -> Iterator[Any]:
    """The records of an offline run: W&B's protocol buffers in the log format of LevelDB."""
    internal = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, place, parts = path.read_bytes(), HEADER, b""
    while place + HEADER <= len(data):
        if BLOCK - place % BLOCK < HEADER:  # too little is left of the block for a record
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + HEADER])
        parts += data[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (1, 4):  # the whole of a record, or its last part
            yield internal.Record.FromString(parts)
            parts = b""


@pytest.fixture(scope="module")
def sessions(tracked: Path) -> list[list[Any]]:
    """The records of the killed run and of the one that went on."""
    files = sorted(
        (tracked / "wandb").glob("offline-run-*/*.wandb"), key=lambda p: p.stat().st_mtime
    )
    return [list(records(path)) for path in files]


def history(session: list[Any]) -> list[dict[str, Any]]:
    return [
        {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in row}
        for row in (record.history.item for record in session if record.HasField("history"))
    ]


def test_a_resumed_run_goes_on_under_the_same_id(tracked: Path, sessions: list[list[Any]]) -> None:
    kept = (tracked / "wandb" / "run-id").read_text()
    ids = [r.run.run_id for session in sessions for r in session if r.HasField("run")]
    assert len(sessions) == 2
    assert set(ids) == {kept}


def test_it_holds_every_record(tracked: Path, sessions: list[list[Any]]) -> None:
    logged = [json.loads(line) for line in (tracked / "metrics.jsonl").open()]
    killed, resumed = ([row for row in history(session) if "loss" in row] for session in sessions)
    assert [row["iteration"] for row in killed] == [1, 2, 3]
    kept = [row for row in killed if row["iteration"] <= 2] + resumed
    for row, record in zip(kept, logged, strict=True):
        assert record.items() <= row.items()


def test_a_killed_run_is_marked_as_failed(sessions: list[list[Any]]) -> None:
    codes = [r.exit.exit_code for session in sessions for r in session if r.HasField("exit")]
    assert codes == [1, 0]


def test_it_holds_pictures_tables_and_the_configuration(
    tracked: Path, sessions: list[list[Any]]
) -> None:
    last = {name: row[name] for row in history(sessions[1]) for name in row}
    for name in ("synthetic images", "similarity"):
        assert last[f"{name}._type"] == "image-file"
    told = {u.key: json.loads(u.value_json) for r in sessions[1] for u in r.run.config.update}
    assert told["distill"]["budget"] == 8
    media = list((tracked / "wandb").glob("offline-run-*/files/media/table/results*.json"))
    table = json.loads(media[0].read_text())
    assert table["columns"][-1] == "mean"
    assert table["data"][0][-1] == pytest.approx(saved_results(tracked).distilled.mean)


def test_without_a_login_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")

    def refuses(**_: Any) -> None:
        raise wandb.errors.UsageError("No API key configured.")

    monkeypatch.setattr(wandb, "init", refuses)
    with pytest.raises(InputError, match=r"No API key configured.*WANDB_MODE=offline"):
        WeightsAndBiases(tmp_path, load_config("tiny"), 0)
