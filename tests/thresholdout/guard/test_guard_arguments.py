"""How a guard is declared: its parameters, their defaults, and the arguments that are refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier

from graphs import Groups, Independent, MarkovChain, MovingWindow
from tests.cases import for_each
from tests.thresholdout.guards import N, data, make
from thresholdout import Answer, BudgetExhausted, Claims, SparseVector, Thresholdout, certify
from thresholdout.errors import (
    InputError,
    InputTypeError,
    LedgerMismatch,
    OverlapError,
)
from thresholdout.guard import registration
from thresholdout.mechanisms import (
    ClaimsParameters,
    SparseVectorParameters,
)
from thresholdout.planning.algorithm_1 import algorithm_1


def test_parameters_by_hand() -> None:
    guard = make(mechanism=SparseVector(0.05, 0.001, budget=3, grid=1 / 128))
    assert isinstance(guard.parameters, SparseVectorParameters)
    assert guard.parameters.threshold == 0.05
    alone = certify(
        Independent(N), threshold=0.05, noise_scale=0.001, budget=3, queries=50, confidence=0.95, grid=1 / 128
    )
    assert alone.tolerance < guard.certificate.tolerance < alone.tolerance * (1 + 1e-6)  # a millionth is for failures
    assert guard.certificate.confidence == 0.95
    value = guard.ask(1.0, np.arange(N) % 3 == 0).value
    assert (value * 128) == round(value * 128)


def test_any_number_of_queries_with_parameters_by_hand() -> None:
    guard = make(mechanism=SparseVector(0.05, 0.001, budget=None, grid=1 / 128), queries=None)
    assert guard.ask(0.5, np.arange(N) % 2).interval == (0.0, 1.0)
    assert "mechanism='claims' makes claims" in guard.certificate.statement
    assert make(queries=None, mechanism=None).ask(0.5, np.arange(N) % 2).half_width < 0.1  # what the statement names
    assert guard.status.answers_left is None
    assert "any number of answers" in repr(guard)
    assert guard.ask(1.0, np.zeros(N)).remaining is None


def test_the_default_makes_claims() -> None:
    expected = ClaimsParameters(confidence=0.9, queries=50, max_half_width=0.2, n_train=N)
    assert make(confidence=0.9, mechanism=Claims(max_half_width=0.2)).parameters == expected
    for name in (None, "claims"):
        assert make(mechanism=name, confidence=0.9).parameters == replace(expected, max_half_width=None)
    checked = make(mechanism=Claims(noise=0.0), queries=None).parameters
    assert checked == ClaimsParameters(noise=0.0, n_train=N)
    guard = Thresholdout(data(0))
    assert guard.parameters == ClaimsParameters()
    assert (guard.status.answers_left, guard.status.exhausted) == (None, None)
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-11)
    assert guard.status.error_budget_left == pytest.approx(0.05)
    assert "each answer's own interval contains the truth" in guard.certificate.statement
    assert "an interval with each answer" in repr(guard.certificate)


def test_claims_know_how_records_depend_on_each_other() -> None:
    pairs = make(dependence=Groups(np.arange(N) // 2)).parameters
    assert isinstance(pairs, ClaimsParameters)
    assert (pairs.effective, pairs.n_train) == (N / 2, N)
    assert 2.0 <= pairs.inflation <= 2.0 * (1 + 1e-12)
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=N)
    found = make(dependence=chain).parameters
    assert isinstance(found, ClaimsParameters)
    assert found.effective == pytest.approx(N / 9)  # (1 + 0.8) / (1 - 0.8), 0.8 the second eigenvalue
    assert found.inflation == chain.variance_inflation() <= 9 * (1 + 1e-9)
    assert found.n_train == N


def test_training_records_count_as_they_are_or_by_their_groups() -> None:
    """However the holdout's records depend on each other: the training part's are what its own groups say."""
    holdout, train = np.arange(40.0), np.arange(40.0, 100.0)
    model = Groups(np.arange(40) // 4)
    plain = Thresholdout(holdout, train=train, dependence=model)
    grouped = Thresholdout(holdout, train=(train, None, 100 + np.arange(60) // 3), dependence=model)
    assert [guard.parameters.n_train for guard in (plain, grouped)] == [60, 20]  # type: ignore[attr-defined]
    assert grouped.parameters.effective == 10  # type: ignore[attr-defined]
    assert Thresholdout(holdout, dependence=model).parameters.n_train is None  # type: ignore[attr-defined]


def test_algorithm_1_is_planned_where_no_deviation_of_a_mean_is_bounded() -> None:
    class Unknown(MovingWindow):
        inflation_methods = ("components",)

        def effective_records(self) -> float | None:  # type: ignore[override]
            return None

    model = Unknown(N, 1)
    planned = algorithm_1(model, queries=50, budget=3)
    guard = make(dependence=model)
    assert guard.parameters == planned
    assert repr(guard).startswith("<Thresholdout: Algorithm 1 (sparse vector) for ")
    for missing in ("queries", "mechanism"):
        with pytest.raises(InputError, match=rf"{missing} is missing: pass .*plan\(model, queries=100"):
            make(dependence=model, **{missing: None})
    for mechanism in (ClaimsParameters(),):
        with pytest.raises(InputError, match=r"mechanism must be .*of which no deviation of a mean can be bounded"):
            make(dependence=model, mechanism=mechanism)
    with pytest.raises(InputError, match="max_half_width"):
        make(dependence=model, mechanism=Claims(max_half_width=0.1))


def test_a_query_that_would_be_answered_too_widely_is_refused_for_nothing() -> None:
    """Before anything is computed on the holdout: whether it fails there would be told for nothing otherwise."""
    guard = make(mechanism=Claims(max_half_width=0.01))
    first = data(0)[0][0, 0]

    def query(X: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.bool_]:
        if X[0, 0] == first:
            raise RuntimeError
        return np.equal(y, 1)

    for _ in range(3):  # no interval about a mean near 1/2 is as short with 2,000 records
        with pytest.raises(BudgetExhausted, match="above max_half_width") as caught:
            guard.ask(query)
        with pytest.raises(BudgetExhausted, match="a guard without max_half_width answers it"):
            guard.ask(0.5, np.arange(N) % 2)
    assert caught.value.what == "width"
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-11)
    assert (guard.status.exhausted, len(guard.history)) == (None, 0)
    answer = guard.ask(0.0, np.zeros(N), binary=True)
    assert answer.source == "train"
    assert answer.half_width <= 0.01
    assert make().ask(0.5, np.arange(N) % 2).half_width > 0.01


@pytest.mark.slow
def test_no_answer_that_is_confirmed_at_once_is_wider_than_declared() -> None:
    """Also on the longer side of an interval that is not symmetric."""
    for most in np.geomspace(0.005, 0.1, 25):
        for train in (0.5, 0.9, 0.99):
            guard = make(mechanism=Claims(max_half_width=most), random_state=1)
            values = np.arange(N) < round(train * N)
            try:
                answer = guard.ask(train, values, binary=True)
            except BudgetExhausted:
                wide = make(random_state=1).ask(train, values, binary=True)
                assert wide.source == "train"
                assert wide.half_width > most * (1 - 1e-9)
            else:
                assert answer.source == "train"
                assert answer.half_width <= most + math.ulp(1.0)


@for_each(
    ("changes", "error", "message"),
    [
        ({"queries": 0}, InputError, "queries"),
        ({"queries": 2.5}, InputTypeError, "queries"),
        ({"queries": 2**63}, InputError, r"queries must be an integer of at least 1 and at most 2\*\*63 - 1"),
        ({"confidence": 1.0}, InputError, "confidence"),
        ({"confidence": 0}, InputError, "confidence"),
        ({"confidence": math.nan}, InputError, "confidence"),
        (
            {"mechanism": "ladder", "final_check": True},
            InputError,
            "final_check must be False for other mechanisms than 'claims'; got True",
        ),
        (
            {"mechanism": Claims(epsilon=1.0), "final_check": True},
            InputError,
            "epsilon must be None beside final_check=True .*; got 1",
        ),
        (
            {"mechanism": Claims(epsilon=1.0), "sampling": "fixed_features"},
            InputError,
            "epsilon must be None beside .* sampling='fixed_features'; got 1",
        ),
        ({"prior_queries": -1}, InputError, "prior_queries must be the number of earlier scores.*; got -1"),
        ({"prior_queries": "3"}, InputTypeError, "prior_queries must be the number of earlier scores.*; got a str"),
        ({"random_state": -1}, InputTypeError, "random_state must be None or an integer.*; got -1"),
        (
            {"random_state": 0.5},
            InputTypeError,
            "random_state must be None or an integer of at least 0",
        ),
        ({"mechanism": "laplace"}, InputError, "mechanism"),
        ({"mechanism": 3}, InputTypeError, "mechanism"),
        ({"sampling": 1}, InputTypeError, "sampling must be one of 'independent', 'iid', 'fixed_features'; got an int"),
        ({"sampling": "identical"}, InputError, "sampling must be one of 'independent', 'iid'.*; got 'identical'"),
        ({"dependence": "groups"}, InputTypeError, "dependence"),
        ({"dependence": Groups([0, 1])}, InputError, "dependence"),
        ({"train": data(1)[0]}, InputError, "train"),
        ({"train": (data(1)[0][:, :2], data(1)[1])}, InputError, "train"),
        ({"train": (data(1)[0], data(1)[1][:-1])}, InputError, "train"),
        ({"train": data(0)}, OverlapError, "2000 of 2000"),
    ],
)
def test_refuses_arguments_before_anything_is_written(
    tmp_path: Path, changes: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(ledger=tmp_path / "guard.db", **changes)
    assert not (tmp_path / "guard.db").exists()


@for_each(
    ("made", "error", "message"),
    [
        (lambda: Claims(holdout_answers=0), InputError, "holdout_answers must be an integer of at least 1; got 0"),
        (lambda: Claims(holdout_answers=True), InputTypeError, "holdout_answers"),
        (lambda: Claims(holdout_answers=2**63), InputError, r"an integer of at least 1 and at most 2\*\*63 - 1"),
        (lambda: Claims(max_half_width=0.0), InputError, "max_half_width"),
        (lambda: Claims(max_half_width=1.5), InputError, "max_half_width"),
        (lambda: Claims(max_half_width="narrow"), InputError, "max_half_width"),  # type: ignore[arg-type]
        (lambda: Claims(epsilon=0), InputError, "epsilon must be a positive number; got 0"),
        (lambda: Claims(noise=-0.1), InputError, "noise"),
        (lambda: SparseVector(0, 0.1), InputError, "threshold"),
        (lambda: SparseVector("a", 0.1), InputError, "threshold"),  # type: ignore[arg-type]
        (lambda: SparseVector(0.1, -1), InputError, "noise_scale"),
        (lambda: SparseVector(0.1, 0.1, grid=0.3), InputError, "grid"),
        (lambda: SparseVector(0.1, 0.1, budget=0), InputError, "budget"),
    ],
)
def test_parameters_of_mechanisms_are_refused_where_they_are_given(
    made: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        made()


def test_the_largest_counts_that_a_refusal_names_work() -> None:
    """With one more, an answer that charges no budget could not be stored, and was refused for nothing."""
    guard = make(mechanism=Claims(holdout_answers=2**63 - 1), queries=2**63 - 1)
    answer = guard.ask(0.5, np.arange(N) < N // 2, binary=True)
    assert (answer.source, answer.remaining) == ("train", 2**63 - 1)


@for_each("quarter", [0.25, np.float32(0.25), Fraction(1, 4), Decimal("0.25"), np.array(0.25)])
def test_numbers_of_any_type_are_the_same_numbers(quarter: Any) -> None:
    guard = make(
        mechanism=SparseVector(quarter, quarter, budget=None, grid=quarter), confidence=2 * quarter, queries=None
    )
    plain = make(mechanism=SparseVector(0.25, 0.25, budget=None, grid=0.25), confidence=0.5, queries=None)
    assert guard.parameters == plain.parameters
    assert guard.certificate.confidence == 0.5
    assert type(guard.parameters.threshold) is type(guard.certificate.confidence) is float  # type: ignore[attr-defined]


@for_each("quarter", [0.25, np.float32(0.25), Fraction(1, 4), np.int64(0)])
def test_a_training_value_is_a_number_of_any_type(quarter: Any) -> None:
    assert make().ask(quarter, np.arange(N) % 4 == 0, binary=True).value == float(quarter) or quarter == 0


@for_each("declared", [Fraction(1, 3), Fraction(1, 10), Fraction(2, 3), Fraction(10**20 + 1, 10**20)])
def test_a_declared_limit_is_never_exceeded(declared: Fraction) -> None:
    exact: Any = declared
    private = make(mechanism=Claims(epsilon=exact, holdout_answers=2)).parameters.epsilon  # type: ignore[attr-defined]
    assert 0 <= declared - Fraction(private) < declared * 2**-52


def test_a_known_guard_is_opened_without_planning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make(ledger=tmp_path / "guard.db", mechanism="ladder", queries=10)
    planned = []
    monkeypatch.setattr(registration, "chosen_parameters", lambda *declared: planned.append(declared))
    again = make(ledger=tmp_path / "guard.db", mechanism="ladder", queries=10)
    assert (again.parameters, again._id, planned) == (first.parameters, first._id, [])


def test_equal_rows_can_be_allowed() -> None:
    few = np.zeros((N, 1)), np.zeros(N)
    with pytest.raises(OverlapError, match="allow_duplicates"):
        Thresholdout(few, train=few)
    assert Thresholdout(few, train=few, allow_duplicates=True).n == N


def test_what_needs_a_training_part_says_so() -> None:
    guard, model = (
        Thresholdout(data(0), queries=50, mechanism=Claims(holdout_answers=3)),
        DummyClassifier().fit(*data(1)),
    )
    for use in (
        lambda: guard.ask(lambda X, y: y),
        lambda: guard.score(model, cv="training"),
        guard.split,
        guard.scorer,
    ):
        with pytest.raises(InputError, match="train is missing"):
            use()
    assert isinstance(guard.ask(0.5, np.arange(N) % 2), Answer)


def test_missing_labels_and_masked_values_are_refused() -> None:
    X, y = data(0)
    for missing in (np.where(y == 1, np.nan, 0.0), pd.Series(y).astype("Int64").mask(pd.Series(y) == 1)):
        with pytest.raises(InputError, match="missing"):
            Thresholdout((X, missing), train=data(1))
    with pytest.raises(InputError, match="masked"):
        make().ask(0.5, np.ma.array(np.zeros(N), mask=np.arange(N) == 3))


@for_each(
    ("changes", "message"),
    [
        ({"confidence": None}, "confidence"),
        ({"random_state": "seed"}, "random_state"),
        ({"ledger": 5}, "ledger"),
    ],
)
def test_arguments_of_another_type(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputTypeError, match=message):
        make(**{"ledger": tmp_path / "guard.db", **changes})
    assert not (tmp_path / "guard.db").exists()


def test_numbers_of_numpy_are_numbers() -> None:
    for number in (np.float32(0.5), np.int64(0), np.float64(0.25)):
        assert make().ask(number, np.full(N, float(number))).value == float(number)


def test_a_declaration_belongs_to_the_guard(tmp_path: Path) -> None:
    make(ledger=tmp_path / "two.db")
    with pytest.raises(LedgerMismatch, match="sampling = 'independent', not 'iid'"):
        make(ledger=tmp_path / "two.db", sampling="iid")
