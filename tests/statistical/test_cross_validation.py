"""Guarded cross-validation against analysts and learners that do their worst; guards per fold, which fail.

Labels are fair coins, so the risk of every model is 1/2, whatever it was fitted to. Seeds are fixed; over seeds, a
promise that holds fails its test with probability at most 1e-9.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold, StratifiedKFold

from tests.sizes import corners
from tests.statistical.rejection import too_many
from thresholdout import Claims, SparseVector, Thresholdout
from thresholdout.guard.kfold import KFoldGuard

pytestmark = pytest.mark.statistical

Floats = NDArray[np.float64]


def coins(seed: int, n: int) -> tuple[Floats, NDArray[np.int64]]:
    """Records that are known by their number, with labels that nobody can know."""
    return np.arange(n, dtype=np.float64)[:, None], np.random.default_rng(seed).integers(0, 2, size=n)


def pattern(seed: int, numbers: Floats) -> NDArray[np.int64]:
    """Return labels that have nothing to do with the true ones: a fixed function of a record's number."""
    labels: NDArray[np.int64] = np.random.default_rng(seed).integers(0, 2, size=10_000)
    return np.asarray(labels[numbers.astype(int)], dtype=np.int64)


class Conspirator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts patterns by majority, or their contrary, depending on how they do in each of the other folds.

    In all folds its errors have one sign: the product of the signs of all folds' deviations.
    """

    def __init__(self, seeds: tuple[int, ...] = (0,), folds: int = 4) -> None:
        self.seeds = seeds
        self.folds = folds

    def _vote(self, X: Floats) -> NDArray[np.int64]:
        votes = sum(pattern(seed, X[:, 0]) for seed in self.seeds)
        return np.asarray(2 * votes > len(self.seeds)).astype(np.int64)

    def fit(self, X: Floats, y: NDArray[np.int64]) -> "Conspirator":
        self.classes_ = np.array([0, 1])
        right, home = self._vote(X) == y, X[:, 0].astype(int) % self.folds
        signs = [1 if right[home == fold].mean() >= 0.5 else -1 for fold in np.unique(home)]
        self.sign_ = int(np.prod(signs))
        return self

    def predict(self, X: Floats) -> NDArray[np.int64]:
        return self._vote(X) if self.sign_ > 0 else 1 - self._vote(X)


def stripes(n: int, folds: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    home = np.arange(n) % folds
    return [(np.flatnonzero(home != fold), np.flatnonzero(home == fold)) for fold in range(folds)]


def climb(guard: KFoldGuard, folds: int, seed: int, queries: int) -> bool:
    """Keep patterns that seem to do well, ask for their majority; return whether the promise was kept."""
    kept: list[int] = []
    for query in range(queries - 1):
        fresh = 100 * seed + query
        answer = guard.score(Conspirator((fresh,), folds), "accuracy", expected=0.5, key=str(query))
        if answer > 0.5 or query % 3 == 0:
            kept.append(fresh)
    guard.score(Conspirator(tuple(kept), folds), "accuracy", expected=0.5, key="all")
    return all(answer.interval[0] <= 0.5 <= answer.interval[1] for answer in guard.answers)


@pytest.mark.parametrize("mechanism", corners(["claims", "ladder"], 1))
def test_the_promise_is_kept_against_conspiring_folds_and_an_adaptive_analyst(mechanism: str) -> None:
    def broken(run: int) -> bool:
        X, y = coins(run, 600)
        guard = KFoldGuard((X, y), cv=stripes(600, 4), queries=12, mechanism=mechanism, random_state=run)  # type: ignore[arg-type]
        return not climb(guard, 4, run, 12)

    assert not too_many((broken(run) for run in range(30)), 30, 0.05)


def test_conspiring_folds_fluctuate_as_much_as_the_inflation_allows_up_to_2_over_pi() -> None:
    n, folds, runs = 400, 8, 3000
    rng = np.random.default_rng(0)
    right = rng.binomial(n // folds, 0.5, size=(runs, folds)) / (n // folds) - 0.5
    signs = np.where(right >= 0, 1, -1)
    errors = (signs.prod(axis=1)[:, None] * signs * right).mean(axis=1)  # sign of the others times what it multiplies
    share = np.mean(errors**2) / (folds / (4 * n))
    assert 2 / np.pi * 0.9 < share < 2 / np.pi * 1.35
    # The same errors for real: a conspirator's are as large.
    X, y = coins(5, n)
    judged = np.empty(n)
    for train, test in stripes(n, folds):
        judged[test] = Conspirator((3,), folds).fit(X[train], y[train]).predict(X[test]) == y[test]
    deviations = [abs(judged[test].mean() - 0.5) for _, test in stripes(n, folds)]
    assert abs(judged.mean() - 0.5) == pytest.approx(np.mean(deviations), abs=1e-12)


class Parity(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the parity of the training labels: right for all records left out one by one, or for none."""

    def fit(self, X: Floats, y: NDArray[np.int64]) -> "Parity":
        self.classes_ = np.array([0, 1])
        self.parity_ = int(y.sum() % 2)
        return self

    def predict(self, X: Floats) -> NDArray[np.int64]:
        return np.full(len(X), self.parity_)


