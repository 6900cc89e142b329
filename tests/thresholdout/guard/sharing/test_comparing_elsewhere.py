"""Models that are compared from other processes than the guard's."""

import os
from typing import Any

import joblib
import pytest
from sklearn.tree import DecisionTreeClassifier

from tests.thresholdout.guard.sharing.test_shared_objects import in_workers, make
from thresholdout.guard.remote_guard import RemoteGuard
from thresholdout.guard.sharing.shared_objects import reference_of


def compared(guard: Any) -> tuple[Any, ...]:
    """Compare models, alone and in a list, and say in which process."""
    models = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(*guard.train) for depth in (1, 8)]
    found = guard.compare(models[1], models[0], cv=2)
    listed = guard.compare_all(dict(zip("ab", models, strict=True)), models[0], about="win_rate", cv=2, reserve=0.5)
    return os.getpid(), found, listed


@pytest.mark.slow
def test_models_are_compared_from_other_processes() -> None:
    guard = make(queries=None, mechanism=None, sampling="iid")
    ((process, found, listed),) = in_workers([joblib.delayed(compared)(guard)])
    assert process != os.getpid()
    assert [one.verdict for one in (found, *listed)] == ["better", "not settled", "better"]
    assert [one.candidate for one in listed] == ["a", "b"]
    alone, *named = guard.history["candidate"]
    assert named == ["a", "b"]
    assert alone == " against ".join(f"DecisionTreeClassifier(max_depth={depth}, random_state=0)" for depth in (8, 1))
    assert guard.history["key"].is_unique


def test_a_comparison_that_got_lost_is_not_charged_twice() -> None:
    guard = make(queries=None, mechanism=None)
    reference = reference_of(guard)
    models = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(*guard.train) for depth in (1, 8)]
    remote = RemoteGuard(reference)
    first = remote.compare(models[1], models[0], key="one", cv="training")
    again = remote.compare(models[1], models[0], key="one", cv="training")
    lists = [remote.compare_all(models, models[0], keys=["two", "three"], cv="training") for _ in range(2)]
    assert first.interval == again.interval
    assert [one.interval for one in lists[0]] == [one.interval for one in lists[1]]
    assert len(guard.history) == 3
