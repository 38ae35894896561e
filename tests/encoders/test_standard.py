import numpy as np
import pytest
import torch

from lors.encoders import Standard
from lors.system.errors import InputError


def test_standardised_features_have_mean_zero_and_one_deviation_over_all() -> None:
    features = np.random.default_rng(0).normal(3, [1.0, 5.0], (1000, 2)).astype(np.float32)
    standard = Standard.fit(features, chunk=64)
    out = standard(torch.from_numpy(features))
    assert out.mean(0).tolist() == pytest.approx([0, 0], abs=1e-5)
    assert out.square().mean().item() == pytest.approx(1)
    # One scale for all dimensions: their relative sizes survive.
    ratio = features.std(0)[1] / features.std(0)[0]
    assert (out.std(0)[1] / out.std(0)[0]).item() == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((4, 3)), "the texts of the training data are all alike"),
        (np.zeros((4, 3)), "all alike"),
        (np.full((4, 3), 0.1), "all alike"),  # whose mean is rounded
        (1 + 1e-7 * np.eye(3), "all alike"),
        (1e-30 * np.eye(3), "too small"),
    ],
)
def test_features_that_do_not_differ_are_refused(features: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Standard.fit(features.astype(np.float32), "texts")


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_features_of_any_usual_size_are_taken(size: float) -> None:
    features = (size * (5 + np.eye(3))).astype(np.float32)
    out = Standard.fit(features)(torch.from_numpy(features))
    assert out.square().mean().item() == pytest.approx(1, rel=1e-3)
