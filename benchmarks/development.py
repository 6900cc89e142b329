"""Climbs of 200 proposals with 500 training and 2,000 held-out records: which rule ends highest, and knows it.

Run with ``python -m benchmarks.development [seeds]``. A proposal adds, drops or swaps a column of a ridge classifier.
Two kinds of data: columns of falling weight, and many weak columns. The truth is the score on 50,000 fresh records.
Every rule ends with one interval. The table says how wide it is, how often it misses the truth, how much too high the
score is that the climb itself showed, and in how many climbs a score of the open part was refuted. "Moved" means that
half of the held-out records train; "development" means that half of the held-out records are open.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from thresholdout import DevelopmentOverfitWarning, Thresholdout

PROPOSALS = 200
TRAIN, HELD, FRESH = 500, 2000, 50_000
COLUMNS = 60
FOLDS = 5
RIDGE = 1.0
SEEDS = 10
KINDS = {"falling": (0.75, 0.8), "weak": (0.09, 1.0)}
"""Weight of the first column, and the factor from one column to the next."""

Columns = frozenset[int]
Labels = NDArray[np.int8]


class Ridge:
    """A ridge classifier of some columns, known by these."""

    def __init__(self, columns: Columns) -> None:
        self.columns = sorted(columns)

    def fit(self, X: NDArray[Any], y: Labels) -> Ridge:
        A = self._design(X)
        self.weights = np.linalg.solve(A.T @ A + RIDGE * np.eye(A.shape[1]), A.T @ (2.0 * y - 1.0))
        return self

    def predict(self, X: NDArray[Any]) -> Labels:
        return (self._design(X) @ self.weights > 0.0).astype(np.int8)

    def _design(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([np.ones(len(X)), X[:, self.columns]])


class World:
    """Records of one kind, and what is known of each set of columns."""

    def __init__(self, kind: str, seed: int, train: int) -> None:
        first, factor = KINDS[kind]
        rng = np.random.default_rng([seed, sorted(KINDS).index(kind)])
        weights = rng.permutation(first * factor ** np.arange(COLUMNS)) * rng.choice([-1, 1], COLUMNS)
        X = rng.normal(size=(TRAIN + HELD + FRESH, COLUMNS))
        y = (X @ weights + rng.normal(size=len(X)) > 0).astype(np.int8)
        self.train, self.held, self.fresh = (
            (X[start:end], y[start:end]) for start, end in ((0, train), (train, TRAIN + HELD), (TRAIN + HELD, len(X)))
        )
        self.seed = seed
        self._fitted: dict[Columns, Ridge] = {}
        self._values: dict[Columns, NDArray[np.float64]] = {}

    def model(self, columns: Columns) -> Ridge:
        """Return the model of some columns."""
        if columns not in self._fitted:
            self._fitted[columns] = Ridge(columns).fit(*self.train)
        return self._fitted[columns]

    def cross_validated(self, columns: Columns) -> NDArray[np.float64]:
        """Return whether each training record is predicted right by the folds that lack it."""
        if columns not in self._values:
            X, y = self.train
            values, fold = np.empty(len(y)), np.arange(len(y)) % FOLDS
            for k in range(FOLDS):
                values[fold == k] = Ridge(columns).fit(X[fold != k], y[fold != k]).predict(X[fold == k]) == y[fold == k]
            self._values[columns] = values
        return self._values[columns]

    def right(self, columns: Columns, part: tuple[Any, Any]) -> float:
        """Return a score."""
        return float(np.mean(self.model(columns).predict(part[0]) == part[1]))

    def guard(self, *, final: bool = True, **rest: Any) -> Thresholdout:
        """Return a guard of the held-out records."""
        return Thresholdout(
            self.held, train=self.train, sampling="iid", final_check=final, random_state=self.seed, **rest
        )


class End(NamedTuple):
    """The end of a climb: the columns, the score that the climb showed, half-width, miss, queries, and a warning."""

    columns: Columns
    shown: float
    half_width: float
    interval: tuple[float, float]
    queries: int
    warned: bool = False


def edited(columns: Columns, rng: np.random.Generator) -> Columns:
    """Add, drop or swap a column."""
    inside, outside = sorted(columns), sorted(set(range(COLUMNS)) - columns)
    kind = rng.integers(3)
    dropped = {int(rng.choice(inside))} if kind != 0 and len(inside) > 1 else set()
    added = {int(rng.choice(outside))} if kind != 1 or not dropped else set()
    return (columns - dropped) | added


def climb(world: World, better: Callable[[Columns], bool]) -> Columns:
    """Offer proposals to a rule, which remembers what it keeps."""
    rng = np.random.default_rng([world.seed, 1])
    present: Columns = frozenset(rng.choice(COLUMNS, 5, replace=False).tolist())
    better(present)
    for _ in range(PROPOSALS):
        proposal = edited(present, rng)
        if better(proposal):
            present = proposal
    return present


def highest(score: Callable[[Columns], float], margin: Callable[[float], float] = lambda best: 0.0) -> Any:
    """Return a rule that keeps what scores higher, with the best score that it saw."""
    best = [-math.inf]

    def better(columns: Columns) -> bool:
        value = score(columns)
        if best[0] == -math.inf or value > best[0] + margin(best[0]):
            best[0] = value
            return True
        return False

    return better, best


def checked(world: World, guard: Thresholdout, columns: Columns, shown: float, values: Any = None) -> End:
    """Return the end of a climb after a final check."""
    given = {} if guard.development is not None else {"train_values": values}
    answer = guard.final_check(world.model(columns), key="final", **given)
    return End(columns, shown, answer.half_width, answer.interval, guard.status.asked)


def reuse(world: World, margin: bool = False) -> End:
    """Climb on the held-out records themselves, and report their score with Wald's interval."""
    n = len(world.held[1])
    rule, best = highest(
        lambda columns: world.right(columns, world.held),
        (lambda score: math.sqrt(score * (1.0 - score) / n)) if margin else lambda score: 0.0,
    )
    columns = climb(world, rule)
    width = 1.96 * math.sqrt(best[0] * (1.0 - best[0]) / n)
    return End(columns, best[0], width, (best[0] - width, best[0] + width), 0)


