"""What answers are worth: the tolerance of every route from 1,000 to 10 million records, and what planning costs.

Run with ``python -m benchmarks.tolerances``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from graphs import DependenceModel, Groups, Independent, MarkovChain
from thresholdout import PlanError, certify, plan
from thresholdout.certificates.baselines.published_tolerances import theorem_2_tolerance
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.routes.belief_walk import walk
from thresholdout.certificates.routes.posterior import posterior
from thresholdout.certificates.split_records import splitting_width
from thresholdout.mechanisms import GaussianParameters, ThresholdoutParameters
from thresholdout.planning import algorithm_1
from thresholdout.planning.all_from_holdout import gaussian_parameters

QUERIES, BETA = 1000, 0.05
RECORDS = tuple(10**power for power in range(3, 8))
BUDGETS = (1, 10, 100)


def shown(tolerance: float) -> str:
    """Show a tolerance, or that it says nothing."""
    return f"{tolerance:.4f}" if tolerance < 0.9995 else "–"


def known_beforehand(
    model: DependenceModel, queries: int, budget: int, confidence: float
) -> tuple[ThresholdoutParameters | GaussianParameters, float] | None:
    """Return what has the smallest half-width that is known beforehand: Algorithm 1, or Gaussian answers."""
    found: list[tuple[ThresholdoutParameters | GaussianParameters, float]] = []
    try:
        private = algorithm_1(model, queries=queries, budget=budget, confidence=confidence)
        found.append((private, posterior(Setting(model, private, confidence)).tolerance))
    except PlanError:
        pass
    try:
        noisy = gaussian_parameters(model, queries, confidence)
        found.append((noisy, certify_parameters(model, noisy, confidence).tolerance))
    except PlanError:
        pass
    best = min(found, key=lambda pair: pair[1], default=None)
    return None if best is None or best[1] >= 1.0 else best


def planned(model: DependenceModel, budget: int) -> tuple[ThresholdoutParameters | GaussianParameters, float] | None:
    """Return the best of both for the questions of the tables, if any."""
    return known_beforehand(model, QUERIES, budget, 1 - BETA)


def fewest(budget: int, tolerance: float) -> int:
    """Return how many independent records, up to two per cent more, have this tolerance."""
    low, high = 1, 10**9
    while high > 1.02 * low:
        middle = math.ceil(math.sqrt(low * high))
        best = planned(Independent(middle), budget)
        low, high = (low, middle) if best is not None and best[1] <= tolerance else (middle, high)
    return high


def quiet(model: DependenceModel, budget: int) -> ThresholdoutParameters | None:
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
        Setting(model, ThresholdoutParameters(scale * rise, scale, budget, QUERIES), 1 - BETA) for scale in scales
    )
    return min(walk(setting).tolerance for setting in settings)


def row(model: DependenceModel, budget: int) -> list[str]:
    """Return the tolerances of all routes; those of the routes alone have no quiet margin."""
    best, bare = planned(model, budget), quiet(model, budget)
    try:
        noisy = certify_parameters(model, gaussian_parameters(model, QUERIES, 1 - BETA), 1 - BETA).tolerance
    except PlanError:
        noisy = math.inf
    cells = [
        theorem_2_tolerance(model, queries=QUERIES, budget=budget, beta=BETA),
        splitting_width(model, QUERIES, BETA),
        splitting_width(model, QUERIES, BETA, binary=True),
        math.inf if bare is None else posterior(Setting(model, bare, 1 - BETA)).tolerance,
        by_walk(model, budget),
        noisy,
    ]
    name = "Algorithm 1" if best is not None and isinstance(best[0], ThresholdoutParameters) else "Gaussian"
    return [*map(shown, cells), "nothing below 1" if best is None else f"{best[1]:.4f} ({name})"]


def print_table(title: str, models: list[tuple[str, DependenceModel]]) -> None:
    """Print one table of tolerances."""
    print(f"{title}: {QUERIES:,} questions, confidence {1 - BETA:g}\n")
    routes = "published | splitting | splitting 0/1 | posterior | walk | Gaussian"
    print(f"| records | budget | {routes} | choice |")
    print("|---|---|---|---|---|---|---|---|---|")
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
        ("plan(10_000, mechanism='gaussian')", lambda m: plan(10_000, queries=m, mechanism="gaussian")),
        ("plan(10_000_000, fixed=True)", lambda m: plan(10**7, queries=m, fixed=True)),
        ("plan(width=0.01): records", lambda m: plan(queries=m, width=0.01)),
        ("plan(100_000, width=0.006): questions", lambda m: plan(100_000 + m, width=0.006)),
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
