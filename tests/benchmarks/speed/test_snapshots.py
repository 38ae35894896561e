from __future__ import annotations

from benchmarks.speed.snapshots import ratios


def test_compact_experts_are_a_quarter_of_the_bytes() -> None:
    everything, compact = ratios(2, parameters=20_000)
    assert 0.99 < everything.more["bytes"] < 1.01
    assert compact.more["bytes"] < 0.25
    assert everything.more["error"] == 0
    assert 0 < compact.more["error"] < 0.003
