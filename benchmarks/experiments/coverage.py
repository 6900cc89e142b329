"""How often promises are broken by the strongest simple attack: every mechanism, every kind of dependence it serves.

The attack, the records and the mechanisms are those of ``benchmarks.attacks``: 2,000 records of fair signs, 201
queries, confidence 0.9, so beta = 0.1; she turns every attribute to the side that the answers favour, and asks for
the majority vote. The truth of every query is 1/2, exactly. A run is broken when any of its answers is farther from
the truth than its half-width; the share of such runs is at most beta where the exact binomial upper limit, at
confidence 0.99, is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import attacks
from benchmarks.experiments.outcome import Number, Outcome, Size, share_limits, share_number
from thresholdout import InputError, PlanError
from thresholdout.simulation import run_experiment

NAME = "coverage"
BETA = 1.0 - attacks.CONFIDENCE
BATCH = 25  # runs of a cell
BATCHES: dict[Size, int] = {"tiny": 1, "quick": 8, "full": 40}
COLOURS = ("#0b6fa4", "#d95f02", "#1b7837", "#7570b3", "#e7298a", "#999999")


def batch(rng: np.random.Generator, kind: str, mechanism: str) -> list[dict[str, Any]]:
    """Attack some guards; nothing comes back where the mechanism does not serve the model."""
    try:
        found = list(attacks.runs(kind, mechanism, BATCH, first_seed=int(rng.integers(2**31))))
    except (InputError, PlanError):
        return []
    return [{"error": run.error, "share": run.share, "answers": run.answers, "broken": run.broken} for run in found]


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all attacks; see the module's docstring."""
    grid = {"kind": list(attacks.models()), "mechanism": list(attacks.MECHANISMS)}
    if size == "tiny":
        grid = {"kind": ["independent"], "mechanism": ["claims", "ladder"]}
    results = run_experiment(batch, grid, BATCHES[size], folder=folder, n_jobs=jobs)
    rows = []
    for (kind, mechanism), group in results.groupby(["kind", "mechanism"], sort=False):
        broken = int(group["broken"].sum())
        low, high = share_limits(broken, len(group))
        row = {"records": kind, "mechanism": mechanism, "runs": len(group), "answers": group["answers"].mean()}
        row |= {"largest_error": group["error"].max(), "median_of_half_width": group["share"].median()}
        rows.append(row | {"broken": broken / len(group), "at_least": low, "at_most": high})
    table = pd.DataFrame(rows)
    numbers = {
        "broken": share_number(results["broken"]),
        "at_most": Number(float(table["at_most"].max())),
        "closest": Number(float(results["share"].max())),
    }
    notes = [
        f"{attacks.RECORDS:,} records, {attacks.ATTRIBUTES + 1} queries, beta = {BETA:.1f}; mechanisms that do not "
        "serve a model are left out. median_of_half_width: the largest error of a run as a share of its half-width."
    ]
    return Outcome(NAME, size, {"Coverage": table}, numbers, picture(results), notes)


def picture(results: pd.DataFrame) -> Any:
    """Draw the largest error of each run as a share of its half-width."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    panel = figure.subplots()
    kinds = list(dict.fromkeys(results["kind"]))
    names = list(dict.fromkeys(results["mechanism"]))
    jitter = np.random.default_rng(0)
    for place, name in enumerate(names):
        rows = results[results["mechanism"] == name]
        where = rows["kind"].map(kinds.index) + (place - (len(names) - 1) / 2) * 0.13
        where = where + 0.04 * jitter.uniform(-1, 1, len(rows))
        panel.plot(where, rows["share"], ".", color=COLOURS[place], markersize=3, label=name, alpha=0.6)
    panel.axhline(1.0, color="black", linestyle="--", linewidth=1, label="the promise")
    panel.set_xticks(range(len(kinds)), kinds)
    panel.set_ylim(0.0, None)
    panel.set_ylabel("largest error of a run / its half-width")
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize="small", markerscale=3)
    return figure
