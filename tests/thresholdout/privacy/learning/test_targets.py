"""A target epsilon is for all calls that continue each other: none spends it twice, and its rest has a price."""

import warnings
from copy import deepcopy
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.sizes import corners
from tests.terminal import bars_at_once
from tests.thresholdout.privacy.learning.private_learners import ESTIMATORS, LABELS, X, Y, estimators_with, quiet_fit
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import Composed, best_epsilon
from thresholdout.privacy.learning import (
    CostlyTargetWarning,
    DPSGDClassifier,
    SGLDRegressor,
    SpentTargetWarning,
    targets,
)

CONTINUING: dict[str, dict[str, Any]] = {
    "DPSGDClassifier": {"noise_multiplier": None},
    "DPSGDRegressor": {"noise_multiplier": None},
    "SGLDRegressor": {"step_size": None},
}


@cache
def _first_fit(name: str) -> Any:
    return quiet_fit(targeted(name, 2.0))


def fitted(name: str) -> Any:
    """Return a learner that has spent its target of 2."""
    return deepcopy(_first_fit(name))


def targeted(name: str, epsilon: float, **more: Any) -> Any:
    settings = {"epsilon": epsilon, "warm_start": True, "random_state": 0, **CONTINUING[name], **more}
    return clone(ESTIMATORS[name]).set_params(**settings)


def test_every_learner_with_a_target_that_continues_is_here() -> None:
    assert set(estimators_with("warm_start", "epsilon")) == set(CONTINUING)


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(CONTINUING, 1))
def test_a_second_fit_does_not_get_the_same_target_again(name: str) -> None:
    model = fitted(name)
    assert 1.9 < model.privacy_report_.epsilon <= 2.0
    before = model.privacy_report_
    learned = np.copy(model.coef_)
    with pytest.raises(
        InputError, match=r"epsilon must be .*; got 2, of which earlier calls have spent (2|1\.9)"
    ) as refused:
        quiet_fit(model)
    for words in ("a larger epsilon for all calls together", "in its place", "warm_start=False"):
        assert words in str(refused.value)
    np.testing.assert_array_equal(model.coef_, learned)
    assert model.privacy_report_ == before


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(CONTINUING, 1))
def test_the_calls_that_the_refusal_names_work(name: str) -> None:
    first = fitted(name)
    event = first.privacy_report_.event
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        larger = quiet_fit(first.set_params(epsilon=4.0)).privacy_report_  # a larger one, for both together
    assert 3.8 < larger.epsilon <= 4.0
    assert larger.epsilon == best_epsilon(larger.event, larger.delta).epsilon
    assert best_epsilon(event, larger.delta).epsilon < larger.epsilon
    anew = quiet_fit(fitted(name).set_params(warm_start=False)).privacy_report_
    assert 1.9 < anew.epsilon <= 2.0
    given = {"step_size": 1e-4} if name == "SGLDRegressor" else {"noise_multiplier": 3.0}
    model = fitted(name)
    more = quiet_fit(model.set_params(epsilon=None, **given)).privacy_report_
    assert more.epsilon > 2.0  # and the report says so


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(CONTINUING, 1))
def test_the_rest_of_a_target_comes_with_its_price(name: str) -> None:
    model = fitted(name)
    noise = model.privacy_report_.noise_multiplier
    with pytest.warns(CostlyTargetWarning, match="times that of earlier steps") as seen:
        quiet_fit(model.set_params(epsilon=2.2))
    assert model.privacy_report_.epsilon <= 2.2
    (warning,) = [each for each in seen if each.category is CostlyTargetWarning]
    assert warning.filename.endswith("private_learners.py")  # where fit was called
    assert f"({noise:.4g})" in str(warning.message)
    factor = float(str(warning.message).split(" times that")[0].split()[-1])
    assert factor >= 2
    # The factor by another way: the report has the old steps and the new ones.
    event = model.privacy_report_.event
    assert isinstance(event, Composed)
    if name != "SGLDRegressor":
        assert model.noise_multiplier_ == pytest.approx(factor * noise, rel=0.05)  # two digits


def test_sgld_counts_earlier_fits_in_its_target() -> None:
    """Two fits with a target of 1.5 cost 3 together in earlier days, or the root of two times as much."""
    settings: dict[str, Any] = {"clip": 1.0, "n_chains": 1, "batch_size": 60, "order": "cyclic", "n_steps": 100}
    model = SGLDRegressor(epsilon=1.5, warm_start=True, **settings).fit(X, Y)
    with pytest.raises(InputError, match="warm_start=False"):
        model.fit(X, Y)
    free = SGLDRegressor(step_size=1e-4, warm_start=True, **{**settings, "clip": None}).fit(X, Y)
    with pytest.raises(InputError, match="warm_start=False") as refused:
        free.set_params(clip=1.0, step_size=None, epsilon=1.5).fit(X, Y)
    assert "after steps without noise" in str(refused.value)
    assert free.set_params(warm_start=False).fit(X, Y).privacy_report_.epsilon <= 1.5


