"""The conventions of scikit-learn."""

from typing import Any

import pytest

from tests.estimator_checks import each_check
from thresholdout.privacy.learning.dpsgd.classifier import DPSGDClassifier
from thresholdout.privacy.learning.dpsgd.regressor import DPSGDRegressor


@pytest.mark.slow
@each_check(
    [
        DPSGDClassifier(),
        DPSGDRegressor(),
        DPSGDClassifier(noise_multiplier=1.0, n_steps=20),
        DPSGDClassifier((4,), noise_multiplier=1.0, n_steps=5, activation="tanh", sampling="poisson"),
        DPSGDRegressor(noise_multiplier=1.0, n_steps=20),
        DPSGDRegressor((4,), noise_multiplier=1.0, n_steps=5, average=True, sampling="wr"),
    ]
)
def test_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
