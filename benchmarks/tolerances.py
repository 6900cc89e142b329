"""What answers are worth: the tolerance of every route from 1,000 to 10 million records, and what planning costs.

Run with ``python -m benchmarks.tolerances``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from graphs import DependenceModel, Groups, Independent, MarkovChain
from thresholdout import PlanError, certify, plan
from thresholdout.certificates.drift_bound import drift_bound
from thresholdout.certificates.posterior import posterior
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.published_tolerances import theorem_2_tolerance
from thresholdout.mechanisms import SparseVectorParameters
from thresholdout.planning.algorithm_1 import algorithm_1

QUERIES, BETA = 1000, 0.05
RECORDS = tuple(10**power for power in range(3, 8))
BUDGETS = (1, 10, 100)


def shown(tolerance: float) -> str:
    """Show a tolerance, or that it says nothing."""
    return f"{tolerance:.4f}" if tolerance < 0.9995 else "–"


def planned(model: DependenceModel, budget: int) -> float:
    """Return the half-width of Algorithm 1 as it is planned for the queries of the tables, ``inf`` without one."""
    try:
        private = algorithm_1(model, queries=QUERIES, budget=budget, confidence=1 - BETA)
    except PlanError:
        return math.inf
    return posterior(Setting(model, private, 1 - BETA)).tolerance


def fewest(budget: int, tolerance: float) -> int:
    """Return how many independent records, up to two per cent more, have this tolerance."""
    low, high = 1, 10**9
    while high > 1.02 * low:
        middle = math.ceil(math.sqrt(low * high))
        low, high = (low, middle) if planned(Independent(middle), budget) <= tolerance else (middle, high)
    return high


def quiet(model: DependenceModel, budget: int) -> SparseVectorParameters | None:
    """Return Algorithm 1 without a quiet margin, as routes alone are compared."""
    try:
        return algorithm_1(model, queries=QUERIES, budget=budget, confidence=1 - BETA, quiet_margin=0.0)
    except PlanError:
        return None


def by_walk(model: DependenceModel, budget: int) -> float:
    """Return the tolerance of the walk route, the best of several noise scales about that of the posterior route."""
    start = quiet(model, budget)
    if start is None:
        return math.inf
    rise = start.threshold / start.noise_scale
    scales = [start.noise_scale * 2.0 ** (k / 3) for k in range(-12, 4)]
    settings = (
        Setting(model, SparseVectorParameters(scale * rise, scale, budget, QUERIES), 1 - BETA) for scale in scales
    )
    return min(drift_bound(setting).tolerance for setting in settings)


def row(model: DependenceModel, budget: int) -> list[str]:
    """Return the tolerances of all routes; those of the routes alone have no quiet margin."""
    bare = quiet(model, budget)
    cells = [
        theorem_2_tolerance(model, queries=QUERIES, budget=budget, beta=BETA),
        math.inf if bare is None else posterior(Setting(model, bare, 1 - BETA)).tolerance,
        by_walk(model, budget),
        planned(model, budget),
    ]
    return list(map(shown, cells))


def print_table(title: str, models: list[tuple[str, DependenceModel]]) -> None:
    """Print one table of tolerances."""
    print(f"{title}: {QUERIES:,} queries, confidence {1 - BETA:g}\n")
    routes = "published | posterior | walk | planned"
    print(f"| records | budget | {routes} |")
    print("|---|---|---|---|---|---|")
    for name, model in models:
        for budget in BUDGETS:
            print(f"| {name} | {budget} | " + " | ".join(row(model, budget)) + " |")
    print()


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of one call, in seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def print_times() -> None:
    """Print what planning and certifying cost, first call and after."""
    calls: list[tuple[str, Callable[[int], object]]] = [
        ("plan(10_000)", lambda m: plan(10_000, queries=m)),
        ("plan(10_000_000, adaptive=False)", lambda m: plan(10**7, queries=m, adaptive=False)),
        ("plan(width=0.01): records", lambda m: plan(queries=m, width=0.01)),
        ("plan(100_000, width=0.006): queries", lambda m: plan(100_000 + m, width=0.006)),
        ("plan(chain of 1,000,000, budget=10)", lambda m: plan(chain(10**6, 0.5), queries=m, budget=10)),
        (
            "certify(n=10_000, budget=10)",
            lambda m: certify(Independent(10_000), threshold=0.03, noise_scale=2e-4, budget=10, queries=m, grid=1 / 32),
        ),
    ]
    print("| call | seconds of processor time, first | with other queries |")
    print("|---|---|---|")
    for name, call in calls:
        print(f"| `{name}` | {seconds(lambda: call(1000)):.3f} | {seconds(lambda: call(1001)):.3f} |")  # noqa: B023
    print()


def chain(n: int, eigenvalue: float) -> MarkovChain:
    """Return a stationary symmetric chain of two states."""
    stay = (1 + eigenvalue) / 2
    return MarkovChain([[stay, 1 - stay], [1 - stay, stay]], n=n)


def main() -> None:
    """Print the tables."""
    print_table("Independent records", [(f"{n:,}", Independent(n)) for n in RECORDS])
    groups: list[tuple[str, DependenceModel]] = [
        (f"{n:,} in groups of 5", Groups([record // 5 for record in range(n)])) for n in (10_000, 100_000)
    ]
    chains: list[tuple[str, DependenceModel]] = [
        (f"{n:,}, chain {eigenvalue}", chain(n, eigenvalue)) for n in (10_000, 100_000) for eigenvalue in (0.5, 0.9)
    ]
    print_table("Dependent records", groups + chains)
    print_times()
    smallest = {budget: fewest(budget, 0.1) for budget in BUDGETS}
    print("Independent records needed for a tolerance of 0.1: ", end="")
    print("; ".join(f"budget {budget}: {records:,}" for budget, records in smallest.items()) + ".")


if __name__ == "__main__":
    main()
