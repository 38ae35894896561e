from __future__ import annotations

import math

import pytest
import torch

from lors.config import DistillConfig
from lors.distillation.diagnosis import check_finite
from lors.distillation.loop import distill
from lors.distillation.state import State
from lors.sets.synthetic import SyntheticPairs
from lors.system.errors import DivergedError, LorsError
from tests.distillation.toys import Pull, state

ONE = torch.tensor(1.0)


def ready(gradient: float = 1.0) -> State:
    """Three pairs that differ, with the same gradient everywhere, before their first step."""
    numbers = torch.arange(6.0).view(3, 2)
    made = State(SyntheticPairs(numbers, numbers.clone()), DistillConfig(), seed=0)
    for tensor in made.synthetic.parameters():
        tensor.grad = torch.full_like(tensor, gradient)
    return made


def test_finite_numbers_are_let_through() -> None:
    assert check_finite(ready(), ONE) == 1.0


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_refused(loss: float) -> None:
    with pytest.raises(DivergedError, match=r"the matching loss turned non-finite") as error:
        check_finite(ready(), torch.tensor(loss))
    assert error.value.part == "rates"  # nothing has jumped: there was no step


@pytest.mark.parametrize("part", ["images", "texts", "rates"])
def test_a_gradient_that_is_not_finite_is_named(part: str) -> None:
    broken = ready()
    gradient = broken.synthetic.get_parameter(part).grad
    assert gradient is not None
    gradient.view(-1)[-1] = math.nan
    with pytest.raises(DivergedError, match=rf"the gradient of {part} turned non-finite"):
        check_finite(broken, ONE)


def test_gradients_that_are_all_zero_are_refused() -> None:
    with pytest.raises(DivergedError, match=r"every gradient turned zero at iteration 0"):
        check_finite(ready(0.0), ONE)


@pytest.mark.parametrize("part", ["images", "texts"])
@pytest.mark.parametrize("factor", [0.0, 1e-30])
def test_pairs_that_are_all_alike_are_blamed_on_the_data(part: str, factor: float) -> None:
    alike = ready(0.0)
    alike.synthetic.get_parameter(part).data.mul_(factor)
    with pytest.raises(LorsError, match=rf"because the {part} that the set starts with are all"):
        check_finite(alike, ONE)
    alike.iteration = 1  # what they became is not the fault of the data
    with pytest.raises(DivergedError):
        check_finite(alike, ONE)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_part_that_jumped_is_named(optimizer: str) -> None:
    run = state(4, learning_rates={"images": 1e20, "texts": 1e-3}, optimizer=optimizer)
    message = r"images moved too far in one step: lower distill\.learning_rates\.images"
    with pytest.raises(DivergedError, match=message) as error:
        distill(run, Pull())
    assert error.value.part == "images"


@pytest.mark.parametrize(
    ("loss", "broken", "message"),
    [
        (math.nan, (), r"matching loss turned non-finite at iteration 2; .*inner_rate"),
        (
            1.0,
            ("texts",),
            r"gradient of texts turned non-finite at iteration 2; .*inner rates 0\.1",
        ),
    ],
)
def test_a_run_that_turns_non_finite_names_the_culprit_and_keeps_its_state(
    loss: float, broken: tuple[str, ...], message: str
) -> None:
    class Break(Pull):
        def backward(self, synthetic: SyntheticPairs, generator: torch.Generator) -> float:
            value = super().backward(synthetic, generator)
            if run.iteration < 2:
                return value
            for part in broken:
                synthetic.get_parameter(part).grad = torch.full((3, 2), torch.inf)
            return loss

    saved: list[int] = []
    run = state(learning_rates={"images": 0.01, "texts": 0.01})
    run.synthetic.images.data.fill_(5.0)
    with pytest.raises(DivergedError, match=message):
        distill(run, Break(), checkpoint=lambda: saved.append(run.iteration))
    assert saved == [0]
    assert all(p.isfinite().all() for p in run.synthetic.parameters())
