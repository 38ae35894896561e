"""The outer loop: learn synthetic pairs until training on them resembles training on real ones."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lors.config import DistillConfig
from lors.files import artifacts
from lors.matching import Matcher
from lors.sets.synthetic import SyntheticPairs
from lors.system import ranks
from lors.system.errors import DivergedError, InputError, LorsError
from lors.system.progress import Progress, Silent
from lors.system.seeding import generator
from lors.system.stopping import Terminated, unbroken

__all__ = ["Distillation", "distill"]

KIND = "checkpoint"

BETA = 0.99
"""Adam's second beta: gradients change too fast for a longer memory."""

OPTIMIZER_STATE = {
    "momentum": "momentum_buffer",
    "mean": "exp_avg",
    "square": "exp_avg_sq",
    "count": "step",
}
"""What a checkpoint calls the tensors that SGD and Adam keep."""


@dataclass
class Distillation:
    """The state of a run: everything that continuing it needs.

    Args:
        synthetic: what is being learned.
        config: the outer loop's settings.
        seed: draws experts, starts and batches.
        together: whether the ranks work on each trajectory together; if not, they divide them.
    """

    synthetic: SyntheticPairs
    config: DistillConfig
    seed: int
    together: bool = False
    iteration: int = 0
    best: dict[str, Tensor] = field(default_factory=dict)
    best_recall: float | None = None
    matcher_states: list[dict[str, Tensor]] = field(init=False)
    slowed: dict[str, int] = field(default_factory=dict)
    average: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rates = self.config.learning_rates
        groups = []
        for part, tensors in self.synthetic.parts().items():
            learned = part not in self.config.fixed
            for tensor in tensors:
                tensor.requires_grad_(learned)
            if learned and tensors:
                groups.append({"params": tensors, "lr": getattr(rates, part), "name": part})
        momentum = self.config.momentum
        self.optimizer: torch.optim.Optimizer
        if self.config.optimizer == "adam":
            self.optimizer = torch.optim.Adam(groups, betas=(momentum, BETA))
        else:
            self.optimizer = torch.optim.SGD(groups, momentum=momentum)
        self.trajectories = self.config.trajectories or 1
        self.matcher_states = [{} for _ in range(self.trajectories)]

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        header = {
            "iteration": self.iteration,
            "best_recall": self.best_recall,
            "slowed": self.slowed,
        }
        learned = dict(self.synthetic.named_parameters())
        state = {name: self.optimizer.state.get(tensor, {}) for name, tensor in learned.items()}
        groups = {
            "now": self.synthetic.state_dict(),
            **{
                group: {name: kept[key] for name, kept in state.items() if key in kept}
                for group, key in OPTIMIZER_STATE.items()
            },
            "best": self.best,
            **{_matcher(t): state for t, state in enumerate(self.matcher_states)},
            "average": self.average,
        }
        tensors = {f"{group}.{name}": t for group, ts in groups.items() for name, t in ts.items()}
        artifacts.save(path, KIND, header, tensors)

    def resume(self, path: Path) -> None:
        """Continue from a checkpoint."""
        header, tensors = artifacts.load(path, KIND)
        groups: dict[str, dict[str, Tensor]]
        matchers = [_matcher(trajectory) for trajectory in range(self.trajectories)]
        groups = {name: {} for name in ("now", *OPTIMIZER_STATE, "best", "average", *matchers)}
        parameters = dict(self.synthetic.named_parameters())
        try:
            for key, tensor in tensors.items():
                name, _, rest = key.partition(".")
                groups[name][rest] = tensor
            self._check_fit(groups)
            self.synthetic.load_state_dict(groups["now"])
            for group, key in OPTIMIZER_STATE.items():
                for name, tensor in groups[group].items():
                    here = parameters[name]
                    kept = tensor if key == "step" else tensor.to(here)
                    self.optimizer.state[here][key] = kept
            self.best, self.best_recall = groups["best"], header["best_recall"]
            self.matcher_states = [groups[name] for name in matchers]
            self.average = {
                k: t.to(parameters["images"].device) for k, t in groups["average"].items()
            }
            self.iteration = int(header["iteration"])
            self.slowed = dict(header.get("slowed", {}))
            self._set_learning_rates()
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(
                f"the checkpoint {str(path)!r} does not fit this run ({error}): delete it to start "
                "anew"
            ) from None

    def _check_fit(self, groups: dict[str, dict[str, Tensor]]) -> None:
        """Refuse the tensors of another run before anything is changed by them."""
        here = self.synthetic.state_dict()
        for group in ("now", "momentum", "mean", "square", "best", "average"):
            for name, tensor in groups[group].items():
                if name not in here or tensor.shape != here[name].shape:
                    raise ValueError(f"{group}.{name} has shape {tuple(tensor.shape)}")
                if tensor.dtype != here[name].dtype:
                    raise ValueError(f"{group}.{name} is {tensor.dtype}")
        for group in ("best", "average"):
            if groups[group] and groups[group].keys() != here.keys():
                raise ValueError(f"{group} is not a whole set")

    def step(self, matcher: Matcher) -> float:
        """One iteration; returns the matching loss, the mean over all trajectories.

        Raises:
            DivergedError: the loss or a gradient is not finite, or all gradients are zero, as after
                an overflow in a normalisation. Nothing was changed.
            LorsError: that is so because the set starts with pairs that are all alike.
        """
        self.optimizer.zero_grad()
        rates, states = self.synthetic.rates, list(self.matcher_states)
        losses = rates.new_zeros((), dtype=torch.promote_types(rates.dtype, torch.float32))
        for trajectory in self._mine():
            matcher.state = states[trajectory]
            keys = (trajectory,) if trajectory else ()
            draw = generator(self.seed, "distill", self.iteration, *keys)
            losses += matcher.backward(self.synthetic, draw)
            states[trajectory] = matcher.state
        loss = self._average(losses)
        self._check_finite(loss)
        self.matcher_states = states
        now = self.synthetic.state_dict()
        if self.config.averaging and not self.average:
            self.average = {name: tensor.clone() for name, tensor in now.items()}
        self._set_learning_rates()
        self.optimizer.step()
        if self.synthetic.rates.requires_grad:
            self.synthetic.clamp_rates()
        for name, tensor in self.average.items():
            tensor.lerp_(now[name], 1 - self.config.averaging)
        self.iteration += 1
        return loss

    def _mine(self) -> Sequence[int]:
        """The trajectories that this rank works on."""
        every = range(self.trajectories)
        return every if self.together else ranks.share(every)

    def _average(self, losses: Tensor) -> float:
        """Divide the sums over all trajectories and ranks by the number of trajectories."""
        learned = [t for tensors in self.synthetic.parts().values() for t in tensors]
        learned = [tensor for tensor in learned if tensor.requires_grad]
        if ranks.size() > 1:
            for tensor in learned:  # a rank may have no trajectory, and all send the same
                tensor.grad = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        sums = [losses, *(tensor.grad for tensor in learned if tensor.grad is not None)]
        ranks.total(sums)
        for total in sums:
            total.div_(self.trajectories)
        return losses.item()

    def agree(self) -> None:
        """Make sure that all ranks hold the same set, and give all of them every matcher's state.

        Raises:
            LorsError: the sets differ.
        """
        ranks.check_equal(self.synthetic.state_dict().values(), "the synthetic set")
        if not self.together:
            self.matcher_states = [
                ranks.from_rank(trajectory % ranks.size(), state)
                for trajectory, state in enumerate(self.matcher_states)
            ]

    def kept(self) -> SyntheticPairs:
        """The set that is evaluated and kept: the one being learned, or its average."""
        if not self.average:
            return self.synthetic
        pairs = copy.deepcopy(self.synthetic)
        pairs.load_state_dict(self.average)
        return pairs

    def slow_down(self, part: str) -> None:
        """Halve the rate of a part that made the numbers non-finite; of the inner rates, both."""
        self.slowed[part] = self.slowed.get(part, 0) + 1
        if part == "rates":
            self.synthetic.rates.data.mul_(0.5)
            self.synthetic.clamp_rates()

    def _set_learning_rates(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(group["name"])

    def learning_rate(self, part: str) -> float:
        """That of this iteration, by the schedule and by how often the part was slowed down."""
        done = self.iteration / self.config.iterations
        share = (1 + math.cos(math.pi * done)) / 2 if self.config.schedule == "cosine" else 1.0
        rate: float = getattr(self.config.learning_rates, part)
        return share * rate * 0.5 ** self.slowed.get(part, 0)

    def keep_if_best(self, recall: float) -> None:
        """Remember the set as it would be kept now if its validation recall is the best so far."""
        if self.best_recall is None or recall > self.best_recall:
            self.best_recall = recall
            kept = self.average or self.synthetic.state_dict()
            self.best = {k: t.detach().cpu().clone() for k, t in kept.items()}

    def _check_finite(self, loss: float) -> None:
        parts = self.synthetic.parts()
        broken = [
            f"the gradient of {part}"
            for part, tensors in parts.items()
            if any(t.grad is not None and not t.grad.isfinite().all() for t in tensors)
        ]
        gradients = [t.grad for tensors in parts.values() for t in tensors if t.grad is not None]
        moves = any(gradient.any() for gradient in gradients)
        if math.isfinite(loss) and not broken and moves:
            return
        if not math.isfinite(loss):
            what = "the matching loss turned non-finite"
        else:
            what = f"{broken[0]} turned non-finite" if broken else "every gradient turned zero"
        alike = [name for name in ("images", "texts") if _alike(getattr(self.synthetic, name))]
        if alike and self.iteration == 0:
            raise LorsError(
                f"{what} at iteration 0, because the {' and the '.join(alike)} that the set starts "
                "with are all alike: check the data, and that distill.budget holds two pairs or "
                "more"
            )
        part, advice = self._culprit()
        raise DivergedError(
            f"{what} at iteration {self.iteration}; {advice}. "
            "The last checkpoint is kept; distill.retries=5 lowers rates by itself",
            part,
        )

    def _culprit(self) -> tuple[str, str]:
        """What to lower: the part that jumped in the last step, or else the inner rates."""
        jumps = {str(group["name"]): self._jump(group) for group in self.optimizer.param_groups}
        part = max(jumps, key=lambda name: jumps[name])
        if jumps[part] > 0.5:
            return (
                part,
                f"{part} moved too far in one step: lower distill.learning_rates.{part}",
            )
        image_rate, text_rate = self.synthetic.rates.tolist()
        return (
            "rates",
            f"the inner training run blew up at inner rates {image_rate:.3g} (image) and "
            f"{text_rate:.3g} (text): lower distill.inner_rate, distill.learning_rates.rates or "
            "matching.steps",
        )

    def _jump(self, group: dict[str, Any]) -> float:
        """The length of a part's last step relative to where it led."""
        states = [self.optimizer.state.get(tensor, {}) for tensor in group["params"]]
        steps = [state["momentum_buffer"] for state in states if "momentum_buffer" in state]
        steps += [
            state["exp_avg"] / state["exp_avg_sq"].sqrt().clamp(min=1e-8)
            for state in states
            if "exp_avg" in state
        ]
        length = math.sqrt(sum(step.double().square().sum().item() for step in steps))
        size = math.sqrt(sum(t.detach().double().square().sum().item() for t in group["params"]))
        return group["lr"] * length / max(size, 1e-12)


def distill(
    run: Distillation,
    matcher: Matcher,
    *,
    recall: Callable[[SyntheticPairs], float] | None = None,
    checkpoint: Callable[[], None] = lambda: None,
    log: Callable[[dict[str, Any]], None] = lambda record: None,
    progress: Progress | None = None,
) -> SyntheticPairs:
    """Run the outer loop to its end.

    Args:
        run: the state to start or continue from.
        matcher: gives the gradients.
        recall: validation recall of a set; asked every ``evaluate_every`` iterations.
        checkpoint: called at the start, every ``checkpoint_every`` iterations, at the end, and when
            a signal asks the program, or another rank of it, to stop.
        log: receives one record per iteration.
        progress: reports long-running work.

    Returns:
        The set with the best validation recall, or the last one if recall was never asked; with
        ``averaging``, its average.
    """
    config, progress = run.config, progress or Silent()
    todo = range(run.iteration, config.iterations)
    run.agree()
    if todo and run.iteration == 0:
        checkpoint()
    stop = False
    with unbroken() as asked_to_stop:
        for _ in progress.track(todo, "distil", config.iterations, run.iteration):
            record = _iterate(run, matcher, recall)
            log(record)
            progress.note(**{k: v for k, v in record.items() if k != "iteration"})
            stop = ranks.any_of(asked_to_stop())
            if _due(run, config.checkpoint_every) or stop:
                run.agree()
                checkpoint()
            if stop:
                break
    if stop:
        raise Terminated  # it was another rank that was asked
    if run.best or run.average:
        run.synthetic.load_state_dict(run.best or run.average)
    return run.synthetic


def _iterate(
    run: Distillation, matcher: Matcher, recall: Callable[[SyntheticPairs], float] | None
) -> dict[str, Any]:
    """One iteration and its record, with the validation recall where it is due."""
    loss = run.step(matcher)
    image_rate, text_rate = run.synthetic.rates.tolist()
    record = {
        "iteration": run.iteration,
        "loss": loss,
        "rate_image": image_rate,
        "rate_text": text_rate,
    }
    if recall and run.config.evaluate_every and _due(run, run.config.evaluate_every):
        record["recall"] = ranks.first(lambda: recall(run.kept()))
        run.keep_if_best(record["recall"])
    return record


def _alike(rows: Tensor) -> bool:
    """Whether rows differ by no more than they are rounded, or are as good as zero."""
    rows = rows.detach().double()
    spread, size = (rows - rows[0]).abs().max().item(), rows.abs().max().item()
    return spread <= max(1e-6 * size, 1e-12)


def _matcher(trajectory: int) -> str:
    """The name that the tensors of a matcher's state have in a checkpoint."""
    return f"matcher{trajectory or ''}"


def _due(run: Distillation, every: int) -> bool:
    return run.iteration % every == 0 or run.iteration == run.config.iterations