def test_leaving_one_out_says_next_to_nothing_and_taken_for_independent_it_fails_always() -> None:
    for run in range(3):
        X, y = coins(run, 300)
        low, high = KFoldGuard((X, y), cv=300, queries=1).score(Parity()).interval
        assert low < 0.05
        assert high > 0.95
        right = [y[i] == (y.sum() - y[i]) % 2 for i in range(300)]
        wrong_model = Thresholdout((X, y), queries=1, mechanism=Claims(holdout_answers=1), random_state=run)
        answer = wrong_model.ask(0.5, right)
        assert abs(answer.value - 0.5) > answer.half_width


def test_a_guard_for_each_fold_breaks_its_promise_with_certainty() -> None:
    """The guard of fold 1 tells the labels of fold 2 for free; the guard of fold 2 is asked for a table of them."""
    n, digits = 1200, 30
    for run in range(10):
        X, y = coins(run, 2 * n)
        folds = [(X[:n], y[:n]), (X[n:], y[n:])]
        first = Thresholdout(
            folds[0],
            train=folds[1],
            queries=n // digits + 1,
            mechanism=SparseVector(0.1, 0.001, budget=1),
            random_state=run,
        )
        second = Thresholdout(folds[1], train=folds[0], random_state=run)
        table = np.zeros(2 * n, dtype=np.int64)
        for start in range(n, 2 * n, digits):

            def binary_digits(X: Floats, y: NDArray[np.int64], start: int = start) -> Floats:
                place = np.clip(X[:, 0] - start, -1, digits)
                return np.where((place >= 0) & (place < digits), y * 2.0 ** -(place + 1), 0.0)

            answer = first.ask(binary_digits)
            assert answer.source == "train"
            number = round(answer.value * n * 2**digits)
            table[start : start + digits] = [number >> (digits - 1 - place) & 1 for place in range(digits)]
        assert first.status.answers_left == 1  # nothing was spent
        answer = second.ask(lambda X, y, table=table: table[X[:, 0].astype(int)] == y)
        assert answer.interval[0] > 0.8  # a table of coins has risk 1/2


def test_stratified_folds_would_break_the_promise() -> None:
    """Classes that occur in the other folds occur in a stratified fold more often than in the population."""
    n, classes = 4000, 2000

    def error(splitter: KFold | StratifiedKFold, y: NDArray[np.int64]) -> float:
        total = 0.0
        for train, test in splitter.split(np.zeros((n, 1)), y):
            seen = np.unique(y[train])
            total += (np.isin(y[test], seen).mean() - len(seen) / classes) * len(test) / n
        return total

    for run in range(10):
        y = np.random.default_rng(run).integers(0, classes, size=n)
        with pytest.warns(UserWarning, match="least populated class"):
            stratified = error(StratifiedKFold(2, shuffle=True, random_state=run), y)
        # Expected: 1 - exp(-2) of the records less 1 - 2 exp(-2) of the classes, 0.135. By the theorem for blind folds,
        # an error beyond 0.1 has probability at most 2 exp(-2 * 2000 * 0.1**2) < 1e-16.
        assert stratified > 0.1 > abs(error(KFold(2, shuffle=True, random_state=run), y))
