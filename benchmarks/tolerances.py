"""What answers are worth: the tolerance of every route from 1,000 to 10 million records, and what planning costs.

Run with ``python -m benchmarks.tolerances``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from graphs import DependenceModel, Groups, Independent, MarkovChain
from thresholdout import Plan, PlanError, certify, plan
from thresholdout.certificates.published import theorem_2_tolerance
from thresholdout.certificates.splitting import splitting_width
from thresholdout.certificates.walk import walk
from thresholdout.planning.candidates import by_posterior, by_transcript
from thresholdout.planning.everything import gaussian
from thresholdout.planning.use import Target, Use

QUERIES, BETA = 1000, 0.05
RECORDS = tuple(10**power for power in range(3, 8))
BUDGETS = (1, 10, 100)


def target(model: DependenceModel, budget: int, quiet_margin: float | None) -> Target:
    """Return the declared use behind a row of the tables."""
    return Target.checked(model, None, QUERIES, budget, 1 - BETA, None, quiet_margin, 0.1, False)


def shown(tolerance: float) -> str:
    """Show a tolerance, or that it says nothing."""
    return f"{tolerance:.4f}" if tolerance < 0.9995 else "–"


def planned(model: DependenceModel, budget: int) -> Plan | None:
    """Return the plan with default margin and noise share, if any."""
    try:
        return plan(model, queries=QUERIES, budget=budget)
    except PlanError:
        return None


def by_walk(use: Use) -> float:
    """Return the tolerance of the walk route, the best of several noise scales about that of the posterior route."""
    start = by_posterior(use).noise_scale
    if start is None or not use.concentrates:
        return math.inf
    settings = (use.setting(start * 2.0 ** (k / 3), None) for k in range(-12, 4))
    return min(walk(setting).tolerance for setting in settings)


def row(model: DependenceModel, budget: int) -> list[str]:
    """Return the tolerances of all routes; those of the routes alone have no quiet margin."""
    use = target(model, budget, 0.0).use()
    best = planned(model, budget)
    cells = [
        theorem_2_tolerance(model, queries=QUERIES, budget=budget, beta=BETA),
        splitting_width(model, QUERIES, BETA),
        splitting_width(model, QUERIES, BETA, binary=True),
        by_posterior(use).tolerance,
        by_walk(use),
        by_transcript(use).tolerance,
        gaussian(model, QUERIES, BETA).tolerance,
    ]
    choice = "nothing below 1" if best is None else f"{best.tolerance:.4f} ({best.mechanism}, {best.certificate.route})"
    return [*map(shown, cells), choice]


def print_table(title: str, models: list[tuple[str, DependenceModel]]) -> None:
    """Print one table of tolerances."""
    print(f"{title}: {QUERIES:,} questions, confidence {1 - BETA:g}\n")
    routes = "published | splitting | splitting 0/1 | posterior | walk | transcript | Gaussian"
    print(f"| records | budget | {routes} | choice |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, model in models:
        for budget in BUDGETS:
            print(f"| {name} | {budget} | " + " | ".join(row(model, budget)) + " |")
    print()


def seconds(call: Callable[[], object]) -> float:
    """Return the time of one call, in seconds."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def print_times() -> None:
    """Print what planning and certifying cost, first call and after."""
    calls: list[tuple[str, Callable[[int], object]]] = [
        ("plan(n=10_000, budget=10)", lambda m: plan(n=10_000, queries=m, budget=10)),
        ("plan(n=10_000_000, budget=100)", lambda m: plan(n=10**7, queries=m, budget=100)),
        ("plan(tolerance=0.05, budget=10): records", lambda m: plan(queries=m, budget=10, tolerance=0.05)),
        ("plan(n=100_000, tolerance=0.05): budget", lambda m: plan(n=100_000, queries=m, tolerance=0.05)),
        ("plan(chain of 1,000,000, budget=10)", lambda m: plan(chain(10**6, 0.5), queries=m, budget=10)),
        (
            "certify(n=10_000, budget=10)",
            lambda m: certify(Independent(10_000), threshold=0.03, noise_scale=2e-4, budget=10, queries=m, grid=1 / 32),
        ),
    ]
    print("| call | seconds, first | seconds, with other queries |")
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
    smallest = {budget: plan(queries=QUERIES, budget=budget, tolerance=0.1).records for budget in BUDGETS}
    print("Independent records needed for a tolerance of 0.1: ", end="")
    print("; ".join(f"budget {budget}: {records:,}" for budget, records in smallest.items()) + ".")
    best = planned(Independent(10**6), 1)
    assert best is not None
    rate = best.tolerance * math.sqrt(10**6)
    print(f"At budget 1 the plan's tolerance is {rate:.2f}/sqrt(records).")


if __name__ == "__main__":
    main()
