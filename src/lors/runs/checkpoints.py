"""Checkpoint files: the state of a distillation, written down and read back.

A checkpoint is an artefact whose header holds the iteration, the best recall and which parts were
slowed down. Its tensors are named ``group.name``: ``now.images`` is the images being learned,
``momentum.images`` their momentum, ``best.images`` those of the best set so far.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from lors.distillation.optimizer import set_learning_rates
from lors.distillation.state import State
from lors.files import artifacts
from lors.system.errors import InputError

__all__ = ["load", "reached", "save"]

KIND = "checkpoint"

OPTIMIZER_STATE = {
    "momentum": "momentum_buffer",
    "mean": "exp_avg",
    "square": "exp_avg_sq",
    "count": "step",
}
"""What a checkpoint calls the tensors that SGD and Adam keep."""

Groups = dict[str, dict[str, Tensor]]
"""Tensors by the group and the name that they have in a checkpoint."""


def save(path: Path, state: State) -> None:
    """Write a checkpoint.

    Args:
        path: where to.
        state: it is not changed.

    Raises:
        OSError: the disk is full, or the like; what was there before stays.
    """
    header = {
        "iteration": state.iteration,
        "best_recall": state.best_recall,
        "best_iteration": state.best_iteration,
        "slowed": state.slowed,
    }
    groups: Groups = {
        "now": state.synthetic.state_dict(),
        **_optimizer_groups(state),
        "best": state.best,
        **{_matcher(place): kept for place, kept in enumerate(state.matcher_states)},
        "average": state.average,
    }
    tensors = {f"{group}.{name}": t for group, ts in groups.items() for name, t in ts.items()}
    artifacts.save(path, KIND, header, tensors)


def load(path: Path, state: State) -> None:
    """Continue from a checkpoint.

    Args:
        path: of the checkpoint.
        state: of a run with the same settings, at any iteration; becomes what was saved.

    Raises:
        InputError: the file is absent or damaged, or is a checkpoint of another run.
    """
    header, tensors = artifacts.load(path, KIND)
    matchers = [_matcher(trajectory) for trajectory in range(state.trajectories)]
    groups: Groups
    groups = {name: {} for name in ("now", *OPTIMIZER_STATE, "best", "average", *matchers)}
    try:
        for key, tensor in tensors.items():
            group, _, name = key.partition(".")
            groups[group][name] = tensor
        _check_fit(groups, state)
        state.synthetic.load_state_dict(groups["now"])
        _load_optimizer(groups, state)
        device = state.synthetic.images.device
        state.best, state.best_recall = groups["best"], header["best_recall"]
        state.matcher_states = [groups[name] for name in matchers]
        state.average = {name: t.to(device) for name, t in groups["average"].items()}
        state.iteration = int(header["iteration"])
        state.best_iteration = int(header.get("best_iteration") or 0)
        state.slowed = dict(header.get("slowed", {}))
        set_learning_rates(state.optimizer, state.config, state.iteration, state.slowed)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"the checkpoint {str(path)!r} does not fit this run ({error}): delete it to start anew"
        ) from None


def reached(path: Path) -> int:
    """The iteration of a checkpoint, by its header alone.

    Raises:
        InputError: the file is absent, or its header is damaged.
    """
    with artifacts.open_artifact(path, KIND) as (header, _):
        return int(header["iteration"])


def _optimizer_groups(state: State) -> Groups:
    """What the optimiser remembers of each learned tensor."""
    learned = state.synthetic.named_parameters()
    memory = {name: state.optimizer.state.get(tensor, {}) for name, tensor in learned}
    return {
        group: {name: kept[key] for name, kept in memory.items() if key in kept}
        for group, key in OPTIMIZER_STATE.items()
    }


def _load_optimizer(groups: Groups, state: State) -> None:
    parameters = dict(state.synthetic.named_parameters())
    for group, key in OPTIMIZER_STATE.items():
        for name, tensor in groups[group].items():
            here = parameters[name]
            state.optimizer.state[here][key] = tensor if key == "step" else tensor.to(here)


def _check_fit(groups: Groups, state: State) -> None:
    """Refuse the tensors of another run before anything is changed by them."""
    here = state.synthetic.state_dict()
    for group in ("now", "momentum", "mean", "square", "best", "average"):
        for name, tensor in groups[group].items():
            if name not in here or tensor.shape != here[name].shape:
                raise ValueError(f"{group}.{name} has shape {tuple(tensor.shape)}")
            if tensor.dtype != here[name].dtype:
                raise ValueError(f"{group}.{name} is {tensor.dtype}")
    for group in ("best", "average"):
        if groups[group] and groups[group].keys() != here.keys():
            raise ValueError(f"{group} is not a whole set")


def _matcher(trajectory: int) -> str:
    """The group of a matcher's state."""
    return f"matcher{trajectory or ''}"
