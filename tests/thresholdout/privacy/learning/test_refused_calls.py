"""A call that is refused leaves every learner as it was; one that was charged keeps its charge."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.thresholdout.privacy.learning.private_learners import ESTIMATORS, LABELS, X, Y, quiet_fit
from thresholdout.errors import InputError
from thresholdout.privacy.learning import LowSignalWarning

THREE = pd.DataFrame(np.column_stack([X, X[:, 0]]), columns=["p", "q", "r"])
UNKNOWN = np.where(np.arange(60) == 7, 9, LABELS)

# What each learner refuses only after scikit-learn has noted the features of the data.
REFUSED: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "DPEMGaussianMixture": ({"means_init": [[0.0, 0.0], [1.0, 1.0]]}, THREE, None),
    "DPSGDClassifier": ({}, THREE, UNKNOWN),
    "DPSGDRegressor": ({"feature_bounds": ([-1.0, -1.0], [1.0, 1.0])}, THREE, Y),
    "DPVIRegressor": ({"x_scale": [1.0, 1.0]}, THREE, Y),
    "EPClassifier": ({}, THREE, UNKNOWN),
    "EPGaussianMixture": ({"prior_mean": [[0.0, 0.0], [1.0, 1.0]]}, THREE, None),
    "EPLinearRegression": ({"x_scale": [1.0, 1.0]}, THREE, Y),
    "FederatedClassifier": ({}, THREE, UNKNOWN),
    "PBPRegressor": ({"x_scale": [1.0, 1.0]}, THREE, Y),
    "SGLDRegressor": ({"batch_size": 7}, THREE, Y),
    "SSPRegressor": ({"feature_bounds": ([-1.0, -1.0], [1.0, 1.0])}, THREE, Y),
}


def settled(name: str) -> Any:
    """Return a learner with the parameters with which it takes two features and refuses three."""
    model = clone(ESTIMATORS[name]).set_params(**REFUSED[name][0], random_state=0)
    return model.set_params(batch_size=60) if name == "SGLDRegressor" else model


def refuse(model: Any, name: str, method: str) -> None:
    parameters, rows, y = REFUSED[name]
    model.set_params(**parameters)
    with pytest.raises(InputError):
        getattr(model, method)(rows, y)


def test_every_learner_is_listed() -> None:
    assert REFUSED.keys() == ESTIMATORS.keys()


@for_each("name", REFUSED)
def test_a_refused_fit_leaves_the_model_and_its_features(name: str) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = quiet_fit(settled(name), frame)
    model.set_params(**REFUSED[name][0])
    before, answers = dict(vars(model)), model.predict(frame)
    refuse(model, name, "fit")
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert (model.predict(frame) == answers).all()


@for_each("name", REFUSED)
def test_a_refused_first_call_leaves_nothing(name: str) -> None:
    model = settled(name)
    for method in ("fit", "partial_fit"):
        if hasattr(model, method):
            refuse(model, name, method)
            assert vars(model).keys() == model.get_params(deep=False).keys()


def test_a_call_that_was_charged_is_kept_with_its_charge() -> None:
    """A warning that is turned into an error is one of a model that there is, and says something of it."""
    model = quiet_fit(clone(ESTIMATORS["EPLinearRegression"]).set_params(random_state=0))
    before = model.privacy_report_
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        warnings.filterwarnings(
            "ignore", "The weights are expected to have an R2", LowSignalWarning
        )  # before the first step
        with pytest.raises(LowSignalWarning):
            model.fit(THREE.to_numpy(), Y)
    assert model.n_features_in_ == 3 == model.coef_.size
    assert model.privacy_report_ is not before
