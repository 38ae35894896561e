from __future__ import annotations

import threading
from collections.abc import Sequence
from unittest import mock

import pytest
import torch
from torch import Tensor

from lors.config import load_config
from lors.config.matchers import TrajectoryOptions
from lors.distillation.loop import Distillation
from lors.experts import TrajectoryStore
from lors.matching import Matcher, matcher_of
from lors.matching.starts import Starts, movement_ratio, paced_ranges
from lors.matching.trajectory import TrajectoryMatcher
from lors.setting import Setting, setting_of
from lors.starts import start_pairs
from lors.system.errors import InputError
from lors.system.seeding import generator

from .differences import assert_gradient_is_slope


class Counting(TrajectoryStore):
    """Every parameter of expert e after epoch t is 100 e + t."""

    def __init__(self, parameters: int) -> None:
        self.parameters = parameters

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        values = 100.0 * expert + torch.tensor(list(epochs)).float()
        return values[:, None].expand(-1, self.parameters)


def drawn(setting: Setting, *settings: str, phase: int = 0) -> set[tuple[int, int, int]]:
    """The expert and the epoch of each side, of many draws."""
    config = load_config("tiny", ["experts.epochs=9", *settings])
    options, draw = config.matching, generator(0)
    assert isinstance(options, TrajectoryOptions)
    store = Counting(sum(setting.flat.sides))
    starts = Starts(store, config.experts, setting.flat, options, config.distill.budget)
    found = set()
    for _ in range(100):
        start, target = starts.draw(draw, torch.zeros(1), phase)
        sides = start.split(setting.flat.sides)
        assert all((side == side[0]).all() for side in sides)
        torch.testing.assert_close(target - start, torch.full_like(start, options.expert_epochs))
        (expert, image), (other, text) = (divmod(int(side[0]), 100) for side in sides)
        assert expert == other
        found.add((expert, image, text))
    return found


def test_both_sides_start_together_unless_they_are_independent(setting: Setting) -> None:
    settings = ["matching.max_start_epoch=3", "matching.expert_epochs=2"]
    assert drawn(setting, *settings) == {(e, s, s) for e in range(2) for s in range(3)}
    independent = drawn(setting, *settings, "matching.starts=independent")
    assert independent == {(e, v, t) for e in range(2) for v in range(3) for t in range(3)}


def test_starts_are_drawn_from_a_range_and_every_phase_has_its_own(setting: Setting) -> None:
    found = drawn(setting, "matching.min_start_epoch=2", "matching.max_start_epoch=4")
    assert {image for _, image, _ in found} == {2, 3}
    phases = "matching.phases=[{max_start_epoch: 2}, {min_start_epoch: 5, max_start_epoch: 8}]"
    assert {image for _, image, _ in drawn(setting, phases)} == {0, 1}
    assert {image for _, image, _ in drawn(setting, phases, phase=1)} == {5, 6, 7}


def test_a_phase_is_only_there_above_its_budget(setting: Setting) -> None:
    phases = (
        "matching.phases=[{max_start_epoch: 2}, {min_start_epoch: 5, max_start_epoch: 8, above: 8}]"
    )
    for budget, parts in ((8, 1), (9, 2)):
        config = load_config("tiny", ["experts.epochs=9", phases, f"distill.budget={budget}"])
        assert config.parts() == parts
    with pytest.raises(InputError, match="is for this distill"):
        load_config("tiny", ["matching.phases=[{max_start_epoch: 2, above: 99}]"])


class Bent(TrajectoryStore):
    """Goes up to epoch 2 and then aside."""

    def __init__(self) -> None:
        pass

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        return torch.tensor([[float(min(e, 2)), float(max(0, e - 2))] for e in epochs])


