"""Digits, which stand in for the fixed-size paper's images: accuracies, and the variance of minibatch gradients."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from benchmarks.papers.minibatch_variance import minibatch_variance
from tests.sizes import corners
from thresholdout.privacy.learning import DPSGDClassifier

TRAIN = 1437


def digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def accuracies(sampling: Any, noise: float) -> list[float]:
    X, y = digits()
    model = DPSGDClassifier(
        sampling=sampling, noise_multiplier=noise, batch_size=64, n_steps=600, learning_rate=2.0,
        feature_bounds=(0, 16), classes=range(10), average=False,
    )  # fmt: skip
    return [
        model.set_params(random_state=seed).fit(X[:TRAIN], y[:TRAIN]).score(X[TRAIN:], y[TRAIN:]) for seed in range(2)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("sampling", corners(["wor", "wr", "poisson"], 0))
@pytest.mark.parametrize(
    ("noise", "expected", "margin"), corners([(0.0, 0.97, 0.01), (2.0, 0.912, 0.045), (4.0, 0.813, 0.07)], 2)
)
def test_accuracies(sampling: Any, noise: float, expected: float, margin: float) -> None:
    # Margins are over three of the published standard deviations, 0.01 to 0.03, for the mean of two runs.
    assert abs(np.mean(accuracies(sampling, noise)) - expected) < margin


def test_variance_ratios_of_clipped_gradients() -> None:
    X, y = digits()
    X, y = np.column_stack([X[:TRAIN] / 16, np.ones(TRAIN)]), y[:TRAIN]
    delta = np.full((TRAIN, 10), 0.1) - np.eye(10)[y]  # at the start, zero
    gradients = np.einsum("ij,ik->ijk", X, delta).reshape(TRAIN, -1)
    gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1))[:, None]
    assert minibatch_variance(gradients, 64)["wor/poisson"] == pytest.approx(0.987, abs=0.002)
