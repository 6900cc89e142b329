"""Values with labels find their records by label, values without by order, and anything between is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from tests.cases import for_each
from thresholdout import Claims, KFoldGuard, SparseVector, Thresholdout
from thresholdout.errors import InputError
from thresholdout.guard.holdout import Records

RNG = np.random.default_rng(3)
N = 300
NAMES = RNG.permutation(2 * N)
X = pd.DataFrame(RNG.normal(size=(2 * N, 2)), columns=["a", "b"], index=NAMES)
Y = pd.Series((X["a"] > 0).astype(int), index=NAMES)
TURN = RNG.permutation(N)


def make(holdout: Any = None, train: Any = None, **changes: Any) -> Thresholdout:
    """Return a guard whose every answer is the exact holdout mean up to 1e-3 or so."""
    settings: dict[str, Any] = {"queries": 20, "mechanism": SparseVector(1e-4, 1e-5, budget=20), **changes}
    return Thresholdout(
        (X[:N], Y[:N]) if holdout is None else holdout, train=(X[N:], Y[N:]) if train is None else train, **settings
    )


@pytest.mark.slow
@for_each("part", ["holdout", "train"])
@for_each(
    ("index", "seen"),
    [
        (lambda own: own[TURN], "the labels of X in another order"),
        (lambda own: pd.RangeIndex(N), "other labels than that of X"),
        (lambda own: own + 1, "other labels than that of X"),
    ],
    ids=["order", "numbers", "other"],
)
def test_a_y_with_another_index_than_x_is_refused_and_what_the_refusal_names_works(
    part: str, index: Any, seen: str
) -> None:
    own = slice(N) if part == "holdout" else slice(N, None)
    x, y = X[own], pd.Series(Y[own].to_numpy(), index=index(X[own].index))
    with pytest.raises(
        InputError, match=rf"^{part} must be .*; got a y whose index has {seen}\. .*y\.loc\[X\.index\].*y\.to_numpy\(\)"
    ):
        make(**{part: (x, y)})
    assert make(**{part: (x, y.to_numpy())}).n == N
    if seen.endswith("order"):
        assert make(**{part: (x, y.loc[x.index])}).n == N


def test_what_has_no_index_is_in_order() -> None:
    for x, y in ((X[:N].to_numpy(), Y[:N]), (X[:N], Y[:N].to_numpy()), (X[:N], Y[:N].tolist())):
        assert make((x, y), mechanism="claims").n == N
    frame, labels = X.reset_index(drop=True), Y.reset_index(drop=True)
    assert make((frame[:N], labels[:N]), (frame[N:], labels[N:])).n == N
    with pytest.raises(InputError, match=r"holdout must be .*; got a y whose index has"):
        KFoldGuard((X, Y.sort_index()), cv=2, queries=5, mechanism=Claims(holdout_answers=1))


@pytest.mark.slow
def test_labelled_values_are_taken_by_label() -> None:
    guard = make()
    values = pd.Series(np.arange(N) < 30, index=X[:N].index)
    asked = [values, values.to_numpy(), values.iloc[TURN], values.sort_index()]
    for k, given in enumerate(asked):
        assert guard.ask(1.0, given, name=str(k)).value == pytest.approx(0.1, abs=0.01)
    # a mean is the same in any order: weights show whether records got their own values
    weight = pd.Series(np.r_[np.full(30, 3.0), np.full(N - 30, 1.0)], index=X[:N].index)
    model = LogisticRegression().fit(X[N:], Y[N:])
    right = (model.predict(X[:N]) == Y[:N].to_numpy()).astype(float)
    expected = float((weight * right).mean())
    train = pd.Series(np.r_[3.0, np.ones(N - 1)], index=X[N:].index)
    for given in (weight, weight.iloc[TURN], weight.to_numpy()):
        for own in (train, train.iloc[TURN]):
            answer = make().score(model, sample_weight=(own, given), cv="training")
            assert answer.value * float(np.mean(train.to_numpy())) == pytest.approx(expected, abs=1e-3)


def test_records_get_their_own_values() -> None:
    """Whatever the order of the values; means over parts of the records, or weighted ones, depend on it."""
    records = Records((X[:N], Y[:N]), (X[N:], Y[N:]), allow_duplicates=False)
    values = pd.Series(np.arange(N), index=X[:N].index)
    for given in (values, values.iloc[TURN], values.sort_index(), values.to_numpy()):
        assert np.asarray(records.ordered(given, "holdout_values")).tolist() == list(range(N))


@for_each(
    ("values", "message"),
    [
        (pd.Series(np.ones(N)), r"another index than that of the 300 records.*values\.to_numpy\(\)"),
        (pd.Series(np.ones(N), index=X[N:].index), "another index than that of the 300 records"),
        (pd.Series(np.ones(N), index=np.zeros(N)), "another index than that of the 300 records"),
        (pd.Series(np.ones(N - 1), index=X[: N - 1].index), "another index than that of the 300 records"),
    ],
    ids=["numbered", "other", "twice", "fewer"],
)
def test_other_labels_are_refused_before_anything_is_spent(values: Any, message: str) -> None:
    guard = make()
    with pytest.raises(InputError, match=f"^holdout_values must be .*{message}"):
        guard.ask(0.0, values)
    with pytest.raises(InputError, match=r"^train_values must be .*another index"):
        guard.ask(pd.Series(np.ones(N)), np.ones(N))
    with pytest.raises(InputError, match=r"^train_values must be .*another index"):
        guard.ask(lambda X, y: pd.Series(np.ones(len(X))))
    assert guard.history.empty
    assert guard.ask(0.0, np.ones(N)).value == pytest.approx(1.0, abs=0.01)


def test_labelled_values_for_records_without_labels_are_refused() -> None:
    arrays = (X[:N].to_numpy(), Y[:N].to_numpy()), (X[N:].to_numpy(), Y[N:].to_numpy())
    guard = make(*arrays)
    with pytest.raises(InputError, match=r"holdout_values must be values without an index; .*values\.to_numpy\(\)"):
        guard.ask(0.0, Y[:N] == 1)
    assert guard.history.empty
    share = float(Y[:N].mean())
    assert guard.ask(0.0, (Y[:N] == 1).to_numpy()).value == pytest.approx(share, abs=0.01)
    assert guard.ask(0.0, (Y[:N] == 1).reset_index(drop=True)).value == pytest.approx(share, abs=0.01)


def test_groups_of_a_cross_validation_are_those_of_their_records() -> None:
    """By order, records of one patient are in several folds, which learn from each other: 0.88 +- 0.21, truth 0.5."""
    patient = pd.Series(np.repeat(np.arange(N), 2), index=NAMES)
    by_order = KFoldGuard((X, Y, patient.to_numpy()), cv=3, queries=5, mechanism=Claims(holdout_answers=1))
    for groups in (patient, patient.sort_index(), patient.sample(frac=1.0, random_state=0)):
        guard = KFoldGuard((X, Y, groups), cv=3, queries=5, mechanism=Claims(holdout_answers=1))
        assert guard.dependence.fingerprint() == by_order.dependence.fingerprint()
    for records in (X, X.to_numpy()):
        labels = Y if records is X else Y.to_numpy()
        other = patient.set_axis(np.arange(2 * N) + 1)
        with pytest.raises(InputError, match=r"^groups must be .*; got .* index.*values\.to_numpy\(\)"):
            KFoldGuard((records, labels, other), cv=3, queries=5, mechanism=Claims(holdout_answers=1))
        assert (
            KFoldGuard((records, labels, other.to_numpy()), cv=3, queries=5, mechanism=Claims(holdout_answers=1)).n
            == 2 * N
        )
