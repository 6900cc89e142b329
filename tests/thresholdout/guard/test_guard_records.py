"""A guard's records: who they are, what is computed on them, and what a failure there costs."""

import math
import traceback
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from graphs import Groups, Independent
from tests.cases import for_each
from tests.thresholdout.guards import N, data, make
from thresholdout import Claims, SparseVector, Thresholdout, certify
from thresholdout.errors import (
    InputError,
    InputTypeError,
    LedgerClosed,
    LedgerMismatch,
)
from thresholdout.guard.holdout import origin
from thresholdout.guard.query_engine import FAILURES, failure_share
from thresholdout.ledger import MemoryLedger, export_history, import_history
from thresholdout.ledger.entry import history_frame
from thresholdout.mechanisms import SparseVectorParameters


def test_the_same_records_in_another_order_and_another_container_share_the_budget(tmp_path: Path) -> None:
    (X, y), turn = data(0), np.random.default_rng(5).permutation(N)
    file = tmp_path / "guard.db"
    guard = make(ledger=file)
    guard.ask(1.0, y == 1)
    frame = pd.DataFrame(X[turn], columns=["a", "b", "c"])
    settings: dict[str, Any] = {
        "train": (pd.DataFrame(data(1)[0], columns=["a", "b", "c"]), data(1)[1]),
        "queries": 50,
        "mechanism": Claims(holdout_answers=3),
    }
    again = Thresholdout((frame, pd.Series(y[turn]).astype(float)), ledger=file, **settings)
    assert again.status.answers_left == 2
    again.ask(1.0, y[turn] == 1)
    assert guard.status.answers_left == 1


@for_each(
    "changes",
    [
        {"dependence": Groups(np.arange(N) // 4)},
    ],
)
def test_another_order_is_refused_where_the_order_matters(tmp_path: Path, changes: dict[str, object]) -> None:
    (X, y), file = data(0), tmp_path / "guard.db"
    make(ledger=file, **changes).ask(1.0, np.zeros(N))
    settings: dict[str, object] = {"train": data(1), "queries": 50, "mechanism": Claims(holdout_answers=3), **changes}
    with pytest.raises(LedgerMismatch, match="in their first order"):
        Thresholdout((X[::-1], y[::-1]), ledger=file, **settings)  # type: ignore[arg-type]
    assert make(ledger=file, **changes).history.shape[0] == 1


def test_rows_are_known_by_their_content() -> None:
    guard = make()
    X, train = data(0)[0], data(1)[0]
    assert origin(guard, train) == origin(guard, train[::-1][:7]) == origin(guard, train[:1].tolist()) == "train"
    assert origin(guard, X) == origin(guard, X[::-1]) == origin(guard, pd.DataFrame(X)) == "holdout"
    assert origin(guard, X[:-1]) == origin(guard, np.vstack([train, X[:1]])) == origin(guard, X[:1]) == "other"
    assert origin(guard, X + 1) == origin(guard, np.vstack([train, X[:1] + 1])) == origin(guard, X[:0]) == "other"
    y, labels = data(0)[1], data(1)[1]
    assert origin(guard, train, labels) == origin(guard, train[:9], labels[:9]) == "train"
    assert origin(guard, train[:9], 1 - labels[:9]) == origin(guard, train[[0, 0, 1]], labels[[0, 0, 1]]) == "other"
    assert origin(guard, X, y) == origin(guard, X, 1 - y) == "holdout"  # labels of the holdout are not told
    assert origin(guard, X[:1].astype(np.float32)) == origin(guard, X[:5].astype(object)) == "other"
    assert origin(guard, X.astype(np.float32)) == origin(guard, X.astype(object)[::-1], y) == "holdout"
    for copied in (train[:5].astype(object), train[:5].astype(np.float32), train[:5].astype(">f8")):
        assert origin(guard, copied, labels[:5]) == "train"
    with pytest.raises(InputError, match="a guard with pairs"):  # rows that contain labels would tell them
        origin(Thresholdout(X, queries=5, mechanism=Claims(holdout_answers=1)), train)


def test_records_of_few_different_rows_are_told_apart_by_labels_and_numbers() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, size=(2 * N, 2)), rng.normal(size=2 * N)
    guard = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), queries=50, mechanism=Claims(holdout_answers=3))
    assert origin(guard, X[N:], y[N:]) == "train"
    assert origin(guard, X, y) == origin(guard, X) == "other"


