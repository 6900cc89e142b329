"""How much the sharper routes buy against the published ones: budget, records and tolerance.

*Budget.* The largest eps' whose leakage about every record stays within a target, on chains, grids, social graphs and
families (the networks of ``benchmarks.graph_quilts``): the best sound route over the best published one ([Z17], Lemmas
2 to 4). *Tolerance.* What is certified for 1,000 queries and 1 or 10 answers from the holdout at confidence 0.95:
`plan` beside [Z17], Theorem 2 (whose proof assumes independent records). *Records.* How many independent records a
tolerance of 0.1 takes, of `plan` and of the published theorem. Nothing here is random.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import graph_quilts, tolerances
from benchmarks.experiments.outcome import Number, Outcome, Size
from graphs import DependenceModel, Groups, Independent
from thresholdout.certificates.published_tolerances import theorem_2_tolerance
from thresholdout.simulation import run_experiment

NAME = "sharper"
TARGETS: dict[Size, tuple[float, ...]] = {"tiny": (1.0,), "quick": (0.2, 1.0), "full": (0.2, 1.0, 3.0)}
BUDGETS = (1, 10)
BLUE, ORANGE = "#0b6fa4", "#d95f02"


def networks() -> dict[str, DependenceModel]:
    """Return small networks of all kinds."""
    found = graph_quilts.networks()
    for eigenvalue in (0.1, 0.9):
        found[f"chain of 1,000, lambda {eigenvalue}"] = tolerances.chain(1000, eigenvalue)
    return found


def large() -> dict[str, DependenceModel]:
    """Return the models whose tolerances are compared."""
    n = 100_000
    found: dict[str, DependenceModel] = {f"{n:,} independent": Independent(n)}
    found[f"{n:,} in groups of 5"] = Groups(np.arange(n) // 5)
    for eigenvalue in (0.5, 0.9):
        found[f"{n:,}, chain {eigenvalue}"] = tolerances.chain(n, eigenvalue)
    return found


def budget(rng: np.random.Generator, network: str, target: float) -> dict[str, Any]:
    """Return the best sound and the best published budget of a network."""
    table = networks()[network].explain(target)
    sound, published = table.loc[~table["published"], "budget"], table.loc[table["published"], "budget"]
    return {"sharper": float(sound.max()), "published": float(published.max())}


def tolerance(rng: np.random.Generator, records: str, budget: int) -> dict[str, Any]:
    """Return the planned and the published tolerance."""
    model = large()[records]
    best = tolerances.planned(model, budget)
    published = theorem_2_tolerance(model, queries=tolerances.QUERIES, budget=budget, beta=tolerances.BETA)
    return {"sharper": min(1.0, best), "published": published}


def needed(rng: np.random.Generator, budget: int) -> dict[str, Any]:
    """Return how many independent records a tolerance of 0.1 takes."""
    sharper = tolerances.fewest(budget, 0.1)
    low, high = 1, 10**9
    while low < high:
        middle = (low + high) // 2
        found = theorem_2_tolerance(
            Independent(middle), queries=tolerances.QUERIES, budget=budget, beta=tolerances.BETA
        )
        low, high = (low, middle) if found <= 0.1 else (middle + 1, high)
    return {"sharper": sharper, "published": low}


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Compute all comparisons; see the module's docstring."""
    names, models = list(networks()), list(large())
    if size == "tiny":
        names, models = names[:1], models[:1]

    def part(name: str) -> Path | None:
        return None if folder is None else folder / name

    grid: dict[str, list[Any]] = {"network": names, "target": list(TARGETS[size])}
    budgets = run_experiment(budget, grid, 1, folder=part("budget"), n_jobs=jobs)
    grid = {"records": models, "budget": list(BUDGETS)}
    widths = run_experiment(tolerance, grid, 1, folder=part("tolerance"), n_jobs=jobs)
    sizes = run_experiment(needed, {"budget": list(BUDGETS)}, 1, folder=part("needed"), n_jobs=jobs)
    budgets["ratio"] = budgets["sharper"] / budgets["published"].where(budgets["published"] > 0)
    widths["ratio"] = widths["published"] / widths["sharper"]
    sizes["ratio"] = sizes["published"] / sizes["sharper"]
    tables = {
        "Budget for a leakage target": budgets,
        "Tolerance of 1,000 queries": widths,
        "Independent records for a tolerance of 0.1": sizes,
    }
    tables = {title: table.drop(columns="seed") for title, table in tables.items()}
    numbers = {
        "budget_ratio_least": Number(float(budgets["ratio"].min())),
        "budget_ratio_median": Number(float(budgets["ratio"].median())),
        "budget_ratio_largest": Number(float(budgets["ratio"].max())),
        "tolerance_ratio_least": Number(float(widths["ratio"].min())),
        "records_ratio_1": Number(float(sizes["ratio"].iloc[0])),
        "records_ratio_10": Number(float(sizes["ratio"].iloc[1])),
    }
    notes = ["A tolerance of 1 or more says nothing; no published budget: every published route gives none."]
    return Outcome(NAME, size, tables, numbers, picture(budgets, widths), notes)


def picture(budgets: pd.DataFrame, widths: pd.DataFrame) -> Any:
    """Draw ratios of budgets, and tolerances."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = list(dict.fromkeys(budgets["network"]))
    targets = list(dict.fromkeys(budgets["target"]))
    for place, target in enumerate(targets):
        rows = budgets[budgets["target"] == target].set_index("network").reindex(names)
        where = np.arange(len(names)) + 0.8 * ((place + 0.5) / len(targets) - 0.5)
        left.barh(where, rows["ratio"], 0.8 / len(targets), color=BLUE, alpha=1 - 0.3 * place, label=f"{target} nats")
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.axvline(1.0, color="black", linewidth=1)
    left.set_xlabel("budget: best sound / best published route")
    above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.4, 1.0), "frameon": False, "fontsize": "small"}
    left.legend(title="leakage target", ncols=3, **above)
    labels = [f"{row.records}, B = {row.budget}" for row in widths.itertuples()]
    places = np.arange(len(labels))
    right.barh(places - 0.2, widths["published"], 0.4, color=ORANGE, label="published theorem")
    right.barh(places + 0.2, widths["sharper"], 0.4, color=BLUE, label="plan")
    right.axvline(1.0, color="black", linewidth=1, linestyle="--", label="says nothing beyond")
    right.set_yticks(places, labels)
    right.invert_yaxis()
    right.set_xscale("log")
    right.set_xlabel("tolerance of 1,000 queries")
    right.legend(ncols=2, **above)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    return figure
