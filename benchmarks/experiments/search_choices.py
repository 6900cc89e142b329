"""What a guarded search chooses, beside what cross-validation chooses on the same training part.

Grid searches over nearest neighbours, trees and boosting, on three tasks of `benchmarks.agents.small_tasks`: 500
records train, 500 are the guard's, and the truth is the accuracy on all others, 20,000 fresh ones or the rest of a
file. The guard is asked in two ways: as the search's scorer, one candidate after another, and by `GuardedSearchCV`, all
at once. Both have cross-validated training values in the folds of the search without a guard. A difference is the true
accuracy of what the guarded search chooses, less that of cross-validation's own choice; limits are Student's, of one
side.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks.agents.small_tasks import draw
from benchmarks.experiments.outcome import Number, Outcome, Size, mean_number
from thresholdout import Thresholdout
from thresholdout.model_selection import GuardedSearchCV
from thresholdout.noise.sources import SeededNoise
from thresholdout.simulation import run_experiment

NAME = "search_choices"
TASKS: Final = ("clusters", "noisy labels", "affairs")
FAMILIES: Final = ("neighbours", "trees", "boosting")
WAYS: Final = {"scorer": "guard.scorer()", "list": "GuardedSearchCV"}
HOLDOUT: Final = 500
SPLITS: Final[dict[Size, int]] = {"tiny": 2, "quick": 20, "full": 100}
CONFIDENCE: Final = 0.95


def family(name: str, few: bool) -> tuple[Any, dict[str, list[Any]]]:
    """Return an estimator and its grid."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    if name == "neighbours":
        return KNeighborsClassifier(), {"n_neighbors": [1, 9] if few else [1, 2, 3, 5, 8, 12, 18, 27, 40, 60]}
    if name == "trees":
        depths = [2, 8] if few else [1, 2, 3, 4, 5, 6, 8, 12, None]
        return DecisionTreeClassifier(random_state=0), {"max_depth": depths}
    grid: dict[str, list[Any]] = {"learning_rate": [0.1, 0.5]}
    grid |= {"max_iter": [2] if few else [5, 20], "max_leaf_nodes": [2] if few else [4, 16]}
    return HistGradientBoostingClassifier(early_stopping=False, random_state=0), grid


def cell(rng: np.random.Generator, task: str, kind: str, few: bool) -> list[dict[str, Any]]:
    """Search one split in three ways."""
    from sklearn.model_selection import GridSearchCV, ParameterGrid

    drawn = draw(task, int(rng.integers(2**31)))
    ends = (drawn.train, drawn.train + HOLDOUT)
    (X, holdout, fresh), (y, labels, truth) = (np.split(part, ends) for part in (drawn.X, drawn.y))
    model, grid = family(kind, few)

    def guard() -> Thresholdout:
        queries, noise = len(ParameterGrid(grid)), SeededNoise(int(rng.integers(2**31)))
        return Thresholdout(
            (holdout, labels), train=(X, y), queries=queries, random_state=noise, allow_duplicates=task == "affairs"
        )

    def true(search: Any) -> float:
        return float(np.mean(search.best_estimator_.predict(fresh) == truth))

    plain = GridSearchCV(model, grid, cv=5).fit(X, y)
    one, many = guard(), guard()
    scored = GridSearchCV(model, grid, scoring=one.scorer("accuracy"), cv=one.split()).fit(X, y)
    listed = GuardedSearchCV(GridSearchCV(model, grid, cv=5), many).fit(X, y)
    own = true(plain)
    return [
        {"way": way, "difference": true(search) - own, "same": search.best_params_ == plain.best_params_, "own": own}
        for way, search in (("scorer", scored), ("list", listed))
    ]


def lower_limit(differences: Any) -> float:
    """Return the one-sided lower limit of a mean, by Student's law."""
    from scipy.stats import t

    found = mean_number(differences)
    return found.value - float(t.ppf(CONFIDENCE, len(differences) - 1)) * found.se


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all searches."""
    grid: dict[str, list[Any]] = {"task": list(TASKS), "kind": list(FAMILIES), "few": [size == "tiny"]}
    results = run_experiment(cell, grid, SPLITS[size], folder=folder, n_jobs=jobs)
    rows = []
    numbers: dict[str, Number] = {}
    for way in WAYS:
        asked = results[results["way"] == way]
        for kind, chosen in [*asked.groupby("kind", sort=False), ("all", asked)]:
            found, lower = mean_number(chosen["difference"]), lower_limit(chosen["difference"])
            rows.append(
                {
                    "asked by": WAYS[way],
                    "search": kind,
                    "searches": len(chosen),
                    "same choice": float(chosen["same"].mean()),
                    "difference": found.value,
                    "se": found.se,
                    "lower limit": lower,
                    "its own accuracy": float(chosen["own"].mean()),
                }
            )
            numbers[f"difference_{way}_{kind}"] = found
            numbers[f"lower_{way}_{kind}"] = Number(lower)
    notes = [
        f"{SPLITS[size]} splits of each of {len(TASKS)} tasks: {', '.join(TASKS)}; {HOLDOUT} records in the holdout. "
        f"Limits at {CONFIDENCE}, one-sided, of the mean difference over splits and tasks."
    ]
    return Outcome(NAME, size, {"What searches choose": pd.DataFrame(rows)}, numbers, picture(results), notes)


def picture(results: pd.DataFrame) -> Any:
    """Draw every difference, and means with two standard errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    panel = figure.subplots()
    places = []
    for group, kind in enumerate(FAMILIES):
        for side, (way, colour) in enumerate(zip(WAYS, ("#7570b3", "#1b7837"), strict=True)):
            chosen = results[(results["kind"] == kind) & (results["way"] == way)]["difference"]
            where = group + 0.3 * (side - 0.5)
            spread = where + np.linspace(-0.1, 0.1, chosen.size)
            panel.plot(spread, chosen, ".", color=colour, alpha=0.4, markersize=4)
            mean = mean_number(chosen)
            error = 2 * mean.se if math.isfinite(mean.se) else 0.0
            panel.errorbar(
                where, mean.value, error, fmt="D", color=colour, markersize=5, label=WAYS[way] if not group else None
            )
        places.append(group)
    panel.axhline(0.0, color="black", linewidth=1)
    panel.set_xticks(places, list(FAMILIES))
    panel.set_ylabel("true accuracy of the guarded choice\n- that of cross-validation's own")
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize="small")
    return figure
