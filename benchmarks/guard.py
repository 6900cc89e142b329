"""What a query costs, what making a guard costs, and importing, against the least that they could cost.

Run with ``python -m benchmarks.guard``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from benchmarks.ledger import bare_commit, bare_connection, microseconds
from graphs import Groups
from thresholdout import SparseVector, Thresholdout
from thresholdout.errors import WideAnswersWarning
from thresholdout.ledger import open_ledger

Asked: TypeAlias = tuple[Thresholdout, np.ndarray, np.ndarray]
"""A guard, and the values of a query for its training and its holdout records."""


def algorithm_1(n: int) -> Asked:
    """Return a guard by Algorithm 1, and values between 0 and 1."""
    rng = np.random.default_rng(0)
    guard = Thresholdout(rng.random(n), queries=10**6, mechanism=SparseVector(0.5, 0.001, budget=1, grid=1 / 1024))
    return guard, rng.random(n), rng.random(n)


def right_or_wrong(n: int) -> Asked:
    """Return a guard that makes claims, and booleans."""
    rng = np.random.default_rng(0)
    return Thresholdout(rng.random(n), queries=10**6), rng.random(n) < 0.8, rng.random(n) < 0.8


def losses(n: int) -> Asked:
    """Return a guard that makes claims, and values between 0 and 1, which it bets on."""
    rng = np.random.default_rng(0)
    return Thresholdout(rng.random(n), queries=10**6), 0.1 * rng.random(n), 0.1 * rng.random(n)


def losses_of_pairs(n: int) -> Asked:
    """Return the same where each record depends on another one: claims are about the mean alone."""
    rng = np.random.default_rng(0)
    guard = Thresholdout(rng.random(n), queries=10**6, dependence=Groups(np.arange(n) // 2))
    return guard, 0.1 * rng.random(n), 0.1 * rng.random(n)


def ask_against_mean(asked: Asked, repeats: int) -> tuple[float, float, float]:
    """Return the CPU seconds of `numpy.mean` of both arrays and of a query, and its peak memory in bytes.

    They are taken in turn. Time in which the machine does something else does not count; what that does to caches does.
    """
    guard, train_values, holdout_values = asked
    guard.ask(train_values, holdout_values)
    tracemalloc.start()
    guard.ask(train_values, holdout_values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    means, asks = np.empty(repeats), np.empty(repeats)
    for i in range(repeats):
        start = time.thread_time()
        np.mean(train_values)
        np.mean(holdout_values)
        middle = time.thread_time()
        guard.ask(train_values, holdout_values)
        means[i], asks[i] = middle - start, time.thread_time() - middle
    return float(np.median(means)), float(np.median(asks)), peak


def ask_in_file(repeats: int) -> tuple[float, float]:
    """Return the median seconds of a bare durable commit, and of a query of 1,000 values to a guard in a file.

    They are timed in turn, on the same file system. For so many queries about so few records the intervals are useless,
    which the guard says.
    """
    rng = np.random.default_rng(0)
    values = rng.random(1000)
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "guard.db") as ledger:
        commit = bare_commit(bare_connection(Path(folder) / "bare.db"))
        mechanism = SparseVector(0.5, 0.001, budget=1, grid=1 / 1024)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WideAnswersWarning)
            guard = Thresholdout(rng.random(1000), queries=10**6, mechanism=mechanism, ledger=ledger)
        times = microseconds({"bare": commit, "guard": lambda: guard.ask(values, values)}, repeats)
    return float(np.median(times["bare"])) / 1e6, float(np.median(times["guard"])) / 1e6


Made: TypeAlias = "tuple[np.ndarray | pd.DataFrame, np.ndarray]"
"""Features and labels of both parts together."""


def numbers(n: int, columns: int) -> Made:
    """Return features in 64-bit floats."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(2 * n, columns)), rng.integers(0, 2, 2 * n)


def frame_with_texts(n: int, columns: int) -> Made:
    """Return a frame with two columns of texts, of which 50 differ."""
    features, labels = numbers(n, columns - 2)
    texts = np.array([f"category {k}" for k in range(50)])[np.random.default_rng(1).integers(0, 50, (2 * n, 2))]
    return pd.DataFrame(features).assign(first=texts[:, 0], second=texts[:, 1]), labels


