"""The price of adaptivity of statistics that are no means: F1 of rare positives, and the area under the curve.

As `benchmarks.price` for accuracies: half the length of each certified interval, divided by that of an interval for a
query of a list that was written down before (0.05/m each). Searches are simulated: scores of a record are normal,
positive records' shifted, and the models share 0.7 of their variance. An adaptive analyst goes on near the best so far.
Training values come from n_train records. Nothing is declared but, where the table says so, that records have one law.

Baselines: for F1 the exact (Clopper-Pearson) interval of the share of true positives, given as many records that are
positive or predicted so as are expected; for areas the one by relative entropy with min(n+, n-) records, and DeLong's
asymptotic one. A truth outside of an interval counts as missed.

Run: ``python -m benchmarks.statistics_price`` (about ten minutes), or with ``--quick`` (less than one). ``--stated``
prints how much wider single ratios are without one law, and areas than DeLong's intervals: stated intervals of holdouts
that are as expected, which takes seconds.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from thresholdout import Thresholdout
from thresholdout.limits.entropy import entropy_lower, entropy_upper
from thresholdout.mechanisms.claims.area_evidence import ExpectedArea
from thresholdout.mechanisms.claims.evidence import Expected, ExpectedCounts

CONFIDENCE = 0.95
SHARED = 0.7  # of the variance of a score is common to all models
THRESHOLD = 1.6  # of the scores: about 5 % of the negative records are predicted to be positive


@dataclass(frozen=True)
class Model:
    """A fitted model, as scores of all records, and its truths."""

    scores: NDArray[np.float64]
    f1: float
    area: float

    classes_ = np.array([0, 1])

    def decision_function(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of records that are known by their number."""
        return self.scores[X[:, 0].astype(np.int64)]

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return classes."""
        return (self.decision_function(X) > THRESHOLD).astype(np.int64)


class Search:
    """Records and models that resemble each other.

    Parameters
    ----------
    n, n_train : int
        Records of the holdout and of the training part.
    positive : float
        Expected share of positive records.
    seed : int
        Of everything.
    """

    def __init__(self, n: int, n_train: int, positive: float, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.size, self.positive = n + n_train, positive
        self.y = (self.rng.random(self.size) < positive).astype(np.int64)
        self.common = self.rng.normal(size=self.size)
        self.best = self.rng.uniform(2.0, 3.0)
        X = np.arange(float(self.size))[:, None]
        self.holdout, self.train = (X[:n], self.y[:n]), (X[n:], self.y[n:])

    def model(self) -> Model:
        """Return a model that is a little worse than the best."""
        shift = self.best - abs(self.rng.normal(0.0, 0.2))
        noise = np.sqrt(SHARED) * self.common + np.sqrt(1.0 - SHARED) * self.rng.normal(size=self.size)
        said, false = float(ndtr(shift - THRESHOLD)), float(ndtr(-THRESHOLD))
        true = self.positive * said
        f1 = 2.0 * true / (self.positive + true + (1.0 - self.positive) * false)
        return Model(shift * self.y + noise, f1, float(ndtr(shift / np.sqrt(2.0))))


def f1_length(model: Model, n: int, positive: float, level: float) -> float:
    """Return half the length of the exact interval of F1, given the expected number of records that count."""
    counted = (positive + (1.0 - positive) * float(ndtr(-THRESHOLD))) * n
    share = model.f1 / (2.0 - model.f1)
    from scipy.stats import beta as beta_law

    wins = share * counted
    low, high = (
        float(beta_law.ppf(q, *ab))
        for q, ab in (
            (level / 2, (wins, counted - wins + 1)),
            (1 - level / 2, (wins + 1, counted - wins)),
        )
    )
    return (2 * high / (1 + high) - 2 * low / (1 + low)) / 2


def area_lengths(model: Model, y: NDArray[np.int64], level: float) -> tuple[float, float]:
    """Return half the lengths by relative entropy, and by DeLong's variance."""
    few, log_level = float(min(y.sum(), (1 - y).sum())), float(np.log(level / 2))
    entropy = (entropy_upper(model.area, few, log_level) - entropy_lower(model.area, few, log_level)) / 2
    ahead, behind = (model.scores[: y.size][y == label] for label in (1, 0))
    first = np.searchsorted(np.sort(behind), ahead) / behind.size
    second = np.searchsorted(np.sort(ahead), behind) / ahead.size
    variance = np.var(first) / ahead.size + np.var(second) / behind.size
    return entropy, float(-ndtri(level / 2) * np.sqrt(variance))


