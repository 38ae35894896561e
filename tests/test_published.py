"""The published reading against numbers that the published LoRS code computes.

``fixtures/published.safetensors`` holds, in double precision, its losses at logits of deviation 1,
4 and 14, and one TESLA iteration on two linear networks: 12 pairs, 3 inner steps of 5, rank 3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from lors.config.matchers import TrajectoryOptions
from lors.encoders import DualEncoder, FlatModel
from lors.losses import LOSSES
from lors.matching import trajectory
from lors.matching.second_order import DERIVATIVES
from lors.sets.synthetic import SyntheticPairs
from lors.similarity import LowRank

GOLDEN = load_file(Path(__file__).parent / "fixtures" / "published.safetensors")
OURS = {"wbce": "wbce-published", "nce": "ence-published", "bce": "bce-published"}


def error(found: Tensor, golden: Tensor) -> float:
    """Relative to the length of the golden numbers."""
    return ((found.view(-1) - golden.view(-1)).norm() / golden.norm()).item()


@pytest.mark.parametrize("deviation", [1, 4, 14])
@pytest.mark.parametrize("name", OURS)
def test_losses_and_their_gradients_are_those_of_the_published_code(
    name: str, deviation: int
) -> None:
    given = f"loss.{deviation}"
    similarity = "unit_similarity" if name == "bce" else "similarity"
    logits, s = (GOLDEN[f"{given}.{part}"].clone() for part in ("logits", similarity))
    value = LOSSES[OURS[name]](logits.requires_grad_(), s.requires_grad_())
    in_logits, in_similarity = torch.autograd.grad(value, (logits, s))
    assert error(value, GOLDEN[f"{given}.{name}"]) < 1e-10
    assert error(in_logits, GOLDEN[f"{given}.{name}.d_logits"]) < 1e-10
    if name != "bce":  # of which that gradient is not among the numbers
        assert error(in_similarity, GOLDEN[f"{given}.{name}.d_similarity"]) < 1e-10


def iteration(loss: str, ratio: str, gradient: str, way: str | None) -> dict[str, Tensor]:
    """The iteration of the golden numbers: the loss and what every part gains."""
    model = DualEncoder(nn.Linear(7, 4), nn.Linear(6, 4), temperature=0.07).double()
    names = ("image_weight", "image_bias", "text_weight", "text_bias")
    start = torch.cat([GOLDEN[name].view(-1) for name in names])
    target = torch.cat([GOLDEN[f"target_{name}"].view(-1) for name in names])
    similarity = LowRank(12, 3, alpha=3.0).double()
    omega, right = GOLDEN["omega"], GOLDEN["right"]
    if loss == "bce":  # which knows only an S in [0, 1] there
        omega, right = omega.clamp(0.1, 0.9), torch.zeros_like(right)
    values = {"omega": omega, "left": GOLDEN["left"], "right": right}
    similarity.load_state_dict(values)
    pairs = SyntheticPairs(GOLDEN["images"], GOLDEN["texts"], similarity, GOLDEN["rates"].tolist())
    batches = pairs.gather(list(GOLDEN["batches"]), pairs.images.__getitem__)
    options = TrajectoryOptions(gradient=gradient, ratio=ratio)
    found = trajectory.meta_gradient(
        FlatModel(model),
        LOSSES[OURS[loss]],
        options,
        start,
        target,
        batches,
        pairs.rates,
        None if way is None else DERIVATIVES[way],
    )
    outputs = [tensor for batch in batches for tensor in batch]
    torch.autograd.backward(outputs, [slope for batch in found.batches for slope in batch])
    gains = {
        name.rpartition(".")[2]: p.grad
        for name, p in pairs.named_parameters()
        if p.grad is not None
    }
    return {**gains, "rates": found.rates, "loss": found.objective}


@pytest.mark.parametrize("way", ["double", "forward", "kept", None])
@pytest.mark.parametrize("ratio", ["separate", "merged"])
@pytest.mark.parametrize("loss", OURS)
def test_an_iteration_is_that_of_the_published_code(
    monkeypatch: pytest.MonkeyPatch, loss: str, ratio: str, way: str | None
) -> None:
    ends: list[Tensor] = []
    whole = trajectory.distance_ratio

    def noting(theta: Tensor, *args: Any, **keywords: Any) -> Tensor:
        ends.append(theta.detach())
        return whole(theta, *args, **keywords)

    monkeypatch.setattr(trajectory, "distance_ratio", noting)
    ours = iteration(loss, ratio.replace("merged", "merged-published"), "tesla", way)
    assert ours.keys() == {"images", "texts", "omega", "left", "right", "rates", "loss"}
    for part, found in ours.items():
        golden = GOLDEN[f"{loss}.{ratio}.{part}"]
        if golden.any():
            assert error(found, golden) < 1e-10, part
        else:
            assert not found.any(), part  # that of L, where R = 0
    for end in ends:
        assert error(end, GOLDEN[f"{loss}.{ratio}.end"]) < 1e-10
    assert ends or way is None  # the closed form never makes the parameters


@pytest.mark.parametrize("gradient", ["exact", "unrolled", "tesla"])
def test_merged_published_has_the_rates_of_separate_and_the_rest_of_merged(gradient: str) -> None:
    every = {
        ratio: iteration("wbce", ratio, gradient, "double")
        for ratio in ("merged", "separate", "merged-published")
    }
    for part, found in every["merged-published"].items():
        of = "separate" if part in ("rates", "loss") else "merged"
        other = {"separate": "merged", "merged": "separate"}[of]
        assert error(found, every[of][part]) < 1e-12, part
        assert error(found, every[other][part]) > 0.01, part
