from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.experts import TrajectoryStore, experts_of
from lors.matching.shortcut import Shortcuts, path_shares
from lors.setting import Setting


class Given(TrajectoryStore):
    """One trajectory, the same for all experts."""

    def __init__(self, thetas: Tensor) -> None:
        self.thetas = thetas

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        return self.thetas[list(epochs)]


def test_a_straight_trajectory_is_its_own_shortcut_whatever_its_pace() -> None:
    pace = torch.tensor([0.0, 0.1, 0.7, 0.8, 1.0])[:, None]
    thetas = torch.tensor([[1.0, 2.0, 3.0, 4.0]]) + pace * torch.tensor([[5.0, -1.0, 0.0, 2.0]])
    found = Shortcuts(Given(thetas), 4, [2, 2]).snapshots(0, range(5))
    torch.testing.assert_close(found, thetas)


def test_the_shortcut_of_a_half_circle_is_its_diameter() -> None:
    angles = torch.linspace(0, math.pi, 9)
    thetas = torch.stack([-angles.cos(), angles.sin()], 1)
    found = Shortcuts(Given(thetas), 8, [2]).snapshots(0, [0, 2, 4, 8])
    expected = torch.tensor([[-1.0, 0.0], [-0.5, 0.0], [0.0, 0.0], [1.0, 0.0]])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_every_tensor_has_its_own_pace() -> None:
    """The first goes there at once, the second at the end, the third never moves."""
    thetas = torch.tensor([[0.0, 0.0, 7.0], [2.0, 0.0, 7.0], [2.0, 4.0, 7.0]])
    shares = path_shares(thetas, [1, 1, 1])
    assert shares.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    found = Shortcuts(Given(thetas), 2, [1, 1, 1]).snapshots(0, [1])
    torch.testing.assert_close(found, thetas[1:2])


def test_going_back_is_part_of_the_path() -> None:
    """There and half back: after a third of the way out, 2/9 of the path of 3 is travelled."""
    thetas = torch.tensor([[0.0], [2.0], [1.0]])
    found = Shortcuts(Given(thetas), 2, [1]).snapshots(0, [0, 1, 2])
    assert found.flatten().tolist() == pytest.approx([0, 2 / 3, 1])


def test_real_experts_keep_their_ends_and_compact_ones_keep_all_epochs(setting: Setting) -> None:
    experts = experts_of(setting)
    found = Shortcuts(experts, 3, setting.flat.sizes).snapshots(1, range(4))
    real = experts.snapshots(1, range(4))
    torch.testing.assert_close(found[[0, 3]], real[[0, 3]])
    assert not torch.equal(found[1], real[1])
    steps = found.diff(dim=0)
    first = [step[: setting.flat.sizes[0]] for step in steps]  # all in one direction
    assert torch.cosine_similarity(first[0], first[2], dim=0).item() == pytest.approx(1, abs=1e-3)
    config = load_config("tiny", ["matching.shortcut=true", "experts.compact=true"])
    assert config.expert_snapshots() == [0, 1, 2, 3]
