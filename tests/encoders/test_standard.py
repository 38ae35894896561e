import numpy as np
import pytest
import torch

from lors.encoders import Standard


def test_standardised_features_have_mean_zero_and_one_deviation_over_all() -> None:
    features = np.random.default_rng(0).normal(3, [1.0, 5.0], (1000, 2)).astype(np.float32)
    standard = Standard.fit(features, chunk=64)
    out = standard(torch.from_numpy(features))
    assert out.mean(0).tolist() == pytest.approx([0, 0], abs=1e-5)
    assert out.square().mean().item() == pytest.approx(1)
    # One scale for all dimensions: their relative sizes survive.
    ratio = features.std(0)[1] / features.std(0)[0]
    assert (out.std(0)[1] / out.std(0)[0]).item() == pytest.approx(ratio, rel=1e-4)


def test_constant_features_do_not_divide_by_zero() -> None:
    standard = Standard.fit(np.ones((4, 3), np.float32))
    assert not standard(torch.ones(1, 3)).any()
