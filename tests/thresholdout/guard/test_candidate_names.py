"""Rows of the history say which model they are about, and show none of its records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.cases import for_each
from thresholdout import Thresholdout
from thresholdout.errors import InputError
from thresholdout.guard.asking import class_and_parameters

RNG = np.random.default_rng(1)
X = RNG.normal(size=(400, 2))
Y = (X[:, 0] > 0).astype(int)


class Unwilling:
    def get_params(self, deep: bool = True) -> Any:
        raise RuntimeError


NAMES = [
    (LogisticRegression(), "LogisticRegression"),
    (LogisticRegression(C=1), "LogisticRegression(C=1)"),
    (LogisticRegression(C=0.5, solver="saga"), "LogisticRegression(C=0.5, solver='saga')"),
    (MLPClassifier((20, 10)), "MLPClassifier(hidden_layer_sizes=(20, 10))"),
    (DummyClassifier(constant=X), "DummyClassifier(constant=ndarray of shape (400, 2))"),
    (DummyClassifier(constant=[0.123456]), "DummyClassifier(constant=list of 1)"),
    (DummyClassifier(constant="a text that goes on and on"), "DummyClassifier(constant='a text that goes on and ...')"),
    (FunctionTransformer(np.log1p), "FunctionTransformer(func=log1p)"),
    (make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)),
     "Pipeline(StandardScaler, DecisionTreeClassifier(max_depth=2))"),
    (CalibratedClassifierCV(LogisticRegression(C=2.0)), "CalibratedClassifierCV(estimator=LogisticRegression(C=2.0))"),
    (Unwilling(), "Unwilling"),
    (object(), "object"),
]  # fmt: skip


@for_each(("model", "name"), NAMES, ids=[name for _, name in NAMES])
def test_names(model: Any, name: str) -> None:
    assert class_and_parameters(model) == name


def test_names_end() -> None:
    model: Any = LogisticRegression()
    for _ in range(9):
        model = CalibratedClassifierCV(model)
    assert len(class_and_parameters(model)) == 120
    assert class_and_parameters(model).endswith("...")


def tree(depth: int) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[200:], Y[200:])


def test_history_knows_its_candidates() -> None:
    guard = Thresholdout((X[:200], Y[:200]), train=(X[200:], Y[200:]))
    one, stump = "DecisionTreeClassifier(max_depth=1, random_state=0)", tree(1)
    assert guard.score(stump, cv="training").candidate == one
    guard.score(tree(2), cv="training", name="the deeper tree")
    guard.compare(stump, tree(3), cv="training")
    guard.compare(tree(3), stump, cv="training", name="against the stump")
    guard.score_all([tree(4), tree(5)], cv="training")
    guard.compare_all({"six": tree(6)}, stump, cv="training")
    guard.gate(stump).propose(tree(7), cv="training")
    search = GridSearchCV(tree(1), {"max_depth": [8]}, scoring=guard.scorer(cv="training"), cv=guard.split())
    search.fit(X[200:], Y[200:])
    guard.final_check(tree(2), cv="training", name="the end")
    assert guard.history["candidate"].tolist() == [
        one, "the deeper tree", f"{one} against {one.replace('1', '3', 1)}", "against the stump",
        one.replace("1", "4", 1), one.replace("1", "5", 1), "six", one.replace("1", "7", 1), one.replace("1", "8", 1),
        "the end",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"name must be .*; got a text of 10,001 characters"):
        guard.score(tree(9), cv="training", name="x" * 10_001)


def test_the_best_of_models_that_are_described_alike_is_told_by_its_place() -> None:
    guard = Thresholdout((X[:200], Y[:200]), train=(X[200:], Y[200:]))
    wrong = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X[200:], 1 - Y[200:])
    (best,) = guard.score_all([wrong, tree(1)], cv="training", report="best")
    assert best.candidate == "DecisionTreeClassifier(max_depth=1, random_state=0), number 2"
