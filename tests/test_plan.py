from __future__ import annotations

from lors.config import load_config
from lors.plan import plan
from lors.workbench import Workbench


def test_a_plan_knows_the_sizes_of_the_run(bench: Workbench) -> None:
    facts = plan(bench.config)
    image, text = bench.flat.sides
    assert facts["parameters"] == f"{image:,} image side + {text:,} text side"
    assert facts["synthetic pairs"].startswith(f"{len(bench.start())},")
    assert facts["numbers per pair"].startswith(f"{bench.start().pair_numbers():,} ")
    store = bench.experts()
    size = sum(store.path(i).stat().st_size for i in range(2))
    stated = float(facts["expert storage"].split()[0]) * 1e6
    assert abs(stated - size) < 0.02 * size


def test_every_scope_and_space_can_be_planned() -> None:
    heads = ["encoder.scope=heads", "encoder.image_head=linear"]
    for overrides in (heads, [*heads, "encoder.space=features"], ["encoder.text=bert"]):
        facts = plan(load_config("tiny", overrides))
        assert facts["one iteration"].endswith("3 inner steps of 5")
        assert float(facts["peak memory"].split()[0]) > 0
