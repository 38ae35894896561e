"""Shortcut trajectories: experts that go straight to where they end."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lors.experts import TrajectoryStore

__all__ = ["Shortcuts", "path_shares"]


def path_shares(thetas: Tensor, sizes: Sequence[int]) -> Tensor:
    """The share of its path that each weight tensor had travelled at each snapshot.

    Args:
        thetas: a trajectory. Shape: (T + 1, P)
        sizes: of the weight tensors that θ strings together; they sum to P.

    Returns:
        From 0 to 1; all 0 for a tensor that never moved. Shape: (T + 1, len(sizes))

    >>> path_shares(torch.tensor([[0.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), [1, 1])
    tensor([[0.0000, 0.0000],
            [0.7500, 0.0000],
            [1.0000, 0.0000]])
    """
    steps = [part.norm(dim=1) for part in thetas.diff(dim=0).split(list(sizes), 1)]
    travelled = torch.stack(steps, 1).cumsum(0)
    shares = travelled / torch.where(travelled[-1] > 0, travelled[-1], 1)
    return torch.cat([torch.zeros_like(shares[:1]), shares])


class Shortcuts:
    """Experts whose every weight tensor moves on a straight line, as fast as it really did.

    The snapshot of epoch t is the point on the line from the first snapshot to that of the last
    epoch at the share of the path that the tensor had travelled at t. It has the expert's ends and
    pace, but not its detours, which late in training are most of the way.

    Paper: `Multimodal Dataset Distillation via Phased Teacher Models
    <https://arxiv.org/abs/2603.25388>`_

    Args:
        experts: their snapshots of all epochs.
        epochs: T, the last one; what the experts did after it does not count.
        sizes: of the weight tensors that θ strings together.
    """

    def __init__(self, experts: TrajectoryStore, epochs: int, sizes: Sequence[int]) -> None:
        self.experts, self.epochs, self.sizes = experts, epochs, sizes
        self._shares: dict[int, Tensor] = {}

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        """The parameters of an expert after these epochs. Shape: (len(epochs), P)"""
        if expert not in self._shares:
            whole = self.experts.snapshots(expert, range(self.epochs + 1))
            self._shares[expert] = path_shares(whole, self.sizes)
        first, last = self.experts.snapshots(expert, (0, self.epochs))
        sizes = torch.tensor(self.sizes)
        shares = self._shares[expert][list(epochs)].repeat_interleave(sizes, 1)
        return first + shares * (last - first)