def test_training_records_are_known_from_the_training_part_alone() -> None:
    """Whatever the holdout is, also when it has the very same rows."""
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, size=(N, 2)), rng.integers(0, 2, size=N)
    for held in (X, X[::-1], X[:50], 1 - X, data(0)[0][:, :2]):
        labels = np.zeros(len(held), dtype=int)
        guard = Thresholdout(
            (held, labels), train=(X, y), queries=5, mechanism=Claims(holdout_answers=1), allow_duplicates=True
        )
        assert origin(guard, X) == origin(guard, X, y) == origin(guard, X[5:], y[5:]) == "train"


def test_a_weighted_score_is_the_mean_of_weight_times_value_over_the_mean_training_weight() -> None:
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.5, 2.0, size=N), rng.uniform(0.5, 3.0, size=N)
    model = LogisticRegression().fit(*data(1))
    guard = make()
    answer = guard.score(model, "accuracy", sample_weight=weights, cv="training")
    correct = model.predict(data(0)[0]) == data(0)[1]
    most = weights[0].max()
    wanted = (np.minimum(weights[1], most) * correct).mean() / weights[0].mean()
    assert answer.interval[0] <= wanted <= answer.interval[1]
    assert answer.lower == 0.0
    assert answer.upper == pytest.approx(most / weights[0].mean())
    on_train = make().score(model, "accuracy", sample_weight=(weights[0], rng.uniform(0.5, 2.0, size=N)), cv="training")
    trained = np.average(model.predict(data(1)[0]) == data(1)[1], weights=weights[0])
    assert on_train.source == "train"
    assert on_train.value == pytest.approx(trained)


