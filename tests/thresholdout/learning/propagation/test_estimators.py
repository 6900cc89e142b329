"""Estimators of expectation propagation: the conventions of scikit-learn, refusals, and what a private fit says."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from thresholdout.accounting import best_epsilon
from thresholdout.errors import InputError
from thresholdout.learning.propagation.estimators import EPClassifier, EPLinearRegression
from thresholdout.learning.propagation.fitting import (
    LooseDeltaWarning,
    LowInformationWarning,
    LowSignalWarning,
    UnprovedTargetWarning,
)
from thresholdout.learning.propagation.mixture import EPGaussianMixture


@parametrize_with_checks(  # type: ignore[misc]
    [
        EPLinearRegression(n_epochs=3),
        EPLinearRegression(algorithm="sep", n_epochs=2, sampling="shuffle"),
        EPClassifier(n_epochs=5),
        EPClassifier(link="logit", n_epochs=3),
        EPGaussianMixture(3, n_epochs=5),
    ]
)
def test_conventions_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
