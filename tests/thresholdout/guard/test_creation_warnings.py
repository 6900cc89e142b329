"""What is said when a guard is made that will not do what its user may expect of it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs import Groups, MovingWindow
from thresholdout import KFoldGuard, MechanismWarning, PriorLooks, Thresholdout, WideAnswersWarning, plan
from thresholdout.ledger import MemoryLedger


def said(n: int, **declared: Any) -> list[str]:
    """Return the warnings of a guard that is made of so many records."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Thresholdout(np.arange(float(n)), **declared)
    assert all(Path(warning.filename).name == "test_creation_warnings.py" for warning in caught)
    return [str(warning.message) for warning in caught]


WIDE: list[tuple[int, dict[str, Any]]] = [
    (20, {}),
    (50, {}),
    (50, {"queries": 100}),
    (50, {"queries": 1000, "mechanism": "guess-and-check"}),
    (300, {"looks": 20}),
    (1000, {"dependence": Groups([record // 25 for record in range(1000)])}),
    (50, {"mechanism": "gaussian", "queries": 20}),
    (200, {"mechanism": "splitting", "queries": 20, "identically_distributed": True}),
    (300, {"private": 1.0}),
    (100, {"threshold": 0.2, "noise_scale": 0.1, "budget": 1, "queries": 10}),
]
NARROW: list[tuple[int, dict[str, Any]]] = [
    (50, {"queries": 1}),
    (100, {}),
    (300, {}),
    (300, {"queries": 1000}),
    (300, {"looks": PriorLooks(1, 20)}),
    (300, {"mechanism": "ladder"}),
    (1000, {"dependence": Groups([record // 5 for record in range(1000)])}),
    (3000, {"mechanism": "gaussian", "queries": 20}),
    (20_000, {"threshold": 0.08, "noise_scale": 0.004, "budget": 1, "queries": 10}),
]


@pytest.mark.parametrize(("n", "declared"), WIDE, ids=str)
def test_intervals_over_half_of_the_range_are_said_once(n: int, declared: dict[str, Any]) -> None:
    (message,) = said(n, **declared)
    assert message.startswith("the answers of this guard will say next to nothing: ")
    assert "one look at the end (final_check). thresholdout.plan says by how much" in message
    assert ("scores that were seen before (looks=)" in message) == ("looks" in declared)


@pytest.mark.parametrize(("n", "declared"), NARROW, ids=str)
def test_intervals_that_say_something_are_no_news(n: int, declared: dict[str, Any]) -> None:
    assert said(n, **declared) == []


@pytest.mark.parametrize(("n", "queries"), [(n, queries) for n in (50, 60, 70, 80, 100) for queries in (20, 100, 1000)])
def test_it_is_what_a_plan_expects_on_the_average(n: int, queries: int) -> None:
    expected = plan(n, queries=queries, expected=0.8, mechanism="thresholdout").half_width
    if abs(expected - 0.25) > 0.01:
        assert bool(said(n, queries=queries)) == (expected > 0.25)


def test_a_guard_that_is_opened_again_says_it_no_more() -> None:
    ledger = MemoryLedger()
    assert len(said(50, ledger=ledger)) == 1
    assert said(50, ledger=ledger) == []


def test_folds_say_it_too() -> None:
    X, y = np.arange(400.0).reshape(200, 2), np.arange(200) % 2
    with pytest.warns(WideAnswersWarning, match="any number of questions to 100 out-of-fold values"):
        KFoldGuard(X[:100], y[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KFoldGuard(np.arange(4000.0).reshape(2000, 2), np.arange(2000) % 2)


class Unlimited(MovingWindow):
    """Records of which no deviation of a mean can be bounded, but leakage can."""

    inflation_methods = ("components",)

    def effective_records(self) -> float | None:  # type: ignore[override]
        return None


def test_another_mechanism_than_the_default_is_said() -> None:
    n = 40_000
    model, records = Unlimited(n, 1), np.arange(float(n))
    with pytest.warns(
        MechanismWarning, match=r"Algorithm 1 answers, by its privacy, 50 questions and 3 of them"
    ) as caught:
        guard = Thresholdout(records, dependence=model, queries=50, budget=3)
    assert [Path(warning.filename).name for warning in caught] == ["test_creation_warnings.py"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Thresholdout(records, dependence=model, mechanism=guard.parameters)
        Thresholdout(records, queries=50, budget=3)
