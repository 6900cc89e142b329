"""Queries that were fixed together: as narrow as a list, all or none, and what is left afterwards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout import BudgetExhausted, Claims, InputError, SeededNoise, Thresholdout
from thresholdout.mechanisms import ClaimsMechanism, ClaimsParameters, Known

N = 400
BINARY = Known(binary=True)


def right(count: int) -> NDArray[np.bool_]:
    return np.arange(N) < count


def clopper_pearson(count: int, level: float) -> tuple[float, float]:
    low = beta.ppf(level / 2, count, N - count + 1) if count else 0.0
    high = beta.ppf(1 - level / 2, count + 1, N - count) if count < N else 1.0
    return float(low), float(high)


def test_a_list_is_as_narrow_as_exact_intervals_for_its_queries() -> None:
    counts = [100, 200, 371, 399, 400]
    guard = Thresholdout(np.arange(float(N)))
    answers = guard.ask_all([(0.5, right(count)) for count in counts], binary=True, reserve=0)
    for answer, count in zip(answers, counts, strict=True):
        low, high = clopper_pearson(count, 0.05 / len(counts))
        assert answer.value == pytest.approx(count / N, abs=1e-12)
        assert answer.interval[0] <= low + 1e-15
        assert answer.interval[1] >= high - 1e-15
        if count < N - 1:  # different laws cost something at one failure, see `thresholdout.limits.binomial`
            assert answer.interval == pytest.approx((low, high), abs=1e-5)


def test_all_are_entered_together_or_none(tmp_path: Path) -> None:
    guard = Thresholdout(np.arange(float(N)), ledger=tmp_path / "guard.db")
    guard.ask_all([(0.5, right(100)), (0.5, right(200))], names=["a", "b"], keys=["1", "2"], binary=True)
    assert guard.history[["name", "list", "source"]].to_numpy().tolist() == [["a", 1, "holdout"], ["b", 1, "holdout"]]
    with pytest.raises(InputError, match="holdout_values"):
        guard.ask_all([(0.5, right(100)), (0.5, right(200)[:-1])])
    assert len(guard.history) == 2
    before = guard.status.error_budget_left
    again = guard.ask_all([(0.5, right(100)), (0.5, right(200))], names=["a", "b"], keys=["1", "2"], binary=True)
    assert [answer.repeated for answer in again] == [True, True]
    assert guard.status.error_budget_left == before


def test_limits_count_every_query_of_a_list() -> None:
    guard = Thresholdout(np.arange(float(N)), queries=3)
    guard.ask(0.5, right(200))
    with pytest.raises(BudgetExhausted):
        guard.ask_all([(0.5, right(k)) for k in (100, 200, 300)], binary=True)
    assert len(guard.history) == 1
    assert len(guard.ask_all([(0.5, right(k)) for k in (100, 200)], binary=True)) == 2


def test_nothing_is_left_after_a_last_list_and_something_otherwise() -> None:
    last, other = (Thresholdout(np.arange(float(N))) for _ in range(2))
    last.ask_all([(0.5, right(200))], binary=True, reserve=0)
    with pytest.raises(BudgetExhausted):
        last.ask(0.5, right(200))
    other.ask_all([(0.5, right(200))], binary=True, reserve=0.2)
    assert other.status.information_released is not None
    assert math.log(5) < other.status.information_released < math.log(5) + 6.0
    assert other.ask(0.5, right(210), binary=True).half_width < 0.2


@for_each("reserve", [-0.1, 1.0, True, "0.2", float("nan")])
def test_refuses_shares_that_are_none(reserve: object) -> None:
    guard = Thresholdout(np.arange(float(N)))
    with pytest.raises(InputError, match="reserve"):
        guard.ask_all([(0.5, right(200))], reserve=reserve)  # type: ignore[arg-type]
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-9)


def test_refuses_empty_lists_and_lists_of_other_lengths() -> None:
    guard = Thresholdout(np.arange(float(N)))
    with pytest.raises(InputError, match=r"queries must be .*; got an empty list"):
        guard.ask_all([])
    with pytest.raises(InputError, match=r"names must be .*; got a list of 1"):
        guard.ask_all([(0.5, right(1)), (0.5, right(2))], names=["a"])
    with pytest.raises(InputError, match=r"mechanism must be 'claims' for a list of queries; got a ladder"):
        Thresholdout(np.arange(1e4), queries=5, mechanism="ladder").ask_all([(0.5, np.arange(1e4) < 9)])


class Constant:
    """A model that says the same of every record."""

    classes_ = np.array([0, 1])

    def __init__(self, label: int, fails: Callable[[int], bool] = lambda n: False) -> None:
        self.label, self.fails = label, fails

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.fails(len(X)):
            raise ValueError("labels: 0 1 1 0")
        return np.full(len(X), self.label)


def labelled() -> Thresholdout:
    y = (np.arange(N + 100) % 10 < 7).astype(int)
    X = np.arange(float(N + 100))[:, None]
    return Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]))


def test_only_the_best_is_told() -> None:
    guard = labelled()
    (best,) = guard.score_all({"zero": Constant(0), "one": Constant(1)}, report="best", reserve=0.2, cv="training")
    low, high = clopper_pearson(280, (1 - 0.2 - 2.0**-19) * 0.05 / 2)
    assert best.value == pytest.approx(0.7)
    assert best.interval == pytest.approx((low, high), abs=1e-5)
    assert guard.history["candidate"].tolist() == ["one"]
    assert len(guard.history) == 1
    (worst,) = labelled().score_all(
        {"zero": Constant(0), "one": Constant(1)}, "zero_one_loss", report="best", reserve=0, cv="training"
    )
    assert worst.value == pytest.approx(0.3)


def test_a_failure_of_one_is_charged_and_shows_nothing() -> None:
    guard = labelled()
    with pytest.raises(InputError) as caught:
        guard.score_all([Constant(0), Constant(1, fails=lambda n: n == N)], cv="training")
    assert "labels" not in str(caught.value)
    assert caught.value.__context__ is None
    assert guard.history["source"].tolist() == ["failed"]


def test_an_interrupted_list_is_charged_though_somebody_else_has_its_best_meanwhile() -> None:
    """The stored answer, or an interrupt instead: which of them comes would tell a bit for nothing."""
    guard = labelled()

    class Interrupting(Constant):
        def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
            if len(X) == N:
                guard.score_all(
                    {"one": Constant(1), "zero": Constant(0)}, report="best", keys=["a", "b"], cv="training"
                )
                raise KeyboardInterrupt
            return super().predict(X)

    with pytest.raises(KeyboardInterrupt):
        guard.score_all({"one": Constant(1), "zero": Interrupting(0)}, report="best", keys=["a", "b"], cv="training")
    assert guard.history["source"].tolist() == ["holdout", "failed"]


LONG = "x" * 10_001


@for_each(
    ("ask", "seen"),
    [
        (
            lambda guard, one: guard.score_all([one, Constant(0)], keys=["a", "a"], cv="training"),
            "two queries with the key 'a'",
        ),
        (
            lambda guard, one: guard.score_all([one, Constant(0)], keys=["a", LONG], cv="training"),
            "key must be .*; got a text of 10,001 characters",
        ),
        (
            lambda guard, one: guard.score_all({LONG: one, "b": Constant(0)}, cv="training"),
            "candidate must be .*; got a text of 10,001 characters",
        ),
        (
            lambda guard, one: guard.score_all({"\0": one, "b": Constant(0)}, report="best", cv="training"),
            "candidate must be .*; got text with a NUL",
        ),
        (
            lambda guard, one: guard.score_all({"a": one, "\0": Constant(0)}, report="best", cv="training"),
            "candidate must be .*; got text with a NUL",
        ),
        (
            lambda guard, one: guard.compare_all({LONG: one}, Constant(0), cv="training"),
            "candidate must be .*; got a text of 10,001 characters",
        ),
        (
            lambda guard, one: guard.gate(Constant(0)).propose(one, name=LONG, cv="training"),
            "name must be .*; got a text of 10,001",
        ),
    ],
)
@for_each("fails", [False, True])
def test_texts_that_no_ledger_takes_are_refused_before_anything_is_computed(
    ask: Callable[[Thresholdout, Constant], object], seen: str, fails: bool
) -> None:
    """Afterwards, a refusal would tell for nothing that nothing has failed, or whose value is the best."""
    guard = labelled()
    before = guard.status.error_budget_left
    with pytest.raises(InputError, match=seen):
        ask(guard, Constant(1, fails=lambda n: fails and n == N))
    assert (guard.status.error_budget_left, len(guard.history)) == (before, 0)


def test_the_best_of_models_with_other_names_is_another_query() -> None:
    """What is told is a name, which has to be one of those that were asked about."""
    guard = labelled()
    guard.score_all({"zero": Constant(0), "one": Constant(1)}, report="best", keys=["a", "b"], cv="training")
    (again,) = guard.score_all(
        {"first": Constant(0), "second": Constant(1)}, report="best", keys=["a", "b"], cv="training"
    )
    assert (again.candidate, again.repeated) == ("second", False)


def test_what_is_left_after_a_list_never_sums_to_more_than_was_kept() -> None:
    """By enumeration: over all that a list of two queries can tell, the risks that are left, one by one."""
    n, reserve, noise = 6, 0.25, SeededNoise(0)
    mechanism = ClaimsMechanism(ClaimsParameters(), n)
    start = mechanism.start(noise)
    left = 0.0
    for first in range(n + 1):
        for second in range(n + 1):
            readings = [
                (train, mechanism.read(np.arange(n) < count, n, (0.0, 1.0), "values", BINARY))
                for train, count in ((0.3, first), (0.9, second))
            ]
            state, _ = mechanism.step_all(start, readings, noise, reserve)
            left += math.exp(state.log_error_budget - start.log_error_budget)
    assert 0.1 * reserve < left <= reserve


@sizes("n", 12, 40)
def test_what_intervals_by_bets_leave_never_sums_to_more_than_was_kept(n: int) -> None:
    """A list of one query about values of 0, 1/2 and 1: over all intervals that n records can show."""
    reserve, noise = 0.25, SeededNoise(0)
    mechanism = ClaimsMechanism(ClaimsParameters(), n)
    start = mechanism.start(noise)
    outcomes = {}
    for zeros, ones in itertools.product(range(n + 1), repeat=2):
        if zeros + ones > n:
            continue
        values = np.repeat([0.0, 0.5, 1.0], [zeros, n - zeros - ones, ones])
        reading = mechanism.read(values, n, (0.0, 1.0), "values", Known(variance=0.05))
        state, (outcome,) = mechanism.step_all(start, [(0.6, reading)], noise, reserve)
        outcomes[outcome.interval] = math.exp(state.log_error_budget - start.log_error_budget)
    assert len(outcomes) > 2.5 * n
    assert sum(outcomes.values()) <= reserve


def test_what_the_best_leaves_never_sums_to_more_than_was_kept() -> None:
    n, reserve, noise = 6, 0.25, SeededNoise(0)
    mechanism = ClaimsMechanism(ClaimsParameters(), n)
    start = mechanism.start(noise)
    outcomes = {}
    for first in range(n + 1):
        for second in range(n + 1):
            readings = [
                (train, mechanism.read(np.arange(n) < count, n, (0.0, 1.0), "values", BINARY))
                for train, count in ((0.3, first), (0.9, second))
            ]
            state, outcome, place = mechanism.step_best(start, readings, noise, reserve, True)
            outcomes[place, outcome.value] = math.exp(state.log_error_budget - start.log_error_budget)
    assert 0.1 * reserve < sum(outcomes.values()) <= reserve


@pytest.mark.statistical
@pytest.mark.parametrize("binary", corners([True, False], 0))
def test_truths_of_lists_are_covered(binary: bool) -> None:
    """Lists of 5: at most 5 % are broken, by an exact limit at 1e-9, which lists of a quarter of the width exceed."""
    rng, noise, broken, narrow = np.random.default_rng(1), SeededNoise(1), 0, 0
    lists, n, truths = 3000 if binary else 1000, 60, np.array([0.05, 0.3, 0.5, 0.8, 0.95])
    mechanism = ClaimsMechanism(ClaimsParameters(), n)
    known = BINARY if binary else Known(variance=0.04)
    for _ in range(lists):
        ones, shares = rng.random((5, n)) < truths[:, None], rng.beta(4 * truths, 4 * (1 - truths), size=(n, 5)).T
        values = list(ones if binary else shares)
        readings = [
            (float(truth), mechanism.read(value, n, (0.0, 1.0), "values", known))
            for truth, value in zip(truths, values, strict=True)
        ]
        _, outcomes = mechanism.step_all(mechanism.start(noise), readings, noise, 0.0)
        intervals = np.array([outcome.interval for outcome in outcomes])
        broken += bool(((truths < intervals[:, 0]) | (truths > intervals[:, 1])).any())
        middle, half = intervals.mean(axis=1), (intervals[:, 1] - intervals[:, 0]) / 8
        narrow += bool((abs(truths - middle) > half).any())
    assert beta.ppf(1e-9, max(broken, 1), lists + 1 - broken) <= 0.05 < beta.ppf(1e-9, narrow, lists + 1 - narrow)
    assert narrow > lists / 3


def test_the_best_is_told_once_for_the_same_keys_and_costs_one_answer() -> None:
    guard = labelled()
    models = {"zero": Constant(0), "one": Constant(1)}
    (first,) = guard.score_all(models, report="best", keys=["a", "b"], cv="training")
    left = guard.status.error_budget_left
    (again,) = guard.score_all(models, report="best", keys=["a", "b"], cv="training")
    assert again.repeated
    assert again.interval == first.interval
    assert guard.status.error_budget_left == left
    assert len(guard.history) == 1
    y = (np.arange(N + 100) % 10 < 7).astype(int)
    X = np.arange(float(N + 100))[:, None]
    single = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), mechanism=Claims(holdout_answers=1))
    assert len(single.score_all(models, report="best", cv="training")) == 1
    assert single.status.answers_left == 0


@for_each(
    ("queries", "changes", "seen"),
    [
        ({"a": (0.5, right(2))}, {}, "queries must be .*; got a dict"),
        ([0.5], {}, "queries must be .*; got a list of other items"),
        ([(0.5, right(2))], {"names": "x"}, "names must be .*; got a str"),
        ([(0.5, right(2))], {"keys": {"a": 1}}, "keys must be .*; got a dict"),
        ([(0.5, right(2))], {"reserve": 0.9999999}, "reserve must be .*; got 0.9999999"),
    ],
)
def test_lists_of_other_kinds_are_refused_in_words(queries: object, changes: dict[str, object], seen: str) -> None:
    guard = Thresholdout(np.arange(float(N)))
    with pytest.raises(InputError, match=seen):
        guard.ask_all(queries, **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"models must be .*; got a Constant"):
        labelled().score_all(Constant(0), cv="training")  # type: ignore[arg-type]
    assert len(guard.history) == 0
