"""How to scale the teachers' S, and how long to teach the full data, on the validation split.

    python benchmarks/teachers.py flickr8k-hindsight-100 evaluate.checks=5 $W

Prints the validation recall of random pairs with the teachers' S at several temperatures, each at
its best rate, and of a network that the teachers teach on all pairs, after every fifth epoch. The
test split is not measured.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from lors.config import load_config
from lors.encoders import FlatModel
from lors.evaluation import taught
from lors.evaluation.protocol import measure
from lors.evaluation.recall import recall
from lors.evaluation.tuning import tune
from lors.matching.teachers import Teachers
from lors.selection import select
from lors.sets.synthetic import SyntheticPairs, pairs_within
from lors.setting import Setting, setting_of

TEMPERATURES = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("preset")
    parser.add_argument("overrides", nargs="*")
    arguments = parser.parse_args()
    tried = ["evaluate.tried_losses=[nce]", *arguments.overrides]
    setting = setting_of(load_config(arguments.preset, tried))
    scaled(setting)
    lasting(setting)


def scaled(setting: Setting) -> None:
    """Random pairs with the teachers' S by temperature; the loss is eNCE, and NCE for S = I."""
    config = setting.config
    one = setting.plain_pairs(np.arange(1), np.arange(1))
    kept = config.selection.model_copy(update={"similarity": "teachers"}).kept_similarity()
    count = pairs_within(config.distill.budget, one.pair_numbers(), kept)
    (images, _), captions = select(setting, "random", count, "explore", 0)
    pairs = setting.plain_pairs(images, captions)
    print(f"{count} random pairs, S = I: {tune(setting, pairs).recall:.1f}", flush=True)
    for temperature in TEMPERATURES:
        taught.TEMPERATURE = temperature
        soft = taught.teachers_similarity(setting, pairs)
        best = tune(setting, SyntheticPairs(pairs.images.detach(), pairs.texts.detach(), soft))
        print(f"temperature {temperature:g}: {best.recall:.1f} ({best})", flush=True)


def lasting(setting: Setting) -> None:
    """The teachers together, and a network that they teach."""
    teachers, val = Teachers(setting), setting.real["val"]
    sides = [val.embed(network) for network in teachers.networks]
    u, v = (torch.cat(side, 1) for side in zip(*sides, strict=True))  # the sum of their cosines
    together = recall(u, v, torch.from_numpy(val.owner)).mean
    print(f"{len(sides)} teachers together: {together:.1f}", flush=True)
    model, thetas = taught._taught(setting, teachers, 0)
    for epoch, theta in enumerate(thetas, 1):
        if epoch % 5 == 0:
            FlatModel(model).load(theta, model)
            print(f"taught for {epoch} epochs: {measure(model, val).mean:.1f}", flush=True)


if __name__ == "__main__":
    main()
