from __future__ import annotations

import sys

import pytest

from benchmarks.speed.startup import PLAIN, help_text


def test_both_print_the_same_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second one here, where what it imports is imported already."""
    ours = help_text("-m", "lors")
    monkeypatch.setattr(sys, "argv", ["-c", "--help"])
    with pytest.raises(SystemExit, match="0"):
        exec(PLAIN, {})
    plain = capsys.readouterr().out
    assert "distill" in ours
    assert ours.partition("\n")[2] == plain.partition("\n")[2]  # the first line names the program
