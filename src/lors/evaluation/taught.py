"""What the experts give away as teachers: soft labels of real pairs, and better full data."""

from __future__ import annotations

from torch import Tensor

from lors.config.matchers import HindsightOptions
from lors.encoders import DualEncoder, FlatModel
from lors.encoders.dropout import dropping
from lors.evaluation.protocol import Outcome, frozen_inputs, outcome, outcomes
from lors.losses import soft_nce
from lors.matching.teachers import Teachers, noised
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting
from lors.setting.threads import threads_of
from lors.similarity import Fixed
from lors.system.seeding import generator
from lors.training import Batch, sgd, train_step

__all__ = ["taught_full_data", "teachers_similarity"]

TEMPERATURE = 0.1
"""τ of the teachers' S: of 0.03 to 0.3 the best on val for random pairs of Flickr8k."""

LONGER = 3
"""How many times as long as an expert a network is taught."""


def teachers_similarity(setting: Setting, pairs: SyntheticPairs) -> Fixed:
    """S of pairs as all experts together see them: their soft retrieval.

    It is the mean of two softmaxes of the mean of their cosines, over texts and over images. So it
    adds up to N, as S = I does.

    >>> import lors
    >>> from lors.selection import select
    >>> from lors.setting import setting_of
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
    logits = cosines / TEMPERATURE
    return Fixed(len(pairs), (logits.softmax(0) + logits.softmax(1)) / 2)


def taught_full_data(setting: Setting) -> list[Outcome]:
    """What networks reach that all experts together teach on all real pairs.

    They train as experts do, with the same batches and rates and plain SGD, but on what Hindsight
    lets a set learn from: the retrieval of all experts (``soft_nce``), with noise on the pairs. It
    takes them longer, so they have ``LONGER`` times as many epochs, of which val chooses one.

    >>> import lors
    >>> from lors.setting import setting_of
    >>> setting = setting_of(lors.load_config("tiny"))
    >>> len(taught_full_data(setting)) == setting.config.evaluate.seeds
    True
    """
    teachers, real, protocol = Teachers(setting), setting.real, setting.config.evaluate

    def reached(network: int) -> Outcome:
        model, thetas = _taught(setting, teachers, network)
        return outcome(model, thetas, real["val"], real["test"], protocol.legacy)

    with threads_of(setting):
        return outcomes(range(protocol.seeds), reached, setting.progress, "teach the full data")


def _taught(setting: Setting, teachers: Teachers, network: int) -> tuple[DualEncoder, list[Tensor]]:
    """A network, and its parameters after every epoch of being taught."""
    config, data, options = setting.config.experts, setting.config.data, HindsightOptions()
    model, real = setting.model(config.seed, "taught", network), setting.real["train"]
    flat, optimizer, thetas = FlatModel(model), sgd(model, config.rates()), []
    for epoch in range(LONGER * config.epochs):
        keys = (config.seed, "taught", network, epoch)
        draw = generator(*keys, "noise")
        batches = real.epoch(
            model,
            config.batch_size,
            data.captions,
            data.augment,
            *keys,
            drop_last=config.drop_last,
        )
        for step, (_, *drawn) in enumerate(batches):
            inputs, texts = (noised(part, options.noise, draw) for part in drawn)
            targets = teachers.cosines(inputs, texts) / options.teacher_temperature
            with dropping(*keys, step):
                train_step(model, optimizer, Batch(inputs, texts, targets), soft_nce)
        thetas.append(flat.flatten(model))
    return model, thetas