def make_against_hashing(made: Made, repeats: int) -> tuple[float, float, float]:
    """Return the CPU seconds of pandas' hash of all rows, and of making a guard, with its peak memory in bytes.

    They are taken in turn, on both parts. Memory is above that of the copy of the holdout, which the guard keeps.
    """
    features, labels = made
    n = len(labels) // 2
    table = pd.DataFrame(features)
    holdout, train = (features[:n], labels[:n]), (features[n:], labels[n:])
    hashed, guards = np.empty(repeats), np.empty(repeats)
    for i in range(repeats):
        start = time.process_time()
        pd.util.hash_pandas_object(table, index=False)
        middle = time.process_time()
        Thresholdout(holdout, train=train)
        hashed[i], guards[i] = middle - start, time.process_time() - middle
    tracemalloc.start()
    guard = Thresholdout(holdout, train=train)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del guard
    return float(np.median(hashed)), float(np.median(guards)), peak - kept


def import_seconds(statements: Sequence[str], repeats: int = 9) -> list[float]:
    """Return the median CPU times of fresh interpreters, in turn, less that of one that imports nothing.

    What they load was compiled before, as what an installer has put there is.
    """
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def run(statement: str) -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", statement], check=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        all_of_them = ["pass", *statements]
        for statement in all_of_them:
            run(statement)
        nothing, *times = np.median([[run(statement) for statement in all_of_them] for _ in range(repeats)], axis=0)
    return [float(time) - float(nothing) for time in times]


QUERIES: dict[str, Callable[[int], Asked]] = {
    "Algorithm 1": algorithm_1,
    "claims, right or wrong": right_or_wrong,
    "claims, values of pairs": losses_of_pairs,
    "claims, independent values": losses,
}
MADE: tuple[tuple[str, Callable[[int, int], Made], int, int, int], ...] = (
    ("numbers", numbers, 10_000, 4, 9),
    ("numbers", numbers, 100_000, 4, 9),
    ("numbers", numbers, 1_000_000, 4, 5),
    ("numbers", numbers, 200_000, 30, 5),
    ("two of them texts", frame_with_texts, 1_000_000, 4, 3),
)
SIZES = ((1_000, 999), (100_000, 99), (1_000_000, 25), (10_000_000, 9))


def main() -> None:
    """Print the tables."""
    print("| query | records | np.mean of both | guard.ask | ratio | peak memory of a query |")
    print("|---|---|---|---|---|---|")
    for name, made in QUERIES.items():
        for n, repeats in SIZES:
            mean, ask, peak = ask_against_mean(made(n), repeats)
            times = f"{mean * 1e6:,.1f} µs | {ask * 1e6:,.1f} µs | {ask / mean:.2f}"
            print(f"| {name} | {n:,} | {times} | {peak / 1024:,.0f} KiB |")
    print()
    print("| making a guard | records in each part | hash_pandas_object | guard | ratio | memory for the work |")
    print("|---|---|---|---|---|---|")
    for name, make, n, columns, repeats in MADE:
        hashed, seconds, more = make_against_hashing(make(n, columns), repeats)
        times = f"{hashed:.3f} s | {seconds:.3f} s | {seconds / hashed:.2f}"
        print(f"| {columns} columns, {name} | {n:,} | {times} | {more / 2**20:,.0f} MiB |")
    print()
    bare, ask = ask_in_file(2000)
    print(
        f"A query of 1,000 values to a guard in a SQLite file: {ask * 1e6:,.0f} µs; a bare durable commit of the "
        f"same size: {bare * 1e6:,.0f} µs; ratio {ask / bare:.2f}."
    )
    numpy, lazy, guard = import_seconds(
        ["import numpy", "import thresholdout", "from thresholdout import Thresholdout"]
    )
    print(
        f"Importing a guard, numpy with it: {guard * 1e3:.0f} ms; numpy alone: {numpy * 1e3:.0f} ms; ratio "
        f"{guard / numpy:.2f}. The package, whose names are loaded when they are used: {lazy / numpy:.2f}."
    )


if __name__ == "__main__":
    main()
