"""A development part: which records are open, what their scores are used for, and what the guard makes of them."""

from __future__ import annotations

import gc
import hashlib
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from graphs import Groups, MovingWindow
from tests.cases import for_each
from thresholdout import (
    DevelopmentOverfitWarning,
    InputError,
    LedgerMismatch,
    LikelyMistakeWarning,
    OverlapError,
    Thresholdout,
)
from thresholdout.guard.development import open_positions
from thresholdout.model_selection import GuardedSearchCV


def data(n: int = 1500, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


X, Y = data()
TRAIN, HELD = (X[:300], Y[:300]), (X[300:], Y[300:])
MODEL = LogisticRegression().fit(*TRAIN)


class Fitted:
    """A model from elsewhere, which cannot be fitted again."""

    def predict(self, X: Any) -> Any:
        return MODEL.predict(X)


class Coins:
    """Predictions that are functions of a record alone: a hash of it."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def predict(self, X: Any) -> Any:
        return (np.sin(1e4 * (np.asarray(X) @ self.weights)) > 0).astype(int)


class Ones:
    """A model that always says 1."""

    def predict(self, X: Any) -> Any:
        return np.ones(len(X), dtype=int)


def test_a_keyed_hash_of_the_places_alone_chooses() -> None:
    key = "00112233445566778899aabbccddeeff"
    text = hashlib.shake_128(b"thresholdout development " + bytes.fromhex(key)).digest(80)
    drawn = [int.from_bytes(text[8 * k : 8 * k + 8], "little") for k in range(10)]
    expected = set(sorted(range(10), key=lambda place: drawn[place])[:3])
    assert set(np.flatnonzero(open_positions(key, np.arange(10), 0.3)).tolist()) == expected


def test_whole_groups_are_open_and_as_near_to_the_share_as_they_come() -> None:
    rng = np.random.default_rng(1)
    for key in range(50):
        units = np.repeat(np.arange(30), rng.integers(1, 9, size=30))
        share = float(rng.uniform(0.05, 0.95))
        chosen = open_positions(f"{key:032x}", units, share)
        assert all(len(set(chosen[units == unit].tolist())) == 1 for unit in range(30))
        assert 0 < chosen.sum() < units.size
        assert abs(chosen.sum() - share * units.size) <= 8


def test_every_place_is_open_as_often_as_the_share_says() -> None:
    counts = sum(open_positions(f"{key:032x}", np.arange(40), 0.25).astype(int) for key in range(2000))
    low, high = (binom.ppf(level, 2000, 0.25) for level in (1e-9 / 80, 1 - 1e-9 / 80))
    assert low <= np.min(counts) <= np.max(counts) <= high
    sorted_twin = 2000 * (np.arange(40) < 10)  # the first quarter, always
    assert not low <= sorted_twin.min() <= sorted_twin.max() <= high


def test_a_share_divides_the_records_and_none_is_in_both_parts() -> None:
    guard = Thresholdout(HELD, train=TRAIN, development=0.4, random_state=0)
    assert guard.development is not None
    assert (guard.n, len(guard.development[1])) == (720, 480)
    rows = [tuple(row) for part in (guard.development, guard._records.holdout) for row in part[0]]
    assert sorted(rows) == sorted(map(tuple, HELD[0]))
    same = Thresholdout(HELD, train=TRAIN, development=0.4, random_state=0)
    other = Thresholdout(HELD, train=TRAIN, development=0.4, random_state=1)
    assert np.array_equal(same.development[0], guard.development[0])  # type: ignore[index]
    assert not np.array_equal(other.development[0], guard.development[0])  # type: ignore[index]


@for_each("model", [MODEL, Fitted()])
def test_the_training_value_is_the_exact_score_on_the_open_records(model: Any) -> None:
    guard = Thresholdout(HELD, train=TRAIN, development=0.5)
    X_open, y_open = guard.development  # type: ignore[misc]
    exact = accuracy_score(y_open, MODEL.predict(X_open))
    assert guard.development_score(model) == pytest.approx(exact, abs=1e-12)
    assert guard.development_score(model, "f1") == pytest.approx(f1_score(y_open, MODEL.predict(X_open)), abs=1e-12)
    assert guard.history.empty
    answer = guard.score(model)
    assert answer.source == "train"
    assert answer.value == pytest.approx(exact, abs=1e-12)


def test_a_part_of_its_own_needs_no_training_part() -> None:
    guard = Thresholdout(HELD, development=TRAIN)
    assert guard.n == 1200
    assert guard.score(Fitted()).value == pytest.approx(np.mean(MODEL.predict(TRAIN[0]) == TRAIN[1]), abs=1e-12)
    assert guard.ask(lambda X, y: X[:, 0] > 0).value == pytest.approx(np.mean(TRAIN[0][:, 0] > 0), abs=1e-12)
    assert guard.compare(MODEL, DummyClassifier().fit(*TRAIN)).verdict == "better"
    with pytest.raises(InputError, match="train is missing"):
        guard.split()
    with pytest.raises(InputError, match=r"^cv must be None.*; got 3"):
        guard.score(MODEL, cv=3)


@pytest.mark.filterwarnings("ignore::thresholdout.WideAnswersWarning")
def test_every_guard_of_the_same_records_opens_the_same_ones(tmp_path: Any) -> None:
    """In memory first, then in one ledger and in another: a second division would open records that were guarded."""
    places = (None, None, tmp_path / "one.db", tmp_path / "other.db")
    opened = [Thresholdout(HELD, train=TRAIN, development=0.5, ledger=where).development for where in places]
    assert all(np.array_equal(opened[0][0], one[0]) for one in opened)  # type: ignore[index]


@pytest.mark.filterwarnings("ignore::thresholdout.WideAnswersWarning")
@for_each("changes", [{"development": 0.3}, {"development": None}])
def test_another_division_in_the_process_is_warned_of(changes: dict[str, Any]) -> None:
    rng = np.random.default_rng(17)
    held = rng.normal(size=(400, 3)), rng.integers(0, 2, size=400)
    first, again = (Thresholdout(held, development=0.5) for _ in range(2))
    assert first.development is not None
    with pytest.warns(LikelyMistakeWarning, match="Another guard of these records"):
        Thresholdout(held, **changes)
    with pytest.warns(LikelyMistakeWarning, match="another share, order or groups"):
        Thresholdout((held[0][::-1], held[1][::-1]), development=0.5)
    del first, again
    gc.collect()
    Thresholdout(held, **changes)


@pytest.mark.slow
def test_a_ledger_keeps_the_division(tmp_path: Any) -> None:
    for where in (tmp_path / "guard.db", f"sqlite:///{tmp_path / 'other.db'}"):
        first = Thresholdout(HELD, train=TRAIN, development=0.5, ledger=where)
        told = first.score(MODEL)
        again = Thresholdout(HELD, train=TRAIN, development=0.5, ledger=where)
        assert np.array_equal(first.development[0], again.development[0])  # type: ignore[index]
        assert again.score(MODEL).repeated
        assert again.score(MODEL).value == told.value
        with pytest.raises(LedgerMismatch, match=r"development = 0.5, not None"):
            Thresholdout(HELD, train=TRAIN, ledger=where)
        with pytest.raises(LedgerMismatch, match=r"development = 0.5, not 0.4"):
            Thresholdout(HELD, train=TRAIN, development=0.4, ledger=where)
        with pytest.raises(LedgerMismatch, match="their positions decide which of them"):
            Thresholdout((HELD[0][::-1], HELD[1][::-1]), train=TRAIN, development=0.5, ledger=where)


@pytest.mark.slow
def test_other_groups_would_open_other_records_and_are_refused(tmp_path: Any) -> None:
    """Groups of the guarded records alone may look the same: pairs that begin one record later do in half of cases."""
    pairs = np.repeat(np.arange(600), 2)
    later = np.concatenate([[0], np.repeat(np.arange(1, 600), 2), [0]])
    for place in range(6):
        where = tmp_path / f"{place}.db"
        Thresholdout((*HELD, pairs), development=0.5, ledger=where)
        with pytest.raises(LedgerMismatch, match="another model of dependence"):
            Thresholdout((*HELD, later), development=0.5, ledger=where)


@pytest.mark.filterwarnings("ignore::thresholdout.DevelopmentOverfitWarning", "ignore::thresholdout.WideAnswersWarning")
def test_a_guard_that_is_made_again_without_a_ledger_opens_the_same_records() -> None:
    """A model that was fitted to the open records knows nothing of the others then."""
    labels = np.random.default_rng(3).integers(0, 2, size=1200)
    first, again = (Thresholdout((HELD[0], labels), development=0.5, final_check=True) for _ in range(2))
    assert first.development is not None
    model = KNeighborsClassifier(1).fit(*first.development)
    low, high = again.final_check(model).interval
    assert low <= 0.5 <= high


def test_equal_records_are_refused_whatever_the_division() -> None:
    """Otherwise whoever tries again is given a division that has them in one part, which tells of the guarded."""
    X_twice, y_twice = np.concatenate([HELD[0], HELD[0][:1]]), np.append(HELD[1], HELD[1][0])
    for seed in range(4):
        with pytest.raises(OverlapError, match="1 records repeat others"):
            Thresholdout((X_twice, y_twice), development=0.5, random_state=seed)
    groups = np.append(np.arange(1200), 0)
    Thresholdout((X_twice, y_twice, groups), development=0.5)
    with pytest.raises(OverlapError, match="1 records repeat records of other groups"):
        Thresholdout((X_twice, y_twice, np.append(groups[:-1], 1)), development=0.5)


def test_groups_stay_whole_and_apart() -> None:
    groups, others = np.repeat(np.arange(240), 5), 1000 + np.arange(300)
    guard = Thresholdout((*HELD, groups), train=(*TRAIN, others), development=0.5, random_state=3)
    assert guard.dependence.describe() == "600 records in 120 independent groups of 5"
    position = {tuple(row): group for row, group in zip(HELD[0], groups, strict=True)}
    opened = {position[tuple(row)] for row in guard.development[0]}  # type: ignore[index]
    guarded = {position[tuple(row)] for row in guard._records.holdout[0]}
    assert len(opened) == 120
    assert not opened & guarded
    with pytest.raises(OverlapError, match=r"^development must be .*; got 1 of its 240 groups"):
        Thresholdout((*HELD, groups), development=(*TRAIN, np.where(others == 1000, 0, others)))
    with pytest.raises(InputError, match="got a part without groups"):
        Thresholdout((*HELD, groups), development=TRAIN)


@for_each(
    ("arguments", "said"),
    [
        ({"development": 0.0}, "0.0."),
        ({"development": 1}, "1."),
        ({"development": (X[:5], Y[:5])}, "5 of 5 development records"),
        ({"development": (X[-5:], Y[-5:])}, "5 of 1200 holdout records"),
        ({"development": (X[:5, :2], Y[:5])}, "records of shape"),
        ({"development": 0.5, "dependence": MovingWindow(1200, 3)}, "a share of 1200 records"),
    ],
)
def test_a_refusal_says_what_is_wrong(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        Thresholdout(HELD, train=TRAIN, **arguments)
    assert str(refused.value).startswith("development must be ")
    assert f"; got {said}" in str(refused.value)


@pytest.mark.slow
def test_gates_scorers_and_searches_use_it() -> None:
    guard = Thresholdout(HELD, train=TRAIN, development=0.5, random_state=0)
    dummy = DummyClassifier().fit(*TRAIN)
    gate = guard.gate(dummy)
    told = gate.propose(Fitted())
    assert told.certified
    assert told.gain == pytest.approx(guard.development_score(MODEL) - guard.development_score(dummy))
    grid = {"C": [0.01, 1.0]}
    search = GridSearchCV(LogisticRegression(), grid, scoring=guard.scorer(), cv=guard.split()).fit(*TRAIN)
    exact = [guard.development_score(LogisticRegression(C=C).fit(*TRAIN)) for C in grid["C"]]
    assert search.cv_results_["mean_test_score"] == pytest.approx(exact)
    fresh = Thresholdout(HELD, train=TRAIN, development=0.5, random_state=0)
    listed = GuardedSearchCV(GridSearchCV(LogisticRegression(), grid), fresh, report="all").fit(*TRAIN)
    shown = fresh.history["train"].to_numpy()
    assert sorted(shown) == pytest.approx(sorted(exact))
    assert listed.best_score_ == max(listed.cv_results_["guarded_score"])


def overfitted(guard: Thresholdout, models: int) -> Any:
    """Return the model of many that scores best on the open records."""
    weights = np.random.default_rng(0).normal(size=(models, 4))
    return max(map(Coins, weights), key=guard.development_score)


def test_an_overfitted_open_part_is_said_to_be_one() -> None:
    rng = np.random.default_rng(5)
    guard = Thresholdout((X, rng.integers(0, 2, size=len(X))), development=0.06, random_state=0)
    best = overfitted(guard, 400)
    assert guard.development_score(best) > 0.6
    with pytest.warns(DevelopmentOverfitWarning, match="or that part is overfitted"):
        answer = guard.score(best)
    assert answer.interval[0] <= 0.5 <= answer.interval[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DevelopmentOverfitWarning)
        Thresholdout(HELD, development=TRAIN).score(MODEL)


@pytest.mark.filterwarnings("ignore::thresholdout.DevelopmentOverfitWarning", "ignore::thresholdout.WideAnswersWarning")
def test_a_final_check_prefers_no_side_where_models_were_chosen_by_their_guesses() -> None:
    for hits in (130, 170):
        held = np.repeat([1, 0], [hits, 200 - hits])
        opened = (np.zeros((100, 1)), np.repeat([1, 0], [95, 5]))
        guard = Thresholdout((np.zeros((200, 1)), held), development=opened, sampling="iid", allow_duplicates=True)
        expected = beta.ppf([0.025, 0.975], [hits, hits + 1], [201 - hits, 200 - hits])  # Clopper and Pearson
        foreseen = guard.status.final_half_width(hits / 200)
        reserved = Thresholdout((np.zeros((200, 1)), held), development=opened, allow_duplicates=True, final_check=True)
        final = reserved.certificate.final
        assert final is not None
        assert final.half_width(0.8) > replace(final, chosen=False).half_width(0.8)
        found = guard.final_check(Ones())
        assert list(found.interval) == pytest.approx(np.asarray(expected).tolist(), abs=2e-5)
        assert found.half_width == pytest.approx(foreseen, abs=1e-4)


def misses(leak: bool, runs: int = 40) -> int:
    """Count the final checks whose interval lacks the true score, 1/2; the twin guards the open records themselves."""
    missed = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        opened, held = ((rng.normal(size=(200, 4)), rng.integers(0, 2, size=200)) for _ in range(2))
        guard = Thresholdout(
            opened if leak else held, development=opened, random_state=run, allow_duplicates=True, final_check=True
        )
        low, high = guard.final_check(overfitted(guard, 120)).interval
        missed += not low <= 0.5 <= high
    return missed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::thresholdout.DevelopmentOverfitWarning", "ignore::thresholdout.WideAnswersWarning")
def test_intervals_hold_after_a_climb_on_the_open_records() -> None:
    most = binom.isf(1e-9, 40, 0.05)
    assert misses(leak=False) <= most
    assert misses(leak=True) > most


def test_sorted_records_with_an_open_share_are_warned_of() -> None:
    """A warning by mistake has the probability 1e-9 at most: 2 (12! 13!)/25! = 3.8e-7 for 25 records is not enough."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)

    def warned(order: Any, labels: Any = y, **given: Any) -> bool:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            Thresholdout((X[order], labels[order]), development=0.5, **given)
        return any("sorted by their labels" in str(one.message) for one in seen)

    drawn, by_class = np.arange(400), np.argsort(y, kind="stable")
    assert not warned(drawn)
    assert warned(by_class)
    assert warned(by_class[::-1])
    assert warned(np.argsort(X[:, 0]), X[:, 0])  # a regression
    names = np.array(["b", "c", "a"])[rng.integers(0, 3, 400)]
    assert warned(np.argsort(names, kind="stable"), names)
    assert not warned(by_class[175:225])  # of 25 open records
    assert not warned(by_class, dependence=Groups(np.arange(400) // 50))  # four groups are open
