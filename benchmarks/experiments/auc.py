"""Areas under the curve of an evolving classifier on 100 holdout records: ``benchmarks.papers.auc``, summarised.

The simulation of Gossmann, Pezeshk and Sahiner (2021), described in ``benchmarks.papers.auc``: 30 rounds, each of which
picks the best of many classifiers by their areas on the same 100 records. Errors are distances from areas on 5,000
fresh records, over all rounds. The quick size has two of the four classifiers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.experiments.outcome import Number, Outcome, Size, mean_number
from benchmarks.papers import auc as study
from thresholdout.simulation import run_experiment

NAME = "auc"
FIRST_SEED = 2000
CLASSIFIERS: dict[Size, tuple[str, ...]] = {
    "tiny": ("naive Bayes",),
    "quick": ("logistic", "naive Bayes"),
    "full": study.CLASSIFIERS,
}
RUNS: dict[Size, int] = {"tiny": 2, "quick": 16, "full": 40}
SHORT = dict(zip(study.GUARDS, ("naive", "published", "half", "third"), strict=True))
COLOURS = ("#d95f02", "#7fb3d5", "#0b6fa4", "#1b7837")


def one(rng: np.random.Generator, classifier: str, run_seed: int) -> list[dict[str, Any]]:
    """Run one study; its randomness comes from its own seed."""
    rows = []
    for answers, (errors, fresh, hits) in study.errors(classifier, run_seed).items():
        error = {"bias": float(errors.mean()), "square": float((errors**2).mean()), "last": float(errors[-1])}
        rows.append(
            {"answers": answers, **error, "absolute": float(np.abs(errors).mean()), "fresh": fresh, "hits": hits}
        )
    return rows


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all studies."""
    seeds = range(FIRST_SEED, FIRST_SEED + RUNS[size])
    grid: dict[str, list[Any]] = {"classifier": list(CLASSIFIERS[size]), "run_seed": list(seeds)}
    results = run_experiment(one, grid, 1, folder=folder, n_jobs=jobs)
    table = results.groupby(["classifier", "answers"], sort=False).agg(
        mean_error=("bias", "mean"),
        mean_error_se=("bias", "sem"),
        mean_absolute_error=("absolute", "mean"),
        square=("square", "mean"),
        last_fresh_area=("fresh", "mean"),
        answers_from_holdout=("hits", "mean"),
    )
    table.insert(2, "sd", np.sqrt(table.pop("square") - table["mean_error"] ** 2))
    numbers: dict[str, Number] = {}
    for name, short in SHORT.items():
        rows = results[results["answers"] == name].groupby("run_seed")[["bias", "absolute"]].mean()  # the same records
        numbers[f"bias_{short}"] = mean_number(rows["bias"])
        numbers[f"absolute_{short}"] = mean_number(rows["absolute"])
    notes = [f"{RUNS[size]} runs of each classifier, 30 rounds in each, 100 records in the holdout."]
    return Outcome(NAME, size, {"Areas under the curve": table.reset_index()}, numbers, picture(results), notes)


def picture(results: pd.DataFrame) -> Any:
    """Draw the mean error of every run, one group for each classifier."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    panel = figure.subplots()
    names = list(dict.fromkeys(results["classifier"]))
    for place, (name, colour) in enumerate(zip(SHORT, COLOURS, strict=True)):
        chosen = results[results["answers"] == name]
        for group, classifier in enumerate(names):
            bias = chosen.loc[chosen["classifier"] == classifier, "bias"].to_numpy()
            where = group + 0.2 * (place - 1.5)
            spread = where + np.linspace(-0.05, 0.05, bias.size)
            panel.plot(spread, bias, ".", color=colour, alpha=0.5, markersize=4)
            panel.plot([where - 0.08, where + 0.08], [bias.mean()] * 2, color=colour, label="" if group else name)
    panel.axhline(0.0, color="black", linewidth=1)
    panel.set_xticks(range(len(names)), names)
    panel.set_ylabel("reported area - area on fresh records,\nmean of a run")
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize="small")
    return figure
