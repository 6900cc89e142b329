"""Leakage and budget of long chains: seconds, memory, and how close the bounds are to the exact leakage.

Run with ``python -m benchmarks.chain_leakage``.
"""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from graphs import DependenceModel, MarkovChain, RouteUnavailable, exact_leakage

FloatArray = npt.NDArray[np.float64]

#: Records of every chain that is timed.
RECORDS = 1_000_000
TARGET = 1.0


def chains() -> dict[str, FloatArray]:
    """Return the transition matrices that are timed."""
    found = {}
    for second in (0.5, 0.9, 0.99, 0.9999):
        stay, move = (1 + second) / 2, (1 - second) / 2
        found[f"2 states, second eigenvalue {second}"] = np.array([[stay, move], [move, stay]])
    rng = np.random.default_rng(0)
    found["50 states, random"] = rng.dirichlet(np.ones(50), 50)
    found["50 states, walk"] = walk(50)
    found["51 states, random"] = rng.dirichlet(np.ones(51), 51)
    return found


def walk(states: int) -> FloatArray:
    """Return a lazy walk that stays at its ends."""
    matrix = np.zeros((states, states))
    for i in range(states):
        matrix[i, i] += 0.5
        matrix[i, max(i - 1, 0)] += 0.25
        matrix[i, min(i + 1, states - 1)] += 0.25
    return matrix


def seconds(task: Callable[[], object]) -> float:
    """Return how long a task takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def peak_megabytes(task: Callable[[], object]) -> float:
    """Return the largest memory that a task holds at once."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def timing_rows() -> Iterator[str]:
    """Time fresh models: leakage at the budget for TARGET, the search for that budget, quilts alone."""
    for name, matrix in chains().items():
        yield f"| {name} | {' | '.join(timings(matrix))} |"


def timings(matrix: FloatArray) -> list[str]:
    """Return the cells of one row."""
    budget = MarkovChain(matrix, RECORDS).budget(TARGET)
    first, second, third, fourth = (MarkovChain(matrix, RECORDS) for _ in range(4))
    leakage = seconds(lambda: first.leakage(budget))
    search = seconds(lambda: second.budget(TARGET))
    quilts = seconds(lambda: third.leakage(budget, "quilt"))
    memory = peak_megabytes(lambda: fourth.leakage(budget))
    times = [f"{leakage:.3f}", f"{search:.3f}", f"{search / leakage:.1f}", f"{quilts:.3f}"]
    return [*times, f"{memory:.0f}", f"{budget:.4g}"]


def task_rows() -> Iterator[str]:
    """Time what takes other ways: known records, budgets that differ, chains that hardly ever move."""
    matrix, rng = np.array([[0.9, 0.1], [0.2, 0.8]]), np.random.default_rng(0)
    chain = MarkovChain(matrix, RECORDS)
    slow = MarkovChain([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]], RECORDS)
    budgets = rng.uniform(0.02, 0.08, RECORDS)
    tasks: dict[str, tuple[DependenceModel, Callable[[DependenceModel], object]]] = {
        "every thousandth record known, leakage": (chain.given(range(0, RECORDS, 1000)), lambda m: m.leakage(0.05)),
        "every thousandth record known, budget": (chain.given(range(0, RECORDS, 1000)), lambda m: m.budget(TARGET)),
        "first half known, budget": (chain.given(range(RECORDS // 2)), lambda m: m.budget(TARGET)),
        "first half known, variance inflation": (chain.given(range(RECORDS // 2)), lambda m: m.variance_inflation()),
        "switching 1e-6, budget": (slow, lambda m: m.budget(TARGET)),
        "different budgets, leakage": (MarkovChain(matrix, RECORDS), lambda m: m.leakage(budgets)),
    }
    for name, (model, task) in tasks.items():
        start = time.process_time()
        task(model)
        yield f"| {name} | {time.process_time() - start:.2f} |"


def ratio_rows(models: int = 200) -> Iterator[str]:
    """Compare every route with the exact leakage on random small chains, over all sets of known records."""
    rng = np.random.default_rng(1)
    ratios: dict[str, list[float]] = {}
    for _ in range(models):
        states, n = (2, 4) if rng.random() < 0.7 else (3, 3)
        model = MarkovChain(rng.dirichlet(np.full(states, rng.choice([0.5, 1.0, 3.0])), states), n)
        epsilon = float(rng.choice([0.03, 0.3, 1.0]))
        truth = [_exact(model, epsilon, record) for record in range(n)]
        for method in ("best", *model.methods):
            try:
                bound = model.leakage(epsilon, method)
            except RouteUnavailable:
                continue
            ratios.setdefault(method, []).extend((bound / truth).tolist())
    for method, values in ratios.items():
        low, middle, high, most = np.quantile(values, [0, 0.5, 0.9, 1], method="inverted_cdf")
        below = sum(value < 1 - 1e-7 for value in values)
        yield f"| {method} | {len(values)} | {below} | {low:.3f} | {middle:.3f} | {high:.3f} | {most:.3g} |"


def _exact(model: MarkovChain, epsilon: float, record: int) -> float:
    others = [j for j in range(model.n) if j != record]
    known = itertools.chain.from_iterable(itertools.combinations(others, size) for size in range(model.n))
    return max(exact_leakage(model, epsilon, record, subset) for subset in known)


def main() -> None:
    """Print both tables."""
    print(f"Chains of {RECORDS:,} records; leakage at the budget for {TARGET} nats, method best.\n")
    print("| chain | leakage, s | budget, s | ratio | quilts, s | peak, MB | budget |")
    print("|---|---|---|---|---|---|---|")
    for row in timing_rows():
        print(row, flush=True)
    print("\nSeconds of one processor.\n\n| task | s |\n|---|---|")
    for row in task_rows():
        print(row, flush=True)
    print("\nBound over exact leakage, random chains of 3 or 4 records, the worst set of known records.\n")
    print("| method | records | below exact | smallest | median | 90 % | largest |")
    print("|---|---|---|---|---|---|---|")
    for row in ratio_rows():
        print(row, flush=True)


if __name__ == "__main__":
    main()