def asked(metric: str, n: int, n_train: int, positive: float, queries: int, one_law: bool, seed: int) -> list[float]:
    """Ask a guard about all models; return its price over the first baseline, over the second, and missed truths."""
    search = Search(n, n_train, positive, seed)
    guard: Any = Thresholdout(search.holdout, train=search.train, sampling="iid" if one_law else "independent")
    ratios, others, missed = [], [], 0
    level = (1 - CONFIDENCE) / queries
    for _ in range(queries):
        model = search.model()
        low, high = guard.score(model, metric, cv="training").interval
        truth = model.f1 if metric == "f1" else model.area if metric == "roc_auc" else float(ndtr(model.area))
        missed += not low <= truth <= high
        if metric == "f1":
            lengths = f1_length(model, n, positive, level), np.nan
        else:
            lengths = area_lengths(model, search.holdout[1], level)
        ratios.append((high - low) / 2 / lengths[0])
        others.append((high - low) / 2 / lengths[1])
    return [float(np.mean(ratios)), float(np.mean(others)), float(missed)]


def stated_length(expected: Expected, value: float, log_level: float) -> float:
    """Return half the length of a stated interval if the holdout is as expected."""
    low, high = expected.end(value, log_level)[0], 1.0 - expected.mirrored().end(1.0 - value, log_level)[0]
    return (high - low) / 2.0


def stated() -> None:
    """Print how much wider stated ratios are without one law, and stated areas than DeLong's interval."""
    queries = (1, 20, 100)
    print(f"{'any laws / one law':48}" + "".join(f"{number:>8}" for number in queries))
    for name, weight in (("precision", 1.0), ("f1", 2.0)):
        for number in (50.0, 200.0, 1000.0):
            for value in (0.6, 0.8, 0.95):
                ratios = [
                    stated_length(ExpectedCounts(number, weight, False), value, level)
                    / stated_length(ExpectedCounts(number, weight, True), value, level)
                    for level in (float(np.log((1 - CONFIDENCE) / 2 / m)) for m in queries)
                ]
                label = f"{name} {value:g}, {number:g} records that count"
                print(f"{label:48}" + "".join(f"{ratio:8.2f}" for ratio in ratios))
    print(f"\n{'area / DeLong':48}" + "".join(f"{number:>8}" for number in queries))
    grid = ndtri((np.arange(100_000) + 0.5) / 100_000)
    for few, others in ((100, 1900), (400, 1600), (1000, 1000), (2000, 8000), (5000, 5000)):
        for area in (0.85, 0.95):
            placed = ndtr(grid + np.sqrt(2.0) * ndtri(area))
            squares = (placed - area) ** 2
            variance, misses = float(squares.mean()), float(np.mean((1.0 - placed) ** 2))
            ratios = []
            for number in queries:
                level = float(np.log((1 - CONFIDENCE) / 2 / number))
                found = ExpectedArea(few, others, variance, float(squares.std()), misses)
                usual = -ndtri(np.exp(level)) * np.sqrt(variance * (1.0 / few + 1.0 / others))
                ratios.append(stated_length(found, area, level) / float(usual))
            label = f"{area:g}, {few:,} and {others:,} records"
            print(f"{label:48}" + "".join(f"{ratio:8.2f}" for ratio in ratios))


def main() -> None:
    """Print the table."""
    if "--stated" in sys.argv:
        stated()
        return
    quick = "--quick" in sys.argv
    seeds = 4 if quick else 20
    print(f"{'search':64} {'price':>6} {'90 %':>6} {'DeLong':>7} {'missed':>8}")
    for metric, one_law in (("f1", True), ("f1", False), ("roc_auc", True), ("roc_auc", False)):
        for queries in (20, 100):
            for n in (2000,) if quick else (1000, 2000, 10_000):
                for ratio in (1.0,) if quick else (1.4, 1.0, 0.5):
                    for positive in (0.05, 0.2):
                        runs = np.array(
                            [asked(metric, n, int(n * ratio), positive, queries, one_law, s) for s in range(seeds)]
                        )
                        law = ", one law" if one_law else ""
                        size = f"n = {n}, n_train = {ratio:g} n, {positive:.0%}"
                        name = f"{metric}{law}, {queries} queries, {size}"
                        price, delong = runs[:, 0], runs[:, 1].mean()
                        missed = int(np.count_nonzero(runs[:, 2]))
                        print(
                            f"{name:64} {price.mean():6.2f} {np.quantile(price, 0.9):6.2f} {delong:7.2f} "
                            f"{missed:4}/{seeds:<3}",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
