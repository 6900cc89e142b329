"""How a guard is declared: its parameters, their defaults, and the arguments that are refused."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphs import Groups, Independent, MovingWindow
from tests.thresholdout.guards import N, data, make
from thresholdout import Answer, Thresholdout, certify, plan
from thresholdout.errors import (
    InputError,
    InputTypeError,
    LedgerMismatch,
    OverlapError,
    PlanError,
)
from thresholdout.mechanisms import (
    GuessAndCheckParameters,
    SplittingParameters,
    ThresholdoutParameters,
)
from thresholdout.mechanisms.catalogue import answers_from_parts


def test_parameters_by_hand() -> None:
    guard = make(threshold=0.05, noise_scale=0.001, grid=1 / 128)
    assert isinstance(guard.parameters, ThresholdoutParameters)
    assert guard.parameters.threshold == 0.05
    alone = certify(
        Independent(N), threshold=0.05, noise_scale=0.001, budget=3, queries=50, confidence=0.95, grid=1 / 128
    )
    assert alone.tolerance < guard.certificate.tolerance < alone.tolerance * (1 + 1e-6)  # a millionth is for failures
    assert guard.certificate.confidence == 0.95
    value = guard.ask(1.0, np.arange(N) % 3 == 0).value
    assert (value * 128) == round(value * 128)


def test_any_number_of_questions_with_parameters_by_hand() -> None:
    guard = make(threshold=0.05, noise_scale=0.001, grid=1 / 128, queries=None, budget=None)
    widths = [guard.ask(0.5, np.arange(N) % 2).half_width for _ in range(20)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1] < 0.3
    assert guard.remaining is None
    assert "any number of answers" in repr(guard)
    assert guard.ask(1.0, np.zeros(N)).remaining is None


def test_defaults_are_planned() -> None:
    guard = make()
    chosen = plan(Independent(N), queries=50, budget=3, confidence=0.95)
    assert guard.parameters == chosen.thresholdout
    best = make(mechanism=None)
    assert best.parameters == chosen.parameters
    assert best.certificate.tolerance == pytest.approx(chosen.tolerance, rel=1e-6)
    assert chosen.tolerance <= guard.certificate.tolerance


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"queries": 0}, InputError, "queries"),
        ({"queries": 2.5}, InputTypeError, "queries"),
        ({"budget": 0}, InputError, "budget"),
        ({"budget": True}, InputTypeError, "budget"),
        ({"budget": "all"}, InputTypeError, "budget: 'all', which is for plan.*mechanism='gaussian'"),
        ({"confidence": 1.0}, InputError, "confidence"),
        ({"confidence": 0}, InputError, "confidence"),
        ({"confidence": math.nan}, InputError, "confidence"),
        ({"threshold": 0.1}, InputError, "noise_scale"),
        ({"noise_scale": 0.1}, InputError, "threshold"),
        ({"threshold": 0, "noise_scale": 0.1}, InputError, "threshold"),
        ({"threshold": 0.1, "noise_scale": -1}, InputError, "noise_scale"),
        ({"threshold": 0.1, "noise_scale": 0.1, "grid": 0.3}, InputError, "grid"),
        ({"grid": 0.5}, InputError, "grid"),
        ({"queries": None}, InputError, "queries"),
        ({"budget": None}, InputError, "budget"),
        ({"mechanism": "laplace"}, InputError, "mechanism"),
        ({"mechanism": "guess-and-check"}, InputError, "GuessAndCheckParameters"),
        ({"mechanism": 3}, InputTypeError, "mechanism"),
        ({"mechanism": "gaussian", "threshold": 0.1, "noise_scale": 0.1}, InputError, "beside another mechanism"),
        (
            {"mechanism": "splitting"},
            InputError,
            "mechanism: SplittingParameters.*without identically_distributed=True",
        ),
        ({"identically_distributed": 1}, InputTypeError, "identically_distributed: a int"),
        (
            {"mechanism": "splitting", "dependence": MovingWindow(N, 2), "identically_distributed": True},
            InputError,
            "mechanism: SplittingParameters for a MovingWindow",
        ),
        (
            {
                "mechanism": "splitting",
                "dependence": Groups(np.repeat([0, 1, 2], [N // 2, N // 4, N // 4])),
                "identically_distributed": True,
                "queries": 2,
            },
            InputError,
            "groups of 500 to 1000 records",
        ),
        ({"mechanism": "gaussian", "dependence": MovingWindow(N, 2)}, PlanError, "independent groups"),
        ({"mechanism": "gaussian", "queries": None}, InputError, "queries"),
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


def test_equal_rows_can_be_allowed() -> None:
    few = np.zeros((N, 1)), np.zeros(N)
    with pytest.raises(OverlapError, match="allow_equal_rows"):
        Thresholdout(few, train=few)
    assert Thresholdout(few, train=few, allow_equal_rows=True).n == N


def test_what_needs_a_training_part_says_so() -> None:
    guard = Thresholdout(data(0), queries=50, budget=3)
    for use in (lambda: guard.ask(lambda X, y: y), lambda: guard.score(None), guard.split, guard.scorer):
        with pytest.raises(InputError, match="training part"):
            use()
    assert isinstance(guard.ask(0.5, np.arange(N) % 2), Answer)


def test_missing_labels_and_masked_values_are_refused() -> None:
    X, y = data(0)
    for missing in (np.where(y == 1, np.nan, 0.0), pd.Series(y).astype("Int64").mask(pd.Series(y) == 1)):
        with pytest.raises(InputError, match="missing"):
            Thresholdout((X, missing), train=data(1))
    with pytest.raises(InputError, match="masked"):
        make().ask(0.5, np.ma.array(np.zeros(N), mask=np.arange(N) == 3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidence": None}, "confidence"),
        ({"threshold": "a"}, "threshold"),
        ({"noise": 5}, "noise"),
        ({"documents": 5}, "documents"),
    ],
)
def test_arguments_of_another_type(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputTypeError, match=message):
        make(ledger=tmp_path / "guard.db", **changes)
    assert not (tmp_path / "guard.db").exists()


def test_numbers_of_numpy_are_numbers() -> None:
    guard = make()
    for number in (np.float32(0.5), np.int64(0), np.float64(0.25)):
        assert guard.ask(number, np.full(N, float(number))).value == float(number)


def test_what_a_refusal_of_parts_names_works() -> None:
    with pytest.raises(
        InputError, match=r"mechanism='thresholdout', or GuessAndCheckParameters\(tolerance, guess='tra"
    ):
        make(mechanism=SplittingParameters(2))
    for instead in ("thresholdout", GuessAndCheckParameters(0.3, guess="train")):
        assert "over all records" in make(mechanism=instead).certificate.about
    declared = make(mechanism=SplittingParameters(2), identically_distributed=True)
    assert "the part of the records that answers" in declared.certificate.about


def test_the_default_never_answers_from_a_part_though_that_would_be_narrower() -> None:
    """300 records, 2 questions: what was planned once."""
    X, y = data(0)
    for queries, budget in ((1, 1), (2, 2), (3, 1)):
        guard = Thresholdout((X[:300], y[:300]), queries=queries, budget=budget)
        assert not answers_from_parts(guard.parameters)
        assert guard.certificate.splitting < guard.certificate.tolerance


def test_a_declaration_belongs_to_the_guard(tmp_path: Path) -> None:
    declared = {"mechanism": "splitting", "queries": 2, "identically_distributed": True}
    make(ledger=tmp_path / "one.db", **declared)
    assert make(ledger=tmp_path / "one.db", **declared).parameters == SplittingParameters(2)
    make(ledger=tmp_path / "two.db")
    with pytest.raises(LedgerMismatch, match="identically_distributed = False, not True"):
        make(ledger=tmp_path / "two.db", identically_distributed=True)
