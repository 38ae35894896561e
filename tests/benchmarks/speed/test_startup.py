from __future__ import annotations

from benchmarks.speed.startup import PLAIN, help_text


def test_both_print_the_same_help() -> None:
    ours, plain = help_text("-m", "lors"), help_text("-c", PLAIN)
    assert "distill" in ours
    assert ours.partition("\n")[2] == plain.partition("\n")[2]  # the first line names the program
