"""The half-widths of statistics tell nothing about the labels but how many records of each class there are.

Groups of known, different sizes have one label each, from a fair coin. The analyst knows the sizes and how many records
are positive. He scores a constant classifier, takes its half-width for that of one labelling among those that fit,
and predicts these labels: on the holdout this is right as often as not, so the accuracy's truth is 1/2. At confidence
0.9 a session is broken with probability at most 0.1, so more than ``binom.isf(1e-9, SESSIONS, 0.1)`` broken ones reject
the guard, and a valid one with probability at most 1e-9. Half-widths with the spread of the labelling itself, in place
of the largest of all labellings with these numbers, must be rejected.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from graphs import DependenceModel, Groups
from thresholdout import Thresholdout
from thresholdout.noise import SeededNoise
from thresholdout.statistics import Statistic, balanced_accuracy, f1, roc_auc

pytestmark = pytest.mark.statistical

SESSIONS = 40
CONFIDENCE = 0.9
LIMIT = int(binom.isf(1e-9, SESSIONS, 1 - CONFIDENCE))
SIZES = np.sort(np.random.default_rng(1).choice(np.arange(2000, 4000), 24, replace=False))
GROUP = np.repeat(np.arange(SIZES.size), SIZES)
ALL = float((SIZES**2).sum())

Ints = NDArray[np.int64]


class Fixed:
    """A classifier that predicts a label for each group; features are numbers of groups."""

    classes_ = np.array([0, 1])

    def __init__(self, labels: Ints) -> None:
        self.labels = labels

    def predict(self, X: NDArray[np.float64]) -> Ints:
        return self.labels[X[:, 0].astype(np.int64)]

    def decision_function(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.predict(X).astype(np.float64)


def v(spread: float) -> float:
    return spread**2 * ALL / GROUP.size**2


def squares_from_balanced_accuracy(spread: float, a: int, b: int) -> float:
    """Sum of the squares of the sizes of positive groups, if V is the one of the labelling itself."""
    return (v(spread) - ALL / (4 * b**2)) / (1 / (4 * a**2) - 1 / (4 * b**2))


def squares_from_the_area(spread: float, a: int, b: int) -> float:
    return (v(spread) - ALL / b**2) / (1 / a**2 - 1 / b**2)


def squares_from_f1(spread: float, a: int, b: int) -> float:
    return v(spread) * a**2 / 4


ATTACKS: dict[str, tuple[Statistic, Callable[[float, int, int], float]]] = {
    "balanced accuracy": (balanced_accuracy(), squares_from_balanced_accuracy),
    "area": (roc_auc(), squares_from_the_area),
    "F1": (f1(), squares_from_f1),
}


@functools.cache
def sets() -> Ints:
    """All sets of half of the groups, one a row."""
    count = SIZES.size // 2
    return (np.arange(2**count)[:, None] >> np.arange(count)) & 1


def labelling(positive: int, squares: float) -> Ints:
    """Labels of the groups that have this number of positive records, and sum of squares as near as can be."""
    count = SIZES.size // 2
    (sums, other_sums), (of_first, of_second) = ((sets() @ v[:count], sets() @ v[count:]) for v in (SIZES, SIZES**2))
    order = np.argsort(other_sums, kind="stable")
    starts = other_sums[order].searchsorted(positive - sums, "left")
    ends = other_sums[order].searchsorted(positive - sums, "right")
    best, found = math.inf, np.zeros(SIZES.size, dtype=np.int64)
    for k in np.flatnonzero(ends > starts):
        among = order[starts[k] : ends[k]]
        away = np.abs(of_first[k] + of_second[among] - squares)
        if away.min() < best:
            best, found = float(away.min()), np.concatenate([sets()[k], sets()[among[away.argmin()]]])
    return found


def session(name: str, seed: int) -> bool:
    """Whether the accuracy of the labels that the analyst read off is further from 1/2 than its half-width."""
    statistic, squares_from = ATTACKS[name]
    labels = np.random.default_rng([seed, 1]).integers(0, 2, SIZES.size)
    y, model = labels[GROUP], Groups(GROUP)
    train = np.array([[0.0], [0.0]]), np.array([0, 1])
    guard: Any = Thresholdout(
        (GROUP[:, None].astype(np.float64), y),
        train=train,
        dependence=model,
        queries=2,
        budget=2,
        confidence=CONFIDENCE,
        threshold=0.05,
        noise_scale=1e-4,
        grid=1 / 64,
        noise=SeededNoise(seed),
        allow_equal_rows=True,
    )
    a, b = int(y.sum()), int((1 - y).sum())
    shown = guard.score(Fixed(np.ones_like(labels)), statistic)
    one, two = (guard.certificate.half_width(1, 0, shown.source, spread) for spread in (0.25, 0.5))
    spread = 0.25 * (1 + (shown.half_width - one) / (two - one))
    read = labelling(a, squares_from(spread, a, b))
    answer = guard.score(Fixed(read), "accuracy")
    return bool(abs(answer.value - 0.5) > answer.half_width)


def broken(name: str) -> int:
    return sum(session(name, seed) for seed in range(SESSIONS))


@pytest.mark.parametrize("name", ATTACKS)
def test_labels_are_not_read_off_half_widths(name: str) -> None:
    assert broken(name) <= LIMIT


def of_this_labelling(statistic: Statistic, y: Any, model: DependenceModel, *, given_labels: bool = False) -> float:
    """The spread with the V of the labelling itself: valid given the labels, and a description of them."""
    a, b = int(np.sum(y)), int(np.sum(1 - np.asarray(y)))
    positive = np.bincount(GROUP, weights=y) > 0
    shares = SIZES * np.where(positive, 1 / a, 1 / b)
    squares = {
        "balanced_accuracy": float((shares**2).sum()) / 4,
        "roc_auc": float((shares**2).sum()),
        "f1": 4 * float((SIZES[positive] ** 2).sum()) / a**2,
    }[statistic.name]
    return math.sqrt(squares / ALL) * GROUP.size


def test_spreads_of_the_labelling_itself_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of balanced accuracy: half-widths of the others reach the ends of the range here, where intervals are cut."""
    monkeypatch.setattr(Statistic, "spread", of_this_labelling)
    assert broken("balanced accuracy") > LIMIT
