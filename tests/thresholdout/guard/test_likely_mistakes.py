"""What is said when a guard is made that will not do what its user may expect of it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE, RFECV, SequentialFeatureSelector
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from graphs import Groups, Independent, MovingWindow
from tests.cases import for_each
from thresholdout import (
    Claims,
    InputError,
    InputTypeError,
    KFoldGuard,
    LikelyMistakeWarning,
    MechanismWarning,
    PriorQueries,
    SparseVector,
    Thresholdout,
    TimeOrder,
    WideAnswersWarning,
    plan,
)
from thresholdout.ledger import MemoryLedger
from thresholdout.scoring.metrics import absolute_error


def said(n: int, **declared: Any) -> list[str]:
    """Return the warnings of a guard that is made of so many records."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Thresholdout(np.arange(float(n)), **declared)
    assert all(Path(warning.filename).name == "test_likely_mistakes.py" for warning in caught)
    return [str(warning.message) for warning in caught]


WIDE: list[tuple[int, dict[str, Any]]] = [
    (20, {}),
    (50, {}),
    (50, {"queries": 100}),
    (50, {"queries": 1000, "mechanism": Claims(noise=0.0)}),
    (300, {"prior_queries": 20}),
    (1000, {"dependence": Groups([record // 25 for record in range(1000)])}),
    (300, {"mechanism": Claims(epsilon=1.0)}),
    (100, {"mechanism": SparseVector(0.2, 0.1, budget=1), "queries": 10}),
]
NOT_NARROW: list[tuple[int, dict[str, Any]]] = [
    (50, {"queries": 1}),
    (100, {}),
    (300, {}),
    (300, {"queries": 1000}),
    (300, {"prior_queries": PriorQueries(1, 20)}),
    (1000, {"dependence": Groups([record // 5 for record in range(1000)])}),
    (20_000, {"mechanism": SparseVector(0.08, 0.004, budget=1), "queries": 10}),
]
FEW: list[tuple[int, dict[str, Any]]] = [(200, {"queries": 1}), (299, {"queries": 1})]
NARROW: list[tuple[int, dict[str, Any]]] = [
    (300, {"queries": 1}),
    (1000, {}),
    (1000, {"queries": 1000}),
    (1000, {"prior_queries": PriorQueries(1, 20)}),
    (1000, {"mechanism": "ladder"}),
    (10_000, {"dependence": Groups([record // 5 for record in range(10_000)])}),
]


@for_each(("n", "declared"), WIDE, ids=str)
def test_intervals_over_half_of_the_range_are_said_once(n: int, declared: dict[str, Any]) -> None:
    (message,) = said(n, **declared)
    assert message.startswith("The intervals of this guard will be useless: ")
    assert "or one final check (final_check). `thresholdout plan` computes by how much" in message
    assert ("scores that were seen before (prior_queries=)" in message) == ("prior_queries" in declared)


@for_each(("n", "declared"), NOT_NARROW, ids=str)
def test_intervals_that_tell_few_models_apart_are_said_to_be_wide(n: int, declared: dict[str, Any]) -> None:
    (message,) = said(n, **declared)
    assert message.startswith("The intervals of this guard will be wide: about ± 0.")


@for_each(("n", "declared"), FEW, ids=str)
def test_fewer_than_300_records_are_said_whatever_the_width(n: int, declared: dict[str, Any]) -> None:
    (message,) = said(n, **declared)
    assert message.startswith("The intervals of this guard will be wide: about ± 0.0")


@for_each(("n", "declared"), NARROW, ids=str)
def test_intervals_that_say_something_are_no_news(n: int, declared: dict[str, Any]) -> None:
    assert said(n, **declared) == []


@pytest.mark.slow
@for_each(("n", "queries"), [(n, queries) for n in (50, 60, 70, 80, 100) for queries in (20, 100, 1000)])
def test_it_is_what_a_plan_expects_on_the_average(n: int, queries: int) -> None:
    expected = plan(n, queries=queries, anticipated_score=0.8).half_width
    if abs(expected - 0.25) > 0.01:
        assert ("will be useless" in said(n, queries=queries)[0]) == (expected > 0.25)


def test_a_guard_that_is_opened_again_says_it_no_more() -> None:
    ledger = MemoryLedger()
    assert len(said(50, ledger=ledger)) == 1
    assert said(50, ledger=ledger) == []


def test_folds_say_it_too() -> None:
    X, y = np.arange(400.0).reshape(200, 2), np.arange(200) % 2
    with pytest.warns(WideAnswersWarning, match="any number of queries to 100 out-of-fold values"):
        KFoldGuard((X[:100], y[:100]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KFoldGuard((np.arange(4000.0).reshape(2000, 2), np.arange(2000) % 2))


class Unlimited(MovingWindow):
    """Records of which no deviation of a mean can be bounded, but leakage can."""

    inflation_methods = ("components",)

    def effective_records(self) -> float | None:  # type: ignore[override]
        return None


def test_another_mechanism_than_the_default_is_said() -> None:
    n = 40_000
    model, records = Unlimited(n, 1), np.arange(float(n))
    with pytest.warns(MechanismWarning, match=r"It answers 50 queries, up to 3 of them from the holdout\.") as caught:
        guard = Thresholdout(records, dependence=model, queries=50, mechanism=Claims(holdout_answers=3))
    assert [Path(warning.filename).name for warning in caught] == ["test_likely_mistakes.py"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Thresholdout(records, dependence=model, mechanism=guard.parameters)
        Thresholdout(records, queries=50, mechanism=Claims(holdout_answers=3))


def mistakes(make: Callable[[], object]) -> list[str]:
    """Return what is said of likely mistakes, and check that it is said of the caller's line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LikelyMistakeWarning)
        make()
    assert all(Path(warning.filename).name == "test_likely_mistakes.py" for warning in caught)
    assert all("category=thresholdout.LikelyMistakeWarning" in str(warning.message) for warning in caught)
    return [str(warning.message) for warning in caught]


N = 1000


def table(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.normal(size=2 * N), "bmi": rng.normal(size=2 * N), **columns})


def guard_of(frame: pd.DataFrame, **declared: Any) -> Thresholdout:
    y = (frame["age"].to_numpy() > 0).astype(int)
    return Thresholdout((frame[:N], y[:N]), train=(frame[N:], y[N:]), **declared)


OWNERS = np.arange(2 * N) // 4


@for_each(
    "name",
    ["patient", "patient_id", "PatientID", "Patient Id", "user", "user_id", "subject", "session", "customer_no", "id",
     "household", "device_uuid", "speaker"],
)  # fmt: skip
def test_a_column_of_patients_without_groups_is_said_once(name: str) -> None:
    (message,) = mistakes(lambda: guard_of(table(**{name: OWNERS})))
    assert f"The column {name!r} has 250 different values in 1,000 training records" in message
    assert f"groups={name!r}" in message
    ledger = MemoryLedger()
    assert mistakes(lambda: guard_of(table(**{name: OWNERS}), groups=name, ledger=ledger)) == []
    assert mistakes(lambda: guard_of(table(**{name: OWNERS}), dependence=Independent(N))) == []


@for_each("name", ["width", "idea", "humidity", "grid", "valid", "paid", "users_per_day", "sex"])
def test_other_columns_are_no_news(name: str) -> None:
    assert mistakes(lambda: guard_of(table(**{name: OWNERS}))) == []


@for_each("name", ["patient", "user_id"])
def test_owners_of_one_training_record_each_may_be_in_the_holdout_too(name: str) -> None:
    """Names and the training part are public: it is said whether the holdout has some of them or not."""
    both, others = (table(**{name: np.r_[holdout, np.arange(N)]}) for holdout in (np.arange(N), np.arange(N, 2 * N)))
    (message,) = mistakes(lambda: guard_of(both))
    assert mistakes(lambda: guard_of(others)) == [message]
    assert f"The column {name!r} has a different value in each training record" in message
    assert mistakes(lambda: guard_of(both, dependence=Independent(N))) == []
    # The advice is a call that refuses owners of both parts, and takes others.
    with pytest.raises(InputError, match="training"):
        guard_of(both, groups=name)
    assert mistakes(lambda: guard_of(others, groups=name)) == []


def test_an_identifier_of_each_record_is_no_group() -> None:
    assert mistakes(lambda: guard_of(table(id=np.arange(2 * N)))) == []


def test_an_index_of_patients_is_a_column_too() -> None:
    frame = table().set_index(pd.Index(OWNERS, name="patient"))
    assert len(mistakes(lambda: guard_of(frame))) == 1


def test_dates_without_an_order_are_said() -> None:
    frame = table(day=np.roll(pd.date_range("2020-01-01", periods=2 * N), N))
    (message,) = mistakes(lambda: guard_of(frame))
    assert "The column 'day' has dates, and no order is declared" in message
    assert mistakes(lambda: guard_of(frame, dependence=TimeOrder("day", window=pd.Timedelta(days=3)))) == []


def test_what_is_said_of_columns_does_not_depend_on_the_holdout() -> None:
    """Its values are secret: the training part and names decide."""
    frame, other = (table(patient=np.r_[holdout, np.arange(N)]) for holdout in (np.zeros(N, int), np.arange(N) + N))
    assert mistakes(lambda: guard_of(frame, allow_duplicates=True)) == mistakes(lambda: guard_of(other))
    assert len(mistakes(lambda: guard_of(frame[::-1].reset_index(drop=True), allow_duplicates=True))) == 0


def refitted() -> tuple[Thresholdout, Any, Any]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4 * N, 5)), rng.integers(0, 2, 4 * N)
    guard = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), random_state=0)
    honest = DecisionTreeClassifier(random_state=0).fit(X[N:], y[N:])
    return guard, DecisionTreeClassifier(random_state=0).fit(X, y), honest


def test_a_model_that_was_fitted_to_the_holdout_is_said() -> None:
    guard, fooled, honest = refitted()
    assert mistakes(lambda: guard.score(honest)) == []
    (message,) = mistakes(lambda: guard.score(fooled))
    assert "Was the model fitted to records of the holdout" in message
    (message,) = mistakes(lambda: guard.compare(fooled, honest))
    assert "Was the model fitted to records of the holdout" in message
    (message,) = mistakes(lambda: guard.score(fooled, "zero_one_loss"))
    assert "Was the model fitted to records of the holdout" in message
    (message,) = mistakes(lambda: guard.final_check(fooled))
    assert "Was the model fitted to records of the holdout" in message


def test_features_in_another_order_are_said() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4 * N, 5))
    y = (X[:, 0] > 0).astype(int)
    model = DecisionTreeClassifier(random_state=0).fit(X[N:], y[N:])
    guard = Thresholdout((X[:N, ::-1], y[:N]), train=(X[N:], y[N:]), random_state=0)
    (message,) = mistakes(lambda: guard.score(model))
    assert "the same features in the same order" in message
    flattered = DecisionTreeClassifier(random_state=0).fit(X[N:], rng.permutation(y[N:]))
    other = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), random_state=0)
    assert mistakes(lambda: other.score(flattered, cv="training")) == []  # as models do that were fitted closely


def test_a_class_that_only_the_holdout_is_declared_to_have_is_said() -> None:
    """The type of the labels is public; which of them occur is not."""
    X, labels = table(), np.where(np.arange(2 * N) % 2, "ill", "well")
    declared, known = pd.CategoricalDtype(["ill", "rare", "well"]), pd.CategoricalDtype(["ill", "well"])

    def made(kind: Any) -> Thresholdout:
        y = pd.Series(labels).astype(kind)
        return Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), dependence=Independent(N))

    (message,) = mistakes(lambda: made(declared))
    assert "classes that no training record has: 'rare'" in message
    assert "y.cat.remove_unused_categories()" in message
    assert mistakes(lambda: made(known)) == []
    assert mistakes(lambda: made(object)) == []


def test_a_class_that_training_never_had_is_said_by_the_answer() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4 * N, 5))
    y = np.where(X[:, 0] > 0, "a", "b").astype(object)
    y[: N // 3] = "c"
    guard = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), random_state=0)
    (message,) = mistakes(lambda: guard.score(DecisionTreeClassifier(random_state=0).fit(X[N:], y[N:])))
    assert "the same classes" in message


@pytest.mark.slow
def test_a_gate_says_that_a_verdict_was_not_to_be_expected() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4 * N, 5))
    y = (X[:, 0] + 0.12 * X[:, 1] + rng.normal(size=4 * N) > 0).astype(int)
    stump = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[N:], y[N:])
    forest = RandomForestClassifier(n_estimators=30, max_depth=8, random_state=0)

    def proposed(model: Any, turned: int = 1, old: Any = stump, **how: Any) -> tuple[str, list[str]]:
        holdout = (X[:N, ::turned], y[:N])
        guard = Thresholdout(holdout, train=(X[N:], y[N:]), sampling="iid", random_state=0)
        told: list[Any] = []
        said = mistakes(lambda: told.append(guard.gate(old).propose(model, **how)))
        return told[0].outcome, said

    fooled = clone(forest).fit(X, y)
    outcome, said = proposed(fooled)
    assert outcome == "keep"
    (message,) = said
    assert "Was the model fitted to records of the holdout" in message
    assert proposed(clone(forest).fit(X[N:], y[N:])) == ("reject", [])
    assert proposed(fooled, cv="training")[1] == []  # its training value is no news
    dull = DummyClassifier(strategy="constant", constant=0).fit(X[N:], y[N:])
    assert proposed(stump, old=dull) == ("keep", [])
    outcome, said = proposed(stump, -1, dull)
    assert outcome == "reject"
    (message,) = said
    assert "was not confirmed, although cross-validation predicted it" in message


def test_a_surprise_at_a_gate_that_is_an_error_leaves_the_gate_as_decided() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4 * N, 2))
    y = (X[:, 0] > 0).astype(int)
    dull = DummyClassifier(strategy="constant", constant=0).fit(X[N:], y[N:])
    good = DecisionTreeClassifier(max_depth=1).fit(X[N:], y[N:])
    guard = Thresholdout((X[:N, ::-1], y[:N]), train=(X[N:], y[N:]), random_state=0)
    gate = guard.gate(dull)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyMistakeWarning)
        with pytest.raises(LikelyMistakeWarning):
            gate.propose(good)
    left = guard.status.error_budget_left
    told = gate.propose(good)
    assert (told.outcome, told.repeated, guard.status.error_budget_left, len(guard.history)) == (
        "reject",
        True,
        left,
        1,
    )


OUTCOMES = np.array(["no", "yes"])


@for_each("kind", ["text", "text in a series", "column of numbers", "column of text", "one feature"])
def test_labels_before_features_are_refused_in_other_forms(kind: str) -> None:
    X, y = np.arange(40.0).reshape(20, 2) / 8, np.arange(20) % 2
    pair: dict[str, tuple[Any, Any]] = {
        "text": (OUTCOMES[y], X),
        "text in a series": (pd.Series(OUTCOMES[y]), pd.DataFrame(X)),
        "column of numbers": (y[:, None], X),
        "column of text": (OUTCOMES[y][:, None], X),
        "one feature": (y, X[:, :1]),
    }
    with pytest.raises(InputError, match=r"holdout must be a pair \(X, y\), with the features first"):
        Thresholdout(pair[kind])
    with pytest.raises(InputError, match=r"train must be .*; got a column"):
        Thresholdout((X, y), train=pair[kind])
    assert Thresholdout(pair[kind][::-1]).n == 20


def test_features_that_look_a_little_like_labels_are_taken() -> None:
    X, several = np.arange(20.0)[:, None], np.arange(60).reshape(20, 3) % 2
    texts = np.array([f"document {number}" for number in range(20)])
    assert Thresholdout((X, several)).n == 20
    assert Thresholdout((np.arange(20)[:, None] % 4, np.arange(20)[:, None] % 2), allow_duplicates=True).n == 20
    assert Thresholdout((texts, several / 2)).n == 20


def test_a_table_for_labels_and_two_arguments_are_refused() -> None:
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    with pytest.raises(InputError, match=r"holdout must be a pair \(X, y\), with the features first"):
        Thresholdout((y, X))
    with pytest.raises(InputError, match=r"train must be .*; got a column"):
        Thresholdout((X, y), train=(y, X))
    with pytest.raises(InputTypeError, match=r"Write Thresholdout\(\(X, y\), train="):
        Thresholdout(X, y)  # type: ignore[call-arg]
    assert next(iter(inspect.signature(Thresholdout).parameters)) == "holdout"


@for_each("confidence", [0.05, 0.01, 0.1, 0.49])
def test_a_risk_for_a_confidence_is_refused_with_what_was_meant(confidence: float) -> None:
    with pytest.raises(InputError, match=rf"at least 0.5.*{1 - confidence:.4g}\?"):
        Thresholdout(np.arange(1000.0), confidence=confidence)
    assert Thresholdout(np.arange(1000.0), confidence=0.5).n == 1000


@for_each("values", [np.arange(N) < 900, [True] * 900 + [False] * 100, pd.Series(np.arange(N) < 900)])
def test_a_number_beside_booleans_is_about_right_and_wrong(values: Any) -> None:
    """The type is public: an exact binomial interval, and not the one of any values in the range."""
    one, two = (Thresholdout(np.arange(float(N)), random_state=0) for _ in range(2))
    told = one.ask(0.9, values)
    assert told.interval == two.ask(0.9, values, binary=True).interval
    wide = Thresholdout(np.arange(float(N)), random_state=0).ask(0.9, np.asarray(values, dtype=float))
    assert told.half_width < 0.85 * wide.half_width
    (listed,) = Thresholdout(np.arange(float(N)), random_state=0).ask_all([(0.9, values)])
    assert listed.half_width < 0.85 * wide.half_width


SIGN = np.random.default_rng(5).normal(size=(700, 4))
LABELS = (SIGN[:, 0] > 0).astype(int)


def boosters() -> dict[str, Any]:
    """Return boosters as the libraries' own training functions return them."""
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    X, y = SIGN[:300], LABELS[:300]
    return {
        "lightgbm": lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(X, y), 5),
        "xgboost": xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, y), 5),
    }


@pytest.mark.slow
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_booster_is_refused_in_one_step_with_what_can_be_called(library: str) -> None:
    model = boosters()[library]
    guard = Thresholdout((SIGN[300:], LABELS[300:]), train=(SIGN[:300], LABELS[:300]))
    messages = set()
    for metric in ("accuracy", "log_loss", "roc_auc", "balanced_accuracy"):
        for how in ({}, {"cv": "training"}, {"train_values": 0.9}):
            with pytest.raises(InputTypeError, match=f"a Booster of {library}") as caught:
                guard.score(model, metric, **how)
            messages.add(str(caught.value))
    with pytest.raises(InputTypeError, match=f"a Booster of {library}"):
        guard.gate(model)
    assert len(guard.history) == 0
    (message,) = messages
    # The advice is a call that works.
    advice = message.rsplit("guard.ask(", 1)[1].removesuffix(").")
    asked = eval(advice, {"model": model, "xgboost": pytest.importorskip("xgboost")})
    assert guard.ask(asked).value == pytest.approx(1.0, abs=0.05)


def test_a_booster_of_numbers_is_scored() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    y = np.clip(SIGN[:, 0], -1, 1)
    model = lightgbm.train({"verbose": -1}, lightgbm.Dataset(SIGN[:300], y[:300]), 30)
    guard = Thresholdout((SIGN[300:], y[300:]), train=(SIGN[:300], y[:300]))
    truth = float(np.mean(np.minimum(np.abs(model.predict(SIGN[300:]) - y[300:]), 1.0)))
    answer = guard.score(model, absolute_error(1.0), cv="training")
    assert answer.interval[0] <= truth <= answer.interval[1]


def test_what_a_champion_lacks_is_said_of_the_champion() -> None:
    class Fixed:
        def predict(self, X: Any) -> Any:
            return np.zeros(len(X), dtype=int)

    guard = Thresholdout((SIGN[300:], LABELS[300:]), train=(SIGN[:300], LABELS[:300]))
    gate = guard.gate(Fixed())
    candidate = DecisionTreeClassifier(max_depth=1).fit(SIGN[:300], LABELS[:300])
    with pytest.raises(InputError, match="a Fixed, which cannot be cloned and fitted again") as caught:
        gate.propose(candidate)
    assert caught.value.argument == "champion"
    assert "propose(candidate, cv='training')" in str(caught.value)
    assert len(guard.history) == 0
    assert gate.propose(candidate, cv="training").outcome == "keep"
    values = (np.zeros(300, dtype=int) == LABELS[:300], candidate.predict(SIGN[:300]) == LABELS[:300])
    other = Thresholdout((SIGN[300:], LABELS[300:]), train=(SIGN[:300], LABELS[:300]))
    assert other.gate(Fixed(), train_values=values[0]).propose(candidate, train_values=values[1]).outcome == "keep"


def test_errors_of_python_name_the_guard() -> None:
    guard: Any = Thresholdout((SIGN[300:], LABELS[300:]), train=(SIGN[:300], LABELS[:300]))
    for name in ("gate", "compare", "score_all", "final_check", "ask", "score"):
        with pytest.raises(TypeError, match=rf"^Thresholdout\.{name}\(\)"):
            getattr(guard, name)(no_such_argument=1)
    public = [name for name in dir(Thresholdout) if not name.startswith("_")]
    for name in public:
        member = inspect.getattr_static(Thresholdout, name)
        if inspect.isfunction(member):
            defined = next(kind for kind in Thresholdout.__mro__ if name in vars(kind))
            assert member.__qualname__ == f"{defined.__name__}.{name}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The scorer got training records:UserWarning")
@for_each("search", ["RFECV", "RFECV with folds", "sequential"])
def test_searches_over_columns_are_told_what_to_do(search: str) -> None:
    guard = Thresholdout((SIGN[300:], LABELS[300:]), train=(SIGN[:300], LABELS[:300]))
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    how = {"scoring": guard.scorer(), "cv": 3 if search == "RFECV with folds" else guard.split()}
    selector: Any = SequentialFeatureSelector(tree, n_features_to_select=1, **how)
    with pytest.raises(InputError, match=r"of the 4 columns.* Make the selection a step: ") as caught:
        (RFECV(tree, **how) if search.startswith("RFECV") else selector).fit(SIGN[:300], LABELS[:300])
    assert len(guard.history) <= (search == "RFECV")  # it begins with all columns
    # The advice is a call that works.
    advice = str(caught.value).split("a step: ")[1].split("; or use the selector")[0].replace("[...]", "[1, 3]")
    names = {"GridSearchCV": GridSearchCV, "make_pipeline": make_pipeline, "RFE": RFE, "model": tree, "guard": guard}
    assert eval(advice, names).fit(SIGN[:300], LABELS[:300]).best_params_
    assert len(guard.history) >= 1