def half_and_half(world: World) -> End:
    """Climb on one half, and look once at the other."""
    guard = world.guard(development=0.5)
    rule, best = highest(lambda columns: world.right(columns, guard.development))  # type: ignore[arg-type]
    columns = climb(world, rule)
    return checked(world, guard, columns, best[0])


def cross_validation(world: World) -> End:
    """Climb on cross-validated scores, and look once."""
    rule, best = highest(lambda columns: float(np.mean(world.cross_validated(columns))))
    columns = climb(world, rule)
    return checked(world, world.guard(), columns, best[0], world.cross_validated(columns))


def scores(world: World, development: float | None = None, new_best: bool = False) -> End:
    """Climb on the guard's answers; or on free scores, with a query about each new best model alone."""
    guard, highest_open = world.guard(development=development), [-math.inf]

    def asked(columns: Columns) -> float:
        key = ",".join(map(str, sorted(columns)))
        given = None if development is not None else world.cross_validated(columns)
        if new_best:
            free = guard.development_score(world.model(columns))
            if free <= highest_open[0]:
                return -math.inf
            highest_open[0] = free
        return guard.score(world.model(columns), key=key, train_values=given).value

    rule, best = highest(asked)
    columns = climb(world, rule)
    return checked(world, guard, columns, best[0], None if development else world.cross_validated(columns))


def gated(world: World, certify: Any, development: float | None = None) -> End:
    """Climb behind a gate."""
    guard = world.guard(development=development)
    gates: list[Any] = []

    def values(columns: Columns) -> dict[str, Any]:
        return {} if development is not None else {"train_values": world.cross_validated(columns)}

    def better(columns: Columns) -> bool:
        if not gates:
            gates.append(guard.gate(world.model(columns), certify=certify, **values(columns)))
            return True
        key = f"{len(gates)}"
        gates.append(None)
        return bool(gates[0].propose(world.model(columns), key=key, **values(columns)))

    columns = climb(world, better)
    values_of = world.cross_validated(columns)
    shown = guard.development_score(world.model(columns)) if development is not None else float(np.mean(values_of))
    return checked(world, guard, columns, shown, values_of)


RULES: dict[str, Callable[[World], End]] = {
    "plain reuse": reuse,
    "one sigma": lambda world: reuse(world, margin=True),
    "half and half": half_and_half,
    "cross-validation, one check": cross_validation,
    "guard.score": scores,
    "guard.score, development": lambda world: scores(world, 0.5),
    "guard.score of each new best, development": lambda world: scores(world, 0.5, new_best=True),
    "gate": lambda world: gated(world, "each"),
    "gate, development": lambda world: gated(world, "each", 0.5),
    "milestones": lambda world: gated(world, "milestones"),
    "milestones, development": lambda world: gated(world, "milestones", 0.5),
}


def measured(kind: str, seed: int, moved: bool) -> list[dict[str, Any]]:
    """Run every rule on one world."""
    world, rows = World(kind, seed, TRAIN + HELD // 2 if moved else TRAIN), []
    for name, rule in RULES.items():
        if moved and name in ("plain reuse", "one sigma"):
            continue
        start = time.process_time()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            end = rule(world)
        truth = world.right(end.columns, world.fresh)
        warned = any(issubclass(one.category, DevelopmentOverfitWarning) for one in said)
        rows.append(
            {
                "kind": kind,
                "moved": moved,
                "rule": name,
                "true score": truth,
                "too high": end.shown - truth,
                "half-width": end.half_width,
                "missed": float(not end.interval[0] <= truth <= end.interval[1]),
                "queries": float(end.queries),
                "warned": float(warned),
                "seconds": time.process_time() - start,
            }
        )
    return rows


def main(seeds: int = SEEDS) -> None:
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        for kind in KINDS:
            for moved in (False, True):
                rows += measured(kind, seed, moved)
    table = pd.DataFrame(rows).groupby(["kind", "moved", "rule"], sort=False).mean()
    print(table.round(3).to_string())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
