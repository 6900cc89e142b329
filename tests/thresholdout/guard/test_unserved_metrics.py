"""A ladder tells the best score so far: it keeps to one direction, and searches refuse it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from tests.cases import for_each
from thresholdout import InputError, KFoldGuard, Thresholdout
from thresholdout.mechanisms import LadderParameters
from thresholdout.model_selection import GuardedObjective, GuardedSearchCV, GuardedStopping, LightGBMEval

N = 400
RNG = np.random.default_rng(0)
Y = RNG.random(2 * N) < 0.5
X = np.stack([np.where(RNG.random(2 * N) < 0.95, Y, ~Y), RNG.random(2 * N)], axis=1).astype(float)
TRAIN, HOLDOUT = (X[:N], Y[:N]), (X[N:], Y[N:])
GRID = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, cv=2)
GOOD, BAD = DecisionTreeClassifier(max_depth=1).fit(*TRAIN), DummyClassifier(strategy="constant", constant=True)
BAD.fit(*TRAIN)


def made(mechanism: Any) -> Thresholdout:
    return Thresholdout(HOLDOUT, train=TRAIN, queries=50, mechanism=mechanism)


def folds(mechanism: Any) -> KFoldGuard:
    return KFoldGuard((X, Y), cv=2, queries=50, mechanism=mechanism)


TOOLS: dict[str, Callable[[str], object]] = {
    "scorer": lambda mechanism: made(mechanism).scorer("accuracy", cv="training"),
    "several metrics": lambda mechanism: made(mechanism).scorer(["accuracy", "zero_one_loss"], cv="training"),
    "search": lambda mechanism: GuardedSearchCV(GRID, made(mechanism)).fit(*TRAIN),
    "search over folds": lambda mechanism: GuardedSearchCV(GRID, folds(mechanism)).fit(X, Y),
    "optuna": lambda mechanism: GuardedObjective(made(mechanism), lambda trial: GOOD, cv="training"),
    "early stopping": lambda mechanism: GuardedStopping(made(mechanism)),
    "early stopping by rounds": lambda mechanism: GuardedStopping(made(mechanism), ask="rounds"),
    "boosting": lambda mechanism: LightGBMEval(made(mechanism)),
}


@pytest.mark.slow
@for_each("tool", TOOLS)
def test_tools_that_need_each_candidates_score_refuse_a_ladder(tool: str) -> None:
    with pytest.raises(InputError, match=r"guard must be .*; got a ladder, .* not each candidate's"):
        TOOLS[tool]("ladder")
    TOOLS[tool]("claims")  # what the message names
    assert made("ladder").score(GOOD, "accuracy", cv="training").about == "best"


def test_a_refused_search_has_asked_nothing() -> None:
    guard = made("ladder")
    with pytest.raises(InputError, match="a ladder"):
        GuardedSearchCV(GRID, guard).fit(*TRAIN)
    assert guard.history.empty


@for_each("make", [made, folds])
def test_the_direction_of_the_metric_counts(make: Callable[[Any], Any]) -> None:
    """A ladder for scores told the largest loss as the best."""
    how: dict[str, Any] = {"cv": "training"} if make is made else {}
    estimators = (GOOD, BAD) if make is made else (DecisionTreeClassifier(max_depth=1), BAD)
    with pytest.raises(InputError, match=r"A guard with mechanism=LadderParameters\(direction='minimize'"):
        make("ladder").score(estimators[0], "zero_one_loss", **how)
    losses = make(LadderParameters(direction="minimize", queries=50))  # what the message names
    told = [losses.score(estimator, "zero_one_loss", **how) for estimator in estimators]
    assert told[0].value == told[1].value < 0.2  # the constant is wrong half of the time, and not the best
    with pytest.raises(InputError, match=r"A guard with mechanism=LadderParameters\(direction='maximize'"):
        losses.score(estimators[0], "accuracy", **how)
    scores = make("ladder")
    assert [scores.score(estimator, "accuracy", **how).value > 0.8 for estimator in estimators] == [True, True]


def test_answers_are_within_a_finite_tolerance() -> None:
    guard = made("ladder")
    assert guard.certificate.tolerance < 1.0
    for estimator in (GOOD, BAD, GOOD):
        assert guard.score(estimator, "accuracy", cv="training").half_width <= guard.certificate.tolerance
