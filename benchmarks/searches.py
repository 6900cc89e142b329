"""What a guard adds to a grid search, beside the same search without one.

Run with ``python -m benchmarks.searches``. A hundred candidates take 50 ms of computing each, on 2,000 training
records; the candidate computes and does not sleep, so that with two workers nobody else's time is free. The search
without a guard scores on a validation part of 2,000 records by `sklearn.model_selection.PredefinedSplit`; the guarded
one on the same part as a holdout, with ``cv=guard.split()``. Repeats are interleaved, every one in another order; the
overhead is the median over repeats of the ratio within a repeat.

What guarded searches choose is measured by ``benchmarks.experiments.search_choices``.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from thresholdout import Claims, Thresholdout

CANDIDATES: Final = 100
SECONDS: Final = 0.05
RECORDS: Final = 2000
REPEATS: Final = 5


class Working(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear rule that takes 50 ms of processor time to fit."""

    def __init__(self, seed: int = 0, seconds: float = SECONDS) -> None:
        self.seed = seed
        self.seconds = seconds

    def fit(self, X: Any, y: Any) -> Working:
        rng = np.random.default_rng(self.seed)
        self.classes_ = np.array([0, 1])
        self.direction_ = rng.normal(size=X.shape[1])
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            rng.normal(size=1000)
        return self

    def predict(self, X: Any) -> Any:
        return (X @ self.direction_ > 0).astype(int)


def parts() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the training part and the part to score on."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2 * RECORDS, 20)), rng.integers(0, 2, size=2 * RECORDS)
    return (X[:RECORDS], y[:RECORDS]), (X[RECORDS:], y[RECORDS:])


def unguarded(n_jobs: int) -> None:
    """Search with a fixed validation part."""
    train, validation = parts()
    X, y = np.concatenate([train[0], validation[0]]), np.concatenate([train[1], validation[1]])
    cv = PredefinedSplit(np.r_[np.full(RECORDS, -1), np.zeros(RECORDS)])
    GridSearchCV(Working(), {"seed": range(CANDIDATES)}, cv=cv, n_jobs=n_jobs, refit=False).fit(X, y)


@contextmanager
def store(kind: str) -> Iterator[Path | None]:
    """Return where a guard lives: in memory, or in a new file."""
    with tempfile.TemporaryDirectory() as folder:
        yield None if kind == "memory" else Path(folder) / "guard.db"


def guarded(n_jobs: int, kind: str) -> float:
    """Search with a guard, and return the seconds without making and closing it."""
    train, holdout = parts()
    with store(kind) as ledger:
        guard = Thresholdout(
            holdout, train=train, queries=CANDIDATES, mechanism=Claims(holdout_answers=5), ledger=ledger
        )
        search = GridSearchCV(
            Working(),
            {"seed": range(CANDIDATES)},
            scoring=guard.scorer("accuracy", cv="training"),
            cv=guard.split(),
            n_jobs=n_jobs,
            refit=False,
        )
        start = time.perf_counter()
        search.fit(*train)
        seconds = time.perf_counter() - start
        assert len(guard.history) == CANDIDATES
        guard._ledger.close()
    return seconds


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(n_jobs: int, repeats: int = REPEATS) -> dict[str, list[float]]:
    """Return the seconds of every repeat, by contender."""
    calls: dict[str, Callable[[], float]] = {
        "unguarded": lambda: timed(lambda: unguarded(n_jobs)),
        "guarded, in memory": lambda: guarded(n_jobs, "memory"),
        "guarded, SQLite": lambda: guarded(n_jobs, "file"),
    }
    unguarded(n_jobs)  # starts the workers
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for _ in range(repeats):
        for name in order:
            times[name].append(calls[name]())
        order = order[1:] + order[:1]
    return times


def query_milliseconds(scorer: Any, train: tuple[Any, Any], repeats: int = 300) -> float:
    """Return the median milliseconds of one query through a scorer, in whatever process this runs."""
    model = Working(seconds=0.0).fit(*train)
    placeholder = np.repeat(train[0][:1], RECORDS, axis=0)
    return 1e3 * statistics.median(timed(lambda: scorer(model, placeholder)) for _ in range(repeats))


def queries(kind: str) -> tuple[float, float]:
    """Return the median milliseconds of a query in the guard's process, and from a worker."""
    train, holdout = parts()
    with store(kind) as ledger:
        guard = Thresholdout(holdout, train=train, queries=10_000, mechanism=Claims(holdout_answers=5), ledger=ledger)
        scorer = guard.scorer("accuracy", cv="training")
        here = query_milliseconds(scorer, train)
        (there,) = Parallel(n_jobs=2)([delayed(query_milliseconds)(scorer, train)])
        guard._ledger.close()
    return here, there


def main() -> None:
    """Print the tables."""
    print(
        f"| {CANDIDATES} candidates of {SECONDS * 1e3:.0f} ms | n_jobs | seconds | overhead | overhead per candidate |"
    )
    print("|---|---:|---:|---:|---:|")
    for n_jobs in (1, 2):
        times = measure(n_jobs)
        base = times["unguarded"]
        for name, seconds in times.items():
            ratio = statistics.median(one / other for one, other in zip(seconds, base, strict=True))
            extra = statistics.median(one - other for one, other in zip(seconds, base, strict=True)) / CANDIDATES
            shown = ("", "") if name == "unguarded" else (f"{ratio - 1:+.1%}", f"{extra * 1e3:+.2f} ms")
            print(f"| {name} | {n_jobs} | {statistics.median(seconds):.2f} | {shown[0]} | {shown[1]} |", flush=True)
    print()
    print(f"| one query, {RECORDS:,} records in each part | here | from a worker |")
    print("|---|---:|---:|")
    for kind in ("memory", "SQLite"):
        here, there = queries(kind)
        print(f"| {kind} | {here:.2f} ms | {there:.2f} ms |")


if __name__ == "__main__":
    main()
