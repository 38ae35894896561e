"""The outer loop: learn synthetic pairs until training on them resembles training on real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lors.distillation.diagnosis import check_finite
from lors.distillation.optimizer import clip_gradients, set_learning_rates, take_step
from lors.distillation.state import State
from lors.matching import Matcher
from lors.matching.matcher import Prefetching
from lors.sets.synthetic import SyntheticPairs
from lors.system import ranks
from lors.system.memory import sparingly
from lors.system.progress import Progress, Silent
from lors.system.seeding import generator
from lors.system.stopping import Terminated, unbroken
from lors.system.transfers import mark_step

__all__ = ["Distillation", "distill"]


class Distillation(State):
    """A state that can be taken one iteration further, by one rank or by several.

    ``spare_memory`` is that of ``distill``.
    """

    spare_memory: Callable[[], bool] = staticmethod(lambda: False)

    def step(self, matcher: Matcher) -> float:
        """One iteration; returns the matching loss, the mean over all trajectories.

        Raises:
            DivergedError: the loss or a gradient is not finite, or all gradients are zero, as after
                an overflow in a normalisation. Nothing was changed.
            LorsError: that is so because the set starts with pairs that are all alike.
        """
        losses, states = sparingly(lambda: self._backward(matcher), self.spare_memory)
        self._divide(losses)
        loss = check_finite(self, losses)
        self.matcher_states = states
        now = self.synthetic.state_dict()
        if self.config.averaging and not self.average:
            self.average = {name: tensor.clone() for name, tensor in now.items()}
        set_learning_rates(self.optimizer, self.config, self.iteration, self.slowed)
        clip_gradients(self.optimizer)
        take_step(self.optimizer)
        if self.synthetic.rates.requires_grad:
            self.synthetic.clamp_rates()
        for name, tensor in self.average.items():
            tensor.lerp_(now[name], 1 - self.config.averaging)
        mark_step(self.synthetic.images.device)
        self.iteration += 1
        return loss

    def _backward(self, matcher: Matcher) -> tuple[Tensor, list[dict[str, Tensor]]]:
        """Add the gradients of this rank's trajectories.

        Returns:
            The sum of their losses, and the matcher's state after each.
        """
        self.optimizer.zero_grad()
        rates, states = self.synthetic.rates, list(self.matcher_states)
        losses = rates.new_zeros((), dtype=torch.promote_types(rates.dtype, torch.float32))
        mine = self._mine()
        for trajectory, (after, later) in zip(mine, self._following(mine), strict=True):
            if isinstance(matcher, Prefetching) and after < self.config.iterations:
                matcher.state = states[later]
                matcher.prefetch(self.synthetic, self._draws(after, later))
            matcher.state = states[trajectory]
            losses += matcher.backward(self.synthetic, self._draws(self.iteration, trajectory))
            states[trajectory] = matcher.state
        return losses, states

    def _draws(self, iteration: int, trajectory: int) -> torch.Generator:
        """All randomness of one trajectory in one iteration."""
        keys = (trajectory,) if trajectory else ()
        return generator(self.seed, "distill", iteration, *keys)

    def _following(self, mine: Sequence[int]) -> list[tuple[int, int]]:
        """The iteration and the trajectory after each of these trajectories."""
        here = [(self.iteration, trajectory) for trajectory in mine]
        return [*here[1:], *((self.iteration + 1, trajectory) for trajectory in mine[:1])]

    def _mine(self) -> Sequence[int]:
        """The trajectories that this rank works on."""
        every = range(self.trajectories)
        return every if self.together else ranks.my_share(every)

    def _divide(self, losses: Tensor) -> None:
        """Divide the sums over all trajectories and ranks by the number of trajectories."""
        learned = [t for tensors in self.synthetic.parts().values() for t in tensors]
        learned = [tensor for tensor in learned if tensor.requires_grad]
        if ranks.size() > 1:
            for tensor in learned:  # a rank may have no trajectory, and all send the same
                tensor.grad = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        sums = [losses, *(tensor.grad for tensor in learned if tensor.grad is not None)]
        ranks.all_reduce(sums)
        for total in sums:
            total.div_(self.trajectories)

    def agree(self) -> None:
        """Make sure that all ranks hold the same set, and give all of them every matcher's state.

        Raises:
            LorsError: the sets differ.
        """
        ranks.check_equal(self.synthetic.state_dict().values(), "the synthetic set")
        if not self.together:
            self.matcher_states = [
                ranks.tensors_from_rank(trajectory % ranks.size(), state)
                for trajectory, state in enumerate(self.matcher_states)
            ]


def distill(
    run: Distillation,
    matcher: Matcher,
    *,
    recall: Callable[[SyntheticPairs], float] | None = None,
    checkpoint: Callable[[], None] = lambda: None,
    log: Callable[[dict[str, Any]], None] = lambda record: None,
    progress: Progress | None = None,
    spare_memory: Callable[[], bool] = lambda: False,
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
        spare_memory: called where memory runs out; lets the iteration, which is then done again,
            have the same result with less, or returns False.

    Returns:
        The set with the best validation recall, or the last one if recall was never asked; with
        ``averaging``, its average.
    """
    config, progress = run.config, progress or Silent()
    todo = range(0 if run.ended_early() else config.iterations)[run.iteration :]
    run.agree()
    if todo and run.iteration == 0:
        checkpoint()
    stop = False

    def spare() -> bool:
        if run.together or not spare_memory():  # the other ranks would wait for this one
            return False
        progress.say(
            f"Memory ran out in iteration {run.iteration + 1}: it and those that follow compute "
            "more and keep less, to the same result."
        )
        return True

    run.spare_memory = spare
    with unbroken() as asked_to_stop:
        for _ in progress.track(todo, "distil", config.iterations, run.iteration):
            record = _iterate(run, matcher, recall)
            log(record)
            progress.note(**{k: v for k, v in record.items() if k != "iteration"})
            stop = ranks.any_of(asked_to_stop())
            if _due(run, config.checkpoint_every) or stop or run.ended_early():
                run.agree()
                checkpoint()
            if stop or run.ended_early():
                break
    if stop:
        raise Terminated  # it was another rank that was asked
    if todo and run.ended_early():
        progress.say(
            f"Ended after {run.iteration} of {config.iterations} iterations: recall on val has not "
            f"risen since iteration {run.best_iteration} (distill.patience)."
        )
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
        record["recall"] = ranks.from_rank_zero(lambda: recall(run.kept()))
        run.keep_if_best(record["recall"])
    return record


def _due(run: State, every: int) -> bool:
    return run.iteration % every == 0 or run.iteration == run.config.iterations
