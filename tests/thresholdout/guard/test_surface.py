"""The surface of the guard: the names and arguments that a reader has to learn."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout import KFoldGuard, Thresholdout

QUERIES = {"ask", "ask_all", "score", "score_all", "compare", "compare_all", "final_check", "gate", "scorer", "split"}
STATE = {"certificate", "status", "releases", "history", "report", "n", "dependence", "parameters", "train", "join"}
OPEN = {"development", "development_score"}


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_a_guard_has_its_names_and_fifteen_arguments() -> None:
    guard = Thresholdout(np.arange(1000.0))
    assert public(guard) | {"train"} == QUERIES | STATE | OPEN
    assert len(QUERIES | STATE | OPEN) == 22
    arguments = inspect.signature(Thresholdout).parameters
    assert list(arguments) == [
        "holdout",
        "train",
        "development",
        "groups",
        "dependence",
        "sampling",
        "confidence",
        "queries",
        "final_check",
        "mechanism",
        "epsilon",
        "prior_queries",
        "ledger",
        "random_state",
        "allow_duplicates",
    ]
    assert list(inspect.signature(Thresholdout.ask).parameters)[1:] == [
        "train_values",
        "holdout_values",
        "bounds",
        "name",
        "key",
        "binary",
    ]


def test_a_guard_of_folds_has_the_same_words() -> None:
    arguments = set(inspect.signature(KFoldGuard).parameters) - {"records", "cv"}
    assert arguments < set(inspect.signature(Thresholdout).parameters)
    assert public(KFoldGuard) - {"answers", "folds"} < QUERIES | STATE


@for_each("name", ["budget", "noise", "looks", "given", "order", "graph", "train_groups", "documents"])
def test_other_words_are_no_arguments(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        Thresholdout(np.arange(1000.0), **{name: None})  # type: ignore[arg-type]
