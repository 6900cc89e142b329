"""What a question costs, and what importing costs, against the least that they could cost.

Run with ``python -m benchmarks.guard``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.ledger import bare_commit, bare_connection, microseconds
from thresholdout import Thresholdout
from thresholdout.ledger import open_ledger


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, in seconds."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def ask_against_mean(n: int, repeats: int) -> tuple[float, float, float]:
    """Return the seconds of `numpy.mean` of both arrays, the seconds of a question, and its peak memory in bytes."""
    rng = np.random.default_rng(0)
    holdout = rng.random(n)
    train_values, holdout_values = rng.random(n), rng.random(n)
    guard = Thresholdout(holdout, queries=10**6, budget=1, threshold=0.5, noise_scale=0.001, grid=1 / 1024)
    mean = median_seconds(lambda: (np.mean(train_values), np.mean(holdout_values)), repeats)
    ask = median_seconds(lambda: guard.ask(train_values, holdout_values), repeats)
    tracemalloc.start()
    guard.ask(train_values, holdout_values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return mean, ask, peak


def ask_in_file(repeats: int) -> tuple[float, float]:
    """Return the median seconds of a bare durable commit, and of a question of 1,000 values to a guard in a file.

    They are timed in turn, on the same file system.
    """
    rng = np.random.default_rng(0)
    values = rng.random(1000)
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "guard.db") as ledger:
        commit = bare_commit(bare_connection(Path(folder) / "bare.db"))
        guard = Thresholdout(
            rng.random(1000), queries=10**6, budget=1, threshold=0.5, noise_scale=0.001, grid=1 / 1024, ledger=ledger
        )
        times = microseconds({"bare": commit, "guard": lambda: guard.ask(values, values)}, repeats)
    return float(np.median(times["bare"])) / 1e6, float(np.median(times["guard"])) / 1e6


def import_seconds(module: str, repeats: int = 7) -> float:
    """Return the median time of a fresh interpreter that imports a module, less that of one that imports nothing."""

    def run(code: str) -> float:
        return median_seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), repeats)

    return run(f"import {module}") - run("pass")


def main() -> None:
    """Print the tables."""
    print("| records | np.mean of both | guard.ask | ratio | peak memory of a question |")
    print("|---|---|---|---|---|")
    for n, repeats in ((1_000, 2000), (10_000, 1000), (100_000, 300), (1_000_000, 100), (10_000_000, 15)):
        mean, ask, peak = ask_against_mean(n, repeats)
        print(f"| {n:,} | {mean * 1e6:,.1f} µs | {ask * 1e6:,.1f} µs | {ask / mean:.2f} | {peak / 1024:,.0f} KiB |")
    print()
    bare, ask = ask_in_file(2000)
    print(
        f"A question of 1,000 values to a guard in a SQLite file: {ask * 1e6:,.0f} µs; a bare durable commit of the "
        f"same size: {bare * 1e6:,.0f} µs; ratio {ask / bare:.2f}."
    )
    numpy, ours = import_seconds("numpy"), import_seconds("thresholdout")
    print(f"Importing thresholdout: {ours * 1e3:.0f} ms; numpy alone: {numpy * 1e3:.0f} ms; ratio {ours / numpy:.2f}.")


if __name__ == "__main__":
    main()
