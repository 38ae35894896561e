"""What the experts give away as teachers: soft labels of real pairs, and better full data."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from lors.config.matchers import HindsightOptions
from lors.encoders import DualEncoder, FlatModel
from lors.evaluation.protocol import Outcome, choose_epoch, frozen_inputs, outcome, outcomes
from lors.evaluation.tuning import Tuned, candidates
from lors.losses import soft_nce
from lors.matching.teachers import Teachers, noised
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.similarity import Fixed
from lors.system import ranks
from lors.system.seeding import generator
from lors.training import Batch, sgd, train_step

__all__ = ["taught_full_data", "teachers_similarity"]


def teachers_similarity(setting: Setting, pairs: SyntheticPairs) -> Fixed:
    """S of pairs as all experts together see them: their soft retrieval.

    It is the mean of two softmaxes of the mean of their cosines, over texts and over images, at the
    temperature of Hindsight's teachers. So it adds up to N, as S = I does.

    >>> from lors.selection import select
    >>> setting = setting_of(lors.load_config("tiny"))
    >>> (images, _), captions = select(setting, "random", 8)
    >>> S = teachers_similarity(setting, setting.plain_pairs(images, captions)).matrix()
    >>> S.shape, round(S.sum().item(), 3)
    (torch.Size([8, 8]), 8.0)

    Args:
        setting: the experts.
        pairs: N pairs.
    """
    cosines = Teachers(setting).cosines(frozen_inputs(pairs, setting.flat.model), pairs.texts)
    logits = cosines / HindsightOptions().teacher_temperature
    return Fixed(len(pairs), (logits.softmax(0) + logits.softmax(1)) / 2)


def taught_full_data(setting: Setting) -> tuple[list[Outcome], Tuned]:
    """What networks reach that all experts together teach on all real pairs.

    They train as experts do, with the same batches and plain SGD, but on what Hindsight lets a set
    learn from: the retrieval of all experts (``soft_nce``), with noise on the pairs. Their rate is
    the best on val for the first of them.

    >>> setting = setting_of(lors.load_config("tiny", ["evaluate.tried_rates=[0.1]"]))
    >>> reached, chosen = taught_full_data(setting)
    >>> len(reached) == setting.config.evaluate.seeds, print(chosen)
    soft nce, rate 0.1
    (True, None)

    Returns:
        The outcomes, and the rate that was chosen.
    """
    teachers, real, protocol = Teachers(setting), setting.real, setting.config.evaluate

    def best_recall(rates: tuple[float, float]) -> float:
        model, thetas = _taught(setting, teachers, rates, 0)
        return choose_epoch(model, thetas, real["val"])[1]

    tried = candidates(setting.config)
    recalls = ranks.divide(tried, best_recall, setting.progress, "tune the rate of taught networks")
    best = max(recalls)
    rates = tried[recalls.index(best)]

    def reached(network: int) -> Outcome:
        model, thetas = _taught(setting, teachers, rates, network)
        return outcome(model, thetas, real["val"], real["test"], protocol.legacy)

    found = outcomes(range(protocol.seeds), reached, setting.progress, "teach the full data")
    return found, Tuned("soft nce", rates, recall=best)


def _taught(
    setting: Setting, teachers: Teachers, rates: tuple[float, float], network: int
) -> tuple[DualEncoder, list[Tensor]]:
    """A network, and its parameters after every epoch of being taught."""
    model = setting.model(setting.config.experts.seed, "taught", network)
    return model, list(_epochs(setting, teachers, model, rates, network))


def _epochs(
    setting: Setting,
    teachers: Teachers,
    model: DualEncoder,
    rates: tuple[float, float],
    network: int,
) -> Iterator[Tensor]:
    config, data, options = setting.config.experts, setting.config.data, HindsightOptions()
    flat, optimizer, real = FlatModel(model), sgd(model, rates), setting.real["train"]
    for epoch in range(config.epochs):
        keys = (config.seed, "taught", network, epoch)
        draw = generator(*keys, "noise")
        for _, *drawn in real.epoch(model, config.batch_size, data.captions, data.augment, *keys):
            inputs, texts = (noised(part, options.noise, draw) for part in drawn)
            targets = teachers.cosines(inputs, texts) / options.teacher_temperature
            train_step(model, optimizer, Batch(inputs, texts, targets), soft_nce)
        yield flat.flatten(model)
