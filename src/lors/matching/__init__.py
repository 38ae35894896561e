"""Matchers: how synthetic data is compared with real data."""

from lors.config import names
from lors.matching.matcher import Matcher
from lors.setting import Setting
from lors.system.errors import InputError
from lors.system.registry import Registry

__all__ = ["MATCHERS", "Matcher", "matcher_of"]

MATCHERS: Registry[type[Matcher]] = names.MATCHERS


def matcher_of(setting: Setting) -> Matcher:
    """The matcher that a configuration asks for.

    Raises:
        InputError: it cannot divide batches, as ``--data-parallel`` asks.
    """
    options = setting.config.matching
    if setting.data_parallel and not options.divisible:
        raise InputError(
            f"matching.kind={options.kind} cannot divide a batch between ranks: leave out "
            "--data-parallel, and the ranks divide the iterations' trajectories"
        )
    return MATCHERS.choose(options.kind)(setting, options)