def test_shortcuts_of_a_phase_end_at_its_last_epoch(setting: Setting) -> None:
    phases = "[{max_start_epoch: 1, last_epoch: 2}, {max_start_epoch: 1, last_epoch: 4}]"
    config = load_config(
        "tiny", ["experts.epochs=4", "matching.shortcut=true", f"matching.phases={phases}"]
    )
    assert isinstance(config.matching, TrajectoryOptions)

    class Flat:
        sides, sizes = (1, 1), [2]

    starts = Starts(Bent(), config.experts, Flat(), config.matching, 8)  # type: ignore[arg-type]
    ends = [starts.draw(generator(0), torch.zeros(1), phase)[1].tolist() for phase in (0, 1)]
    assert ends == [[1.0, 0.0], [0.5, 0.5]]  # the first step of two, and of four on the diagonal
    with pytest.raises(InputError, match="a phase ends at epoch 5: set last_epoch"):
        load_config("tiny", ["matching.phases=[{max_start_epoch: 1, last_epoch: 5}]"])


def test_the_side_that_moves_less_has_the_longer_range(setting: Setting) -> None:
    straight = torch.linspace(0, 1, 5)[:, None]
    thetas = torch.cat([3 * straight, 4 * straight, straight], 1)  # 5 and 1 in each fourth
    assert movement_ratio([thetas, thetas], (2, 1)) == pytest.approx(0.2)
    assert paced_ranges((1, 3), 0.2, last=20) == ((1, 3), (1, 11))
    assert paced_ranges((1, 3), 5.0, last=6) == ((1, 7), (1, 3))
    assert paced_ranges((0, 2), 1.0, last=9) == ((0, 2), (0, 2))
    image, text = setting.flat.sides  # where every number moves alike, a side moves as their root
    found = drawn(setting, "matching.starts=paced")
    assert {v for _, v, _ in found} == set(range(min(9, max(2, round(2 * (text / image) ** 0.5)))))
    assert {t for _, _, t in found} == set(range(min(9, max(2, round(2 * (image / text) ** 0.5)))))


@pytest.mark.parametrize("ratio", ["merged", "separate"])
def test_gradients_of_independent_starts_are_slopes(ratio: str) -> None:
    settings = ["dtype=float64", "matching.derivative=double", f"matching.ratio={ratio}"]
    setting = setting_of(load_config("tiny", [*settings, "matching.starts=independent"]))
    matcher, pairs = matcher_of(setting), start_pairs(setting)
    unequal = next(k for k in range(99) if len(set(epochs(matcher, k))) == 2)
    assert_gradient_is_slope(
        lambda pairs: float(matcher.backward(pairs, generator(unequal))), pairs, ("texts", "rates")
    )


def epochs(matcher: Matcher, key: int) -> list[int]:
    """The start epochs that a matcher draws with this key."""
    assert isinstance(matcher, TrajectoryMatcher)
    asked: list[int] = []
    experts = matcher.starts.experts

    class Asked(Counting):
        def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
            asked.append(epochs[0])
            return experts[0].snapshots(expert, epochs)

    matcher.starts.experts = [Asked(0)]
    matcher.starts.draw(generator(key), torch.zeros(1))
    matcher.starts.experts = experts
    return asked


def test_compact_experts_keep_what_phases_need() -> None:
    phases = "matching.phases=[{max_start_epoch: 1}, {min_start_epoch: 4, max_start_epoch: 6}]"
    config = load_config("tiny", ["experts.epochs=9", phases])
    assert config.expert_snapshots() == [0, 1, 4, 5, 6, 9]
    with pytest.raises(InputError, match="expert epoch 6"):
        load_config("tiny", [phases])


def test_compact_experts_have_what_a_late_start_needs() -> None:
    settings = ["experts.compact=true", "matching={min_start_epoch: 2, max_start_epoch: 3}"]
    setting = setting_of(load_config("tiny", settings))
    matcher_of(setting).backward(start_pairs(setting), generator(0))


def test_ranges_without_an_epoch_are_refused() -> None:
    for override in (
        "matching.min_start_epoch=2",
        "matching.phases=[{min_start_epoch: 1, max_start_epoch: 1}]",
    ):
        with pytest.raises(InputError, match="must be below"):
            load_config("tiny", [override])


