from __future__ import annotations

from pathlib import Path

from lors.config import load_config
from lors.experts import experts_of
from lors.matching.second_order import DERIVATIVES
from lors.runs.plan import plan
from lors.setting import Setting
from lors.starts import start_pairs


def test_a_plan_knows_the_sizes_of_the_run(bench: Setting) -> None:
    facts = plan(bench.config)
    image, text = bench.flat.sides
    assert facts["parameters"] == f"{image:,} image side + {text:,} text side"
    assert facts["synthetic pairs"].startswith(f"{len(start_pairs(bench))},")
    assert facts["numbers per pair"].startswith(f"{start_pairs(bench).pair_numbers():,} ")
    store = experts_of(bench)
    size = sum(store.path(i).stat().st_size for i in range(2))
    stated = float(facts["expert storage"].split()[0]) * 1e6
    assert abs(stated - size) < 0.02 * size


def test_every_scope_and_space_can_be_planned(tiny_bert: Path) -> None:
    heads = ["encoder.scope=heads", "encoder.image_head=linear"]
    both = [f"encoder.text=transformers:{tiny_bert}", "encoder.scope=all"]
    for overrides in (heads, [*heads, "encoder.space=features"], ["encoder.text=bert"], both):
        facts = plan(load_config("tiny", overrides))
        how = "those of linear heads" if "encoder.scope=heads" in overrides else "central"
        assert f"3 inner steps of 5, second derivatives: {how}" in facts["one iteration"]
        assert facts["peak memory"].endswith("B")


def test_every_derivative_can_be_planned() -> None:
    for derivative in DERIVATIVES:
        facts = plan(load_config("tiny", [f"matching.derivative={derivative}"]))
        assert facts["one iteration"].endswith(derivative)


def test_unrolling_is_planned_to_take_memory_for_every_step() -> None:
    def memory(gradient: str, steps: int) -> float:
        settings = [f"matching.gradient={gradient}", f"matching.steps={steps}"]
        settings += ["encoder.image_size=64", "matching.batch_size=8"]
        _, number, unit = plan(load_config("tiny", settings))["peak memory"].split()
        return float(number) * {"MB": 1, "GB": 1000}[unit]

    assert memory("unrolled", 100) > 2 * memory("exact", 100)