@for_each(
    ("weights", "error", "message"),
    [
        (np.ones(N), InputTypeError, "train weights, holdout weights"),
        ((np.ones(N), np.ones(3)), InputError, "holdout weights of shape"),
        ((np.zeros(N), np.ones(N)), InputError, "all zero"),
        ((np.full(N, 1e308), np.ones(N)), InputError, "a ratio beyond the range of floats"),
        ((np.ones(N), -np.ones(N)), InputError, "negative"),
        ((np.ones(N), np.full(N, "a")), InputTypeError, "no numbers"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights: object, error: type[Exception], message: str) -> None:
    guard = make()
    model = LogisticRegression().fit(*data(1))
    with pytest.raises(error, match=message):
        guard.score(model, sample_weight=weights, cv="training")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a metric that is a mean"):
        guard.score(model, "roc_auc", sample_weight=(np.ones(N), np.ones(N)), cv="training")
    assert guard.history.empty


def test_a_closed_guard_shows_its_history_and_says_that_it_is_closed(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    guard = make(ledger=ledger)
    guard.ask(lambda X, y: np.asarray(y), key="first")
    [identity] = ledger.guards()
    export_history(ledger, identity, tmp_path / "history.jsonl")
    audited = MemoryLedger()
    import_history(audited, tmp_path / "history.jsonl")
    assert history_frame(audited.entries(identity)).equals(guard.history)
    assert "imported" in str(audited.closed(identity))
    ledger.close_guard(identity, "moved for the test")
    assert "moved for the test" in repr(guard)
    with pytest.raises(LedgerClosed, match="moved for the test"):
        guard.ask(0.5, np.full(N, 0.5))


def test_a_stored_answer_is_told_before_anything_is_computed_on_the_holdout() -> None:
    """A key that is known would otherwise make failures free, and with them all labels."""
    guard = make()
    first = guard.ask(lambda X, y: np.full(len(y), 0.5), key="k")
    holdout, seen = data(0)[0][0, 0], []

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        seen.append(X[0, 0])
        if X[0, 0] == holdout:
            raise RuntimeError
        return np.full(len(y), 0.5)

    again = guard.ask(query, key="k")
    assert again.repeated
    assert again.value == first.value
    assert holdout not in seen
    model = LogisticRegression().fit(*data(1))
    scored = guard.score(model, key="s", cv="training")
    assert guard.score(model, key="s", cv="training").value == scored.value
    assert len(guard.history) == 2


def fail_on_the_holdout(guard: Thresholdout, error: type[BaseException] = RuntimeError) -> None:
    first = data(0)[0][0, 0]

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0, 0] == first:
            raise error(f"the label is {y[0]}")
        return np.asarray(y)

    with pytest.raises(InputError, match="failed on the holdout") as caught:
        guard.ask(query)
    shown = "".join(traceback.format_exception(caught.value))
    assert "the label is" not in shown
    assert error.__name__ not in shown.replace("InputError", "")


def test_a_failure_costs_a_guard_that_makes_claims_twenty_bits() -> None:
    """The outcome *raised* leaves 2^-20 of the risk; intervals go on."""
    guard, plain = make(), make()
    fail_on_the_holdout(guard)
    assert guard.status.information_released == pytest.approx(20 * np.log(2), rel=1e-9)
    wide, narrow = (one.ask(lambda X, y: X[:, 0] > 1) for one in (guard, plain))
    low, high = wide.interval
    assert low < 0.158655 < high  # P(Z > 1)
    # limits at nats L are about sqrt(2 L) deviations wide: the fixed query's 2.2 and sqrt(2 (ln 40 + 20 ln 2)) = 5.9
    assert 1.5 * narrow.half_width < wide.half_width < 3 * narrow.half_width


def test_all_failures_on_the_holdout_look_the_same() -> None:
    """An error whose kind is made of labels would tell all of them for one charged query."""
    first = data(0)[0][0, 0]

    def spelled(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0, 0] == first:
            raise type("".join(map(str, y)), (Exception,), {})
        return np.asarray(y)

    def short(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(y[int(X[0, 0] == first) :])

    def texts(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(y).astype(str if X[0, 0] == first else float)

    shown = set()
    for query in (spelled, short, texts):
        guard = make()
        with pytest.raises(InputError) as caught:
            guard.ask(query)
        shown.add("".join(traceback.format_exception_only(caught.value)))
        assert guard.history["source"].tolist() == ["failed"]
    (text,) = shown
    assert "failed on the holdout" in text


@for_each("queries", [None, 1, 7, 50])
def test_the_shares_of_all_arrangements_of_failures_add_up(queries: int | None) -> None:
    """Each query goes on, ends in an error or in an interrupt: three things that an analyst can tell apart."""
    rounds, total = (8 if queries is None else queries), Fraction(0)
    for failures in range(1, rounds + 1):
        share = Fraction(failure_share(failures, rounds, queries))
        total += math.comb(rounds, failures) * 2**failures * share
    assert 0 < total <= Fraction(FAILURES)


def test_failures_widen_the_half_widths_that_follow() -> None:
    """One arrangement of f failures among m queries, each an error or an interrupt, has 2^-20 (4m)^-f of beta."""
    guard = make(mechanism=SparseVector(0.05, 0.006, budget=3), random_state=0)
    before = guard.ask(lambda X, y: np.asarray(y)).half_width
    fail_on_the_holdout(guard)
    after = guard.ask(lambda X, y: np.asarray(y), key="once more").half_width
    beta = 0.05 * 2.0**-20 / (4 * 50)
    expected = certify(Independent(N), threshold=0.05, noise_scale=0.006, budget=3, queries=50, confidence=1 - beta)
    low, high = expected.interval(3, 1, "train", float(np.mean(data(1)[1])))
    assert after == pytest.approx(max(np.mean(data(1)[1]) - low, high - np.mean(data(1)[1])), rel=1e-4)
    assert after > 1.5 * before
    plain = make(mechanism=SparseVector(0.05, 0.006, budget=3), random_state=0)
    for number in range(3):
        unharmed = plain.ask(lambda X, y: np.asarray(y), key=f"{number}").half_width
    assert unharmed < after


@for_each(
    "mechanism", [SparseVectorParameters(0.1, 0.01, budget=60, queries=60), "ladder"], ids=["algorithm 1", "ladder"]
)
def test_bits_that_failures_tell_are_not_certified(mechanism: object) -> None:
    """Queries that fail where a label is 1 spell the labels; a table of them has a truth of one half."""
    guard = make(mechanism=mechanism, queries=60)
    (X, y), known = data(0), {}
    for i in range(40):
        key = X[i, 0]

        def query(X: np.ndarray, y: np.ndarray, key: float = key) -> np.ndarray:
            if (y[X[:, 0] == key] == 1).any():
                raise RuntimeError
            return np.full(len(y), 0.5)

        try:
            guard.ask(query)
            known[key] = 0
        except InputError:
            known[key] = 1
    assert [known[X[i, 0]] for i in range(40)] == y[:40].tolist()
    answer = guard.ask(lambda X, y: np.asarray([known.get(x, 0) for x in X[:, 0]]) == y)
    assert answer.interval[0] <= 0.5 <= answer.interval[1]
    assert mechanism == "ladder" or answer.interval == (0.0, 1.0)  # which pays for failures from its risk


@for_each("error", [SystemExit, GeneratorExit, type("Panic", (BaseException,), {})])
def test_exits_and_panics_on_the_holdout_are_failures_too(error: type[BaseException]) -> None:
    guard = make()
    fail_on_the_holdout(guard, error)
    assert guard.status.answers_left == 2


@for_each("key", [None, "mine"])
def test_an_interrupt_that_the_query_raises_is_charged(tmp_path: Path, key: str | None) -> None:
    """A query that interrupts when a label is 1 would read labels for nothing."""
    guard = make(ledger=tmp_path / "guard.db")
    left = guard.status.answers_left
    first = data(0)[0][0, 0]

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0, 0] == first:
            raise KeyboardInterrupt(f"the label is {y[0]}")
        return np.asarray(y)

    with pytest.raises(KeyboardInterrupt) as caught:
        guard.ask(query, key=key)
    assert "the label is" not in "".join(traceback.format_exception(caught.value))
    again = make(ledger=tmp_path / "guard.db")
    assert again.history["source"].tolist() == ["failed"]
    assert left is not None
    assert again.status.answers_left == left - 1


def test_an_interrupt_is_charged_though_somebody_else_has_the_answer_meanwhile() -> None:
    """The stored answer, or an interrupt instead: which of them comes would tell a bit for nothing."""
    guard = make()
    first = data(0)[0][0, 0]

    def interrupts(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0, 0] == first:
            guard.ask(lambda X, y: y, name="same", key="mine")
            raise KeyboardInterrupt
        return np.asarray(y)

    with pytest.raises(KeyboardInterrupt):
        guard.ask(interrupts, name="same", key="mine")
    history = guard.history
    assert (history["source"] == "failed").tolist() == [False, True]
    assert history["key"][0] == "mine"


def test_warnings_about_the_holdout_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    guard = make()
    first = data(0)[0][0, 0]

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0, 0] == first:
            warnings.warn(f"unknown category {y[0]}", UserWarning, stacklevel=1)
        return np.asarray(y)

    guard.ask(query)
    assert not recwarn.list


def test_the_training_part_is_handed_out_read_only() -> None:
    guard = make()
    model = make_pipeline(StandardScaler(copy=False), LogisticRegression()).fit(*data(1))
    before = guard.train[0].copy()
    first, second = guard.score(model, cv="training"), guard.score(model, cv="training", key="again")
    assert (first.query, second.query) == (1, 2)
    assert guard.history["train"].nunique() == 1
    assert np.array_equal(guard.train[0], before)
    assert origin(guard, *data(1)) == "train"


@for_each("retyped", [lambda X, y: (X.astype(object), y), lambda X, y: (X, y.astype(object))])
def test_a_retyped_holdout_is_the_same_holdout(retyped: Callable[..., tuple[object, object]]) -> None:
    ledger = MemoryLedger()
    make(ledger=ledger).ask(1.0, np.zeros(N))
    settings = {"train": data(1), "queries": 50, "mechanism": Claims(holdout_answers=3)}
    assert Thresholdout(retyped(*data(0)), ledger=ledger, **settings).status.answers_left == 2  # type: ignore[arg-type]