class Watched(Counting):
    """Notes which thread read what, and fails on one expert if it should."""

    def __init__(self, parameters: int, broken: int | None = None) -> None:
        super().__init__(parameters)
        self.broken, self.reads = broken, list[tuple[str, int, int]]()

    def snapshots(self, expert: int, epochs: Sequence[int]) -> Tensor:
        self.reads.append((threading.current_thread().name, expert, epochs[0]))
        if expert == self.broken:
            raise InputError(f"expert {expert} is damaged")
        return super().snapshots(expert, epochs)


def watched(setting: Setting, broken: int | None = None) -> tuple[Starts, Watched]:
    config = load_config("tiny", ["experts.epochs=9", "matching.max_start_epoch=5"])
    assert isinstance(config.matching, TrajectoryOptions)
    store = Watched(sum(setting.flat.sides), broken)
    return Starts(store, config.experts, setting.flat, config.matching, 8), store


def test_what_was_prefetched_is_what_would_be_drawn_and_is_read_once(setting: Setting) -> None:
    like = torch.zeros(1)
    starts, plain = watched(setting)[0], watched(setting)[0]
    for key in range(20):
        starts.prefetch(generator(key + 1), like)
        found, expected = starts.draw(generator(key), like), plain.draw(generator(key), like)
        assert all(map(torch.equal, found, expected))
    starts.draw(generator(20), like)  # waits for the last one
    (store,) = starts.experts
    assert isinstance(store, Watched)
    assert len(store.reads) == 21  # the first draw, and one ahead of each
    assert sum(thread.startswith("prefetch") for thread, _, _ in store.reads) == 20


def test_a_draw_that_nobody_expected_is_read_in_its_place(setting: Setting) -> None:
    starts, store = watched(setting)
    like, plain = torch.zeros(1), watched(setting)[0]
    for key in range(10):
        starts.prefetch(generator(key + 100), like)
        assert torch.equal(
            starts.draw(generator(key), like)[0], plain.draw(generator(key), like)[0]
        )
    assert len(starts._ahead) <= 2
    assert len(store.reads) > 10


def test_an_error_is_raised_by_the_draw_that_meets_it(setting: Setting) -> None:
    like, plain = torch.zeros(1), watched(setting)[0]
    keys = {int(plain.draw(generator(key), like)[0][0]) // 100: key for key in range(20)}
    starts, _ = watched(setting, broken=1)
    starts.prefetch(generator(keys[1]), like)
    starts.prefetch(generator(keys[0]), like)
    starts.draw(generator(keys[0]), like)
    with pytest.raises(InputError, match="expert 1 is damaged"):
        starts.draw(generator(keys[1]), like)


@pytest.mark.parametrize("trajectories", [1, 3])
def test_distillation_prefetches_and_ends_with_the_same_bits(
    trajectories: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = "matching.phases=[{max_start_epoch: 1}, {min_start_epoch: 1, max_start_epoch: 3}]"
    setting = setting_of(load_config("tiny", [phases]))
    config = setting.config.distill.model_copy(
        update={"iterations": 4, "trajectories": trajectories}
    )
    ends = []
    for reads_ahead in (True, False):
        if not reads_ahead:
            monkeypatch.setattr(TrajectoryMatcher, "prefetch", lambda *_: None)
        matcher = matcher_of(setting)
        assert isinstance(matcher, TrajectoryMatcher)
        read = mock.Mock(wraps=matcher.starts.experts[0])  # without shortcuts, that of all phases
        matcher.starts.experts = [read] * len(matcher.starts.experts)
        run = Distillation(start_pairs(setting), config, seed=0)
        losses = [run.step(matcher) for _ in range(4)]
        ends.append((losses, run.synthetic.state_dict(), read.snapshots.call_count))
    (losses, ours, reads), (expected, plain, needed) = ends
    assert losses == expected
    assert all(torch.equal(ours[name], plain[name]) for name in plain)
    assert needed == 4 * trajectories
    assert reads - needed <= 1  # where a phase ends, a start of the phase before was expected
    assert isinstance(matcher, TrajectoryMatcher)
    assert not matcher.starts._ahead
