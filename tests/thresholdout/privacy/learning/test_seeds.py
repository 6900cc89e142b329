"""A report says that its noise can be computed, for every public learner and every kind of `random_state`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.privacy.learning.private_learners import (
    ESTIMATORS,
    RUNS,
    WITHOUT_REPORT,
    X,
    Y,
    estimators_with,
    quiet_fit,
    random_names,
)
from thresholdout.privacy.learning import DPSGDRegressor, PrivacyReport, SGLDRegressor

KNOWN: dict[str, Callable[[], Any]] = {
    "int": lambda: 7,
    "numpy int": lambda: np.int64(7),
    "Generator": lambda: np.random.default_rng(7),
    "RandomState": lambda: np.random.RandomState(7),
}
FRESH: dict[str, Callable[[], Any]] = {"None": lambda: None, "numpy.random": lambda: np.random}


def report(name: str, random_state: Any) -> PrivacyReport:
    if name in RUNS:
        return RUNS[name](random_state)
    return quiet_fit(clone(ESTIMATORS[name]).set_params(random_state=random_state)).privacy_report_  # type: ignore[no-any-return]


def says_so(found: PrivacyReport) -> bool:
    return any(words.startswith("random_state stays secret") for words in found.assumptions)


def test_every_public_learner_is_here() -> None:
    assert {*ESTIMATORS, *RUNS} | set(WITHOUT_REPORT) == random_names()
    assert set(ESTIMATORS) == set(estimators_with())


@for_each("name", [*ESTIMATORS, *RUNS])
@pytest.mark.parametrize("kind", corners(KNOWN, 0))
def test_noise_from_a_seed_is_an_assumption(name: str, kind: str) -> None:
    found = report(name, KNOWN[kind]())
    assert found.private
    assert says_so(found)
    assert sum("random_state" in words for words in found.assumptions) == 1


@for_each("name", [*ESTIMATORS, *RUNS])
@for_each("kind", FRESH)
def test_fresh_noise_is_none(name: str, kind: str) -> None:
    found = report(name, FRESH[kind]())
    assert found.private
    assert not any("random_state" in words for words in found.assumptions)


@for_each("name", [*ESTIMATORS, *RUNS])
def test_a_public_number_of_neighbours_is_an_assumption(name: str) -> None:
    found = report(name, None)
    assert found.adjacency == "replace_one"
    assert f"the number of {found.unit}s is public" in found.assumptions


@for_each("name", estimators_with("warm_start"))
def test_what_was_assumed_of_the_first_fit_is_assumed_of_all(name: str) -> None:
    model = clone(ESTIMATORS[name]).set_params(random_state=7, warm_start=True)
    quiet_fit(model)
    found = quiet_fit(model.set_params(random_state=None)).privacy_report_
    assert says_so(found)
    assert any("how many calls there are" in words for words in found.assumptions)
    assert len(set(found.assumptions)) == len(found.assumptions)


def test_the_learners_that_continue_are_known() -> None:
    assert set(estimators_with("warm_start")) == {"DPSGDClassifier", "DPSGDRegressor", "SGLDRegressor"}
    for model in (DPSGDRegressor(noise_multiplier=3.0, n_steps=2, batch_size=60), clone(ESTIMATORS["SGLDRegressor"])):
        assert isinstance(model, (DPSGDRegressor, SGLDRegressor))
        once = model.fit(X, Y).privacy_report_
        assert not any("how many calls there are" in words for words in once.assumptions)
