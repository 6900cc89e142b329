"""With neighbours that have one record more or less, nothing but the noisy sums may depend on how many there are."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.privacy.learning.private_learners import ESTIMATORS, estimators_with
from thresholdout.errors import InputError
from thresholdout.privacy.learning import DPSGDRegressor, DPVIRegressor

# A record whose gradient is not finite counts as nothing. With such records alone every step is noise, so all that a
# fit holds has to be the same, to the last bit, for any number of them.
ROWS, TARGETS = np.full((1000, 2), 1e300), np.full(1000, 1e300)
LABELS = np.arange(1000) % 2

SETTINGS: dict[str, dict[str, Any]] = {
    "DPSGDClassifier": {"batch_size": "auto", "n_steps": None, "n_epochs": 2, "hidden_layer_sizes": (3,), "l2": 0.1},
    "DPSGDRegressor": {"batch_size": "auto", "n_steps": None, "n_epochs": 2, "hidden_layer_sizes": (3,), "l2": 0.1},
    "DPVIRegressor": {"batch_size": 100, "n_epochs": 1, "kl_weight": 3.0},
}


def private(name: str, **more: Any) -> Any:
    common = {"adjacency": "add_remove", "random_state": 0}
    if name != "DPVIRegressor":
        common["sampling"] = "poisson"
    return clone(ESTIMATORS[name]).set_params(**{**common, **SETTINGS[name], **more})


def held(value: Any) -> Any:
    """Return all that an object holds, arrays as bytes."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: held(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [held(each) for each in value]
    if type(value).__module__.startswith("thresholdout") and hasattr(value, "__dict__"):
        return held(vars(value))
    return value


def test_every_learner_that_knows_these_neighbours_is_here() -> None:
    """Private mixtures count with noise, and take no public number: `dpem/test_mixture.py` looks at what they keep."""
    assert set(estimators_with("adjacency")) == {*SETTINGS, "DPEMGaussianMixture"}
    assert set(estimators_with("adjacency", "public_size")) == set(SETTINGS)


@pytest.mark.parametrize(
    "noise", corners([{"noise_multiplier": 3.0}, {"noise_multiplier": None, "epsilon": 2.0}], 0), ids=str
)
@for_each("name", SETTINGS)
def test_nothing_that_a_fit_holds_tells_a_thousand_records_from_999(name: str, noise: dict[str, Any]) -> None:
    y = LABELS if name == "DPSGDClassifier" else TARGETS
    fits = [private(name, public_size=1000, **noise).fit(ROWS[:n], y[:n]) for n in (1000, 999, 400)]
    for model in fits:
        assert model.privacy_report_.private
    first, *others = (held(vars(model)) for model in fits)
    assert first["n_steps_"] == (10 if name == "DPVIRegressor" else 4)
    for other in others:
        assert other == first


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(SETTINGS, 1, 2))
def test_it_is_the_public_number_that_counts(name: str) -> None:
    """The other side: with another public number the steps, the rate and what was learned are others."""
    y = LABELS if name == "DPSGDClassifier" else TARGETS
    fixed = {"noise_multiplier": 3.0, "batch_size": 100}
    one, other = (private(name, **fixed, public_size=size).fit(ROWS, y) for size in (1000, 500))
    assert one.privacy_report_.event != other.privacy_report_.event
    assert one.privacy_report_.epsilon != other.privacy_report_.epsilon
    assert held(vars(one)) != held(vars(other))


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(SETTINGS, 1, 2))
def test_the_public_number_is_asked_for_by_name(name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    if name == "DPSGDClassifier":
        y = (y > 0).astype(int)
    model = private(name, noise_multiplier=3.0)
    with pytest.raises(InputError, match="public_size") as caught:
        model.fit(X, y)
    assert "adjacency='add_remove'" in str(caught.value)
    assert model.set_params(public_size=200).fit(X, y).privacy_report_.private
    with pytest.raises(InputError, match="public_size"):
        model.set_params(adjacency="replace_one").fit(X, y)
    assert model.set_params(public_size=None).fit(X, y).privacy_report_.private


def test_a_public_number_is_a_count() -> None:
    for size in (0, -3):
        with pytest.raises(InputError, match="public_size"):
            private("DPVIRegressor", noise_multiplier=3.0, public_size=size).fit(ROWS, TARGETS)


def test_places_in_a_batch_are_an_assumption_where_they_can_change() -> None:
    common: dict[str, Any] = {"noise_multiplier": 3.0, "batch_size": 30, "random_state": 0}
    X, y = np.ones((60, 2)), np.ones(60)
    for model in (
        DPVIRegressor(2, n_epochs=1, adjacency="add_remove", public_size=60, **common),
        DPSGDRegressor(n_steps=2, adjacency="add_remove", public_size=60, sampling="poisson", **common),
    ):
        found = model.fit(X, y).privacy_report_.assumptions
        assert any("rounds a row alike" in words for words in found)
        assert not any("is public" in words for words in found)
