"""Answers that state their interval directly: one A/B decision, few declared queries, and the cost that is shown."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from thresholdout import Thresholdout
from thresholdout.errors import BudgetExhausted, InputError


class Column:
    """A model that says what stands in a column."""

    def __init__(self, column: int) -> None:
        self.column = column
        self.classes_ = np.array([0, 1])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (X[:, self.column] > 0.5).astype(int)


def data(n: int, gain: float, differ: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of predictions; the second is right `gain` more often."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    first = rng.random(n) < 0.8
    sign = rng.choice([-1, 0, 1], size=n, p=[(differ - gain) / 2, 1 - differ, (differ + gain) / 2])
    first = np.where(sign > 0, False, np.where(sign < 0, True, first))
    second = np.where(sign == 0, first, sign > 0)
    return np.column_stack([np.where(right, y, 1 - y) for right in (first, second)] + [rng.random(n)]), y


B, A = Column(1), Column(0)


def guard_of(gain: float = 0.03, n: int = 2000, **declared: Any) -> Thresholdout:
    return Thresholdout(data(n, gain, seed=1), train=data(n, gain, seed=2), sampling="iid", random_state=0, **declared)


def left(guard: Thresholdout) -> float:
    found = guard.status.error_budget_left
    assert found is not None
    return found


def test_a_precise_comparison_is_as_narrow_as_walds_interval_and_says_its_cost() -> None:
    guard = guard_of()
    before = left(guard)
    found = guard.compare(B, A, cv="training", precise=True)
    X, y = data(2000, 0.03, seed=1)
    z = (X[:, 1] == y).astype(float) - (X[:, 0] == y)
    wald = float(norm.isf(0.025)) * z.std() / math.sqrt(z.size)
    assert 1.0 < 0.5 * (found.interval[1] - found.interval[0]) / wald < 1.12
    assert found.interval[0] < z.mean() < found.interval[1]
    assert found.answer.cost is not None
    assert math.log(before / left(guard)) == pytest.approx(found.answer.cost, abs=1e-6)
    assert f"{found!r}".endswith("nats>")


def test_it_is_narrower_than_what_it_replaces_and_what_is_not_settled_says_so() -> None:
    guard = guard_of(0.01)
    wide = guard.compare(B, A, cv="training")
    assert wide.verdict == "not settled"
    assert wide.direct is not None
    half, nats = wide.direct
    assert "precise=True would show" in repr(wide)
    precise = guard.compare(B, A, cv="training", precise=True)
    assert not precise.answer.repeated
    assert 0.5 * (precise.interval[1] - precise.interval[0]) == pytest.approx(half, rel=0.1)
    assert precise.answer.cost == pytest.approx(nats, abs=3.0)
    assert guard.compare(B, A, cv="training", precise=True).answer.repeated


def test_one_declared_comparison_takes_the_whole_budget() -> None:
    found = guard_of(queries=1).compare(B, A, cv="training")
    X, y = data(2000, 0.03, seed=1)
    z = (X[:, 1] == y).astype(float) - (X[:, 0] == y)
    wald = float(norm.isf(0.025)) * z.std() / math.sqrt(z.size)
    assert 1.0 < 0.5 * (found.interval[1] - found.interval[0]) / wald < 1.05
    assert found.answer.cost == math.inf
    assert "all of the error budget" in repr(found)


def test_nothing_is_answered_after_the_only_declared_one() -> None:
    guard = guard_of(queries=1)
    guard.compare(B, A, cv="training")
    with pytest.raises(BudgetExhausted):
        guard.score(A, cv="training")


def test_a_precise_score_is_exact_binomial_at_a_tenth_less() -> None:
    guard = guard_of()
    answer = guard.score(B, cv="training", precise=True)
    X, y = data(2000, 0.03, seed=1)
    right = int((X[:, 1] == y).sum())
    low, high = answer.interval
    for level, end in ((0.05 * 0.9 / 2, low), (0.05 * 0.9 / 2, high)):
        tail = binom.sf(right - 1, 2000, end) if end == low else binom.cdf(right, 2000, end)
        assert 0.9 * level < tail < 1.01 * level
    assert "cost" in repr(answer)


def test_without_claims_nothing_is_precise() -> None:
    guard = Thresholdout(data(2000, 0.0), train=data(2000, 0.0, seed=5), mechanism="ladder", random_state=0)
    with pytest.raises(InputError, match="claims"):
        guard.score(B, cv="training", precise=True)


def test_losses_of_one_law_are_bet_on_in_a_random_order() -> None:
    """Sorted values, too: the guard draws the order."""
    rng = np.random.default_rng(7)
    train, holdout = rng.beta(1.0, 9.0, size=(2, 2000))
    wald = float(norm.isf(0.025)) * holdout.std() / math.sqrt(2000)
    halves = {}
    for sampling in ("iid", "independent"):
        guard = Thresholdout(np.arange(2000.0), sampling=sampling, random_state=0)
        (answer,) = guard.ask_all([(train, np.sort(holdout))], reserve=0.0)
        low, high = answer.interval
        assert low < holdout.mean() < high
        halves[sampling] = 0.5 * (high - low) / wald
    assert halves["iid"] < 1.3 < halves["independent"]
