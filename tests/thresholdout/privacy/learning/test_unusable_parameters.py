"""Parameters of private learners that cannot be used: refused by name, before anything is charged or computed."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.thresholdout.privacy.learning.private_learners import ESTIMATORS, LABELS, X, Y
from thresholdout.errors import InputError, InputTypeError

LINEAR = ("EPLinearRegression", "EPClassifier")
PROPAGATED = (*LINEAR, "EPGaussianMixture", "PBPRegressor")
SCALED = (*LINEAR, "PBPRegressor", "DPVIRegressor")


@for_each(
    ("name", "argument", "value"),
    [
        *[(name, "budget_split", value) for name in PROPAGATED for value in (3, "half", [0.5, [0.5]])],
        *[(name, "x_scale", value) for name in SCALED for value in ("2", ["a", "b"], {"a": 1.0}, [True, True])],
        *[(name, "prior_mean", value) for name in (*LINEAR, "EPGaussianMixture") for value in ("a", [["a"] * 2] * 2)],
        *[(name, "prior_precision", "large") for name in LINEAR],
        ("DPEMGaussianMixture", "means_init", "kmeans"),
        ("DPEMGaussianMixture", "means_init", [[0.0], [0.0, 1.0]]),
        *[(name, "random_state", value) for name in ESTIMATORS for value in ("zero", -1, 1.5)],
        *[(name, "batch_size", "all") for name in ("DPSGDClassifier", "DPSGDRegressor")],
        *[(name, "average", "all") for name in ("DPSGDClassifier", "DPSGDRegressor")],
    ],
)
def test_they_are_refused_by_name(name: str, argument: str, value: Any) -> None:
    model = clone(ESTIMATORS[name])
    if argument == "budget_split":
        model.set_params(sigma=None, epsilon=3.0)
    model.set_params(**{argument: value})
    with pytest.raises(
        (InputError, InputTypeError), match=f"^{argument} (must be .*; got|is missing: pass) "
    ) as refused:
        model.fit(X, LABELS if "Classifier" in name else Y)
    assert refused.value.argument == argument
    assert not hasattr(model, "privacy_report_")


@for_each("name", ["SGLDRegressor", *PROPAGATED])
def test_random_state_is_looked_at_before_the_search_for_noise(name: str) -> None:
    model = clone(ESTIMATORS[name]).set_params(epsilon=3.0, random_state="zero")
    model.set_params(**{"step_size" if name == "SGLDRegressor" else "sigma": None})
    with pytest.raises(InputTypeError, match="random_state"):
        model.fit([[float("nan")]], [0.0])  # records are looked at later, too
