from __future__ import annotations

import numpy as np
import pytest
import torch

import lors
from lors.evaluation.tuning import pairs_for
from lors.experts import experts_of
from lors.setting import Setting
from lors.system.errors import InputError
from tests.conftest import altered, random_pairs


def test_it_is_the_sigmoid_of_the_first_experts_logits(setting: Setting) -> None:
    protocol = setting.config.evaluate.model_copy(update={"similarity": "expert"})
    config = setting.config.model_copy(update={"evaluate": protocol})
    judged = altered(setting, config=config)
    distilled = setting.distilled(random_pairs(setting))
    found = pairs_for(judged, distilled).similarity.matrix()
    theta = experts_of(setting).snapshots(0, [setting.config.experts.epochs])[0]
    theta = theta.to(setting.device)
    u, v = distilled.pairs.images.detach(), distilled.pairs.texts.detach()
    torch.testing.assert_close(found, setting.flat(theta, u, v).sigmoid().detach())
    own = pairs_for(setting, distilled).similarity.matrix()
    assert torch.equal(own, distilled.similarity)


def test_no_expert_is_trained_on_the_pairs_that_a_set_is_tested_on(setting: Setting) -> None:
    distilled = setting.distilled(random_pairs(setting))
    real = (np.zeros((4, 12)), np.zeros((4, 10)))
    with pytest.raises(InputError, match="leave test out"):
        lors.evaluate(distilled, test=real, evaluate={"similarity": "expert"}, progress=False)
