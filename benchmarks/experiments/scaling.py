"""How much faster a sweep is with two workers than with one."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from thresholdout.simulation import run_experiment


def sorting(rng: np.random.Generator, rounds: int) -> dict[str, float]:
    """Sort many times: a cell of the sweep that is timed."""
    return {"total": float(sum(np.sort(rng.random(20_000))[0] for _ in range(rounds)))}


def alone(rounds: int) -> None:
    """Do the work of a cell, outside of a sweep."""
    with threadpool_limits(1):
        sorting(np.random.default_rng(0), rounds)


def scaling(cells: int = 16, rounds: int = 500, repeats: int = 3) -> tuple[float, float]:
    """Return how much faster two workers are than one: in a sweep, and as bare processes, which is what is possible.

    Medians of repeats in turn, as other work on the machine takes its share; the start of workers is not counted.
    """
    seconds: dict[str, list[float]] = {"one": [], "two": [], "bare": []}

    def timed(name: str, task: Callable[[], object]) -> None:
        start = time.perf_counter()
        task()
        seconds[name].append(time.perf_counter() - start)

    def sweep(jobs: int, size: int) -> None:
        run_experiment(sorting, {"rounds": [size]}, cells, n_jobs=jobs, progress=False)

    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(alone, [1] * 8))
        for _ in range(repeats):
            timed("one", lambda: sweep(1, rounds))
            sweep(2, 1)
            timed("two", lambda: sweep(2, rounds))
            timed("bare", lambda: list(pool.map(alone, [cells * rounds // 2] * 2)))
    one, two, bare = (float(np.median(found)) for found in seconds.values())
    return one / two, one / bare