@cache
def _spent_classifier() -> DPSGDClassifier:
    return DPSGDClassifier(epsilon=2.0, n_steps=12, batch_size=20, classes=[0, 1]).fit(X, LABELS)


def spent_classifier() -> DPSGDClassifier:
    return deepcopy(_spent_classifier())


@pytest.mark.slow
def test_a_spent_target_takes_no_more_steps_and_says_so() -> None:
    model = spent_classifier()
    report, learned = model.privacy_report_, model.coef_.copy()
    with pytest.warns(SpentTargetWarning, match="for the target epsilon 2") as seen:
        assert model.partial_fit(X, LABELS) is model
    assert seen[0].filename == __file__
    assert model.privacy_report_ is report
    assert model.n_steps_ == 12
    np.testing.assert_array_equal(model.coef_, learned)
    with pytest.raises(InputError, match="at most 0, the rest of the "):
        model.partial_fit(X, LABELS, n_steps=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "limit"),
    corners([({"n_steps": 18, "epsilon": 3.0}, 3.0), ({"epsilon": None, "noise_multiplier": 5.0}, 20.0)], 1),
)
def test_the_calls_that_the_warning_names_work(change: dict[str, Any], limit: float) -> None:
    model = spent_classifier().set_params(**change).partial_fit(X, LABELS)
    assert model.n_steps_ == 15
    assert 2.0 < model.privacy_report_.epsilon <= limit


@pytest.mark.slow
def test_more_steps_alone_do_not_stretch_a_spent_target() -> None:
    """Sibling of the warm start: a larger n_steps has the noise found anew, for steps that have nothing left."""
    model = spent_classifier().set_params(n_steps=24)
    with pytest.raises(InputError, match=r"epsilon must be .*; got 2, of which earlier calls have spent") as refused:
        model.partial_fit(X, LABELS)
    assert "noise_multiplier in its place" in str(refused.value)
    assert model.n_steps_ == 12
    assert model.set_params(epsilon=4.0).partial_fit(X, LABELS, n_steps=12).privacy_report_.epsilon <= 4.0


@pytest.mark.slow
def test_one_target_in_parts_needs_no_more_noise() -> None:
    whole = spent_classifier()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = DPSGDClassifier(epsilon=2.0, n_steps=12, batch_size=20, classes=[0, 1])
        for _ in range(4):
            parts.partial_fit(X, LABELS, n_steps=3)
    assert parts.noise_multiplier_ == whole.noise_multiplier_
    assert parts.privacy_report_.epsilon == whole.privacy_report_.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(estimators_with("epsilon"), 0, 7, 9))
def test_the_noise_of_equal_fits_is_searched_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other numbers are another search, and so is the rest of a target that earlier calls have used."""
    searched = []

    def counted(make_event: Any, target_epsilon: float, *args: Any, **options: Any) -> Any:
        """A stand-in for the search, which takes seconds."""
        searched.append(target_epsilon)
        return SimpleNamespace(value=30.0 / target_epsilon)

    monkeypatch.setattr(targets, "calibrate", counted)
    targets.least_noise.cache_clear()
    parameters = ESTIMATORS[name].get_params()
    model = clone(ESTIMATORS[name])
    for given in ("noise_multiplier", "step_size", "sigma"):
        model.set_params(**{given: None} if given in parameters else {})
    noises = [
        quiet_fit(clone(model).set_params(epsilon=epsilon, random_state=seed)).privacy_report_.noise_multiplier
        for seed, epsilon in enumerate([3.0, 3.0, 2.0, 3.0])
    ]
    assert searched == [3.0, 2.0]
    assert noises[0] == noises[1] == noises[3] < noises[2]


@pytest.mark.slow
@for_each("name", estimators_with("epsilon", "progress"))
def test_a_search_for_noise_shows_that_it_goes_on_where_bars_are_asked_for(name: str) -> None:
    """Each has another delta, so that none knows its noise from before."""
    for number, shown in enumerate((True, False)):
        settings = {"noise_multiplier": None, "step_size": None, "epsilon": 2.0, "delta": 1.1e-5 + number * 1e-7}
        model = clone(ESTIMATORS[name])
        model.set_params(**{key: value for key, value in settings.items() if key in model.get_params()}, progress=shown)
        with bars_at_once() as terminal:
            quiet_fit(model)
        assert ("finding the noise" in terminal.getvalue()) is shown
