"""Agents that try 25 changes of a pipeline, behind ten rules for what to keep, on slices of 75 to 20,000 records.

A public test of adaptive holdouts on proposals of language models found that "thresholdout" did not help and that "beat
the best by one sigma" did. This is its set-up from its description, with a proposer that anybody can run: fifteen small
tasks (`benchmarks.agents.small_tasks`), random and greedy edits of a pipeline (`benchmarks.agents.pipeline_edits`), and
the rules of `benchmarks.agents.keeping_rules`. In each cell, one task and one seed, every pipeline of a repertoire is
fitted once; all rules and slices look at the same predictions, and a proposer makes the same draws for every rule.

The truth is the accuracy on records that no rule sees: 20,000 fresh ones of a generated task, the rest of a file
(slices that leave fewer than 200 are left out, so files are in a table of their own). Standard errors are over seeds,
for these tasks.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks.agents.climbs import PROPOSALS, SLICES, cell
from benchmarks.agents.keeping_rules import RULES
from benchmarks.agents.small_tasks import FRESH, GENERATED, TASKS
from benchmarks.experiments.outcome import Number, Outcome, Size, share_number
from thresholdout.simulation import run_experiment

NAME = "agents"
SEEDS: Final[dict[Size, int]] = {"tiny": 2, "quick": 4, "full": 30}
MEMBERS: Final[dict[Size, int]] = {"tiny": 6, "quick": 40, "full": 40}
TINY: Final = ("cut regression", "votes")
SHORT: Final = dict(
    zip(
        RULES,
        ("none", "sigma", "variant", "published", "published_cv", "cv", "final", "scores", "gate", "milestones"),
        strict=True,
    )
)
QUANTITIES: Final = ("gap", "kept", "wrong", "missed", "gain", "lost")
DRAWN: Final = {
    "none": ("#d95f02", "-"),
    "one sigma": ("#7570b3", "-"),
    "the test's variant": ("#e7298a", "--"),
    "Algorithm 1, training scores": ("#a6761d", "--"),
    "cross-validation, final check": ("#0b6fa4", "-"),
    "guard, gate": ("#1b7837", "-"),
    "guard, milestones": ("#66c2a5", "-"),
}


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all cells."""
    few = size == "tiny"
    grid: dict[str, list[Any]] = {
        "task": list(TINY if few else TASKS),
        "members": [MEMBERS[size]],
        "fresh": [1_000 if few else FRESH],
    }
    results = run_experiment(cell, grid, SEEDS[size], folder=folder, n_jobs=jobs)
    made = results["task"].isin(list(GENERATED))
    results["lost"] = results["gain"] < 0.0
    tables = {
        "Generated tasks": table(results[made]),
        "Files": table(results[~made]),
    }
    cited = numbers(results, made)
    notes = [
        f"{SEEDS[size]} seeds of each task, {PROPOSALS} proposals in each climb; means over tasks, standard errors "
        f"over seeds. Of all final intervals of generated tasks, at 0.95, {cited['outside'].value:.3f} miss the truth "
        f"that fresh records tell; of {cited['certificates'].value:,.0f} certificates {cited['false'].value:,.0f} are "
        "of models that are no better on them. The truth of a file is that of its other records, a few hundred in "
        "small ones.",
    ]
    return Outcome(NAME, size, tables, cited, picture(tables["Generated tasks"]), notes)


def stratified(rows: pd.DataFrame, quantity: str) -> Number:
    """Return the mean over tasks of means over seeds, with the standard error over seeds for these tasks."""
    cells = rows.astype({quantity: np.float64}).groupby(["task", "seed"])[quantity].mean()
    tasks = cells.groupby("task")
    error = math.sqrt(float((tasks.var(ddof=1) / tasks.size()).sum())) / tasks.ngroups
    return Number(float(tasks.mean().mean()), error)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each size of slices and each rule."""
    rows = []
    for (size, rule), chosen in results.groupby(["records", "rule"], sort=False):
        row: dict[str, Any] = {"records": size, "rule": rule, "tasks": chosen["task"].nunique()}
        for quantity in QUANTITIES:
            found = stratified(chosen, quantity)
            row |= {quantity: found.value, f"{quantity}_se": found.se}
        row["half_width"] = float(chosen["half_width"].mean())
        row |= {"certified": float(chosen["certified"].mean()), "false": float(chosen["false"].mean())}
        rows.append(row)
    return pd.DataFrame(rows).sort_values("records", kind="stable", ignore_index=True)


def numbers(results: pd.DataFrame, made: pd.Series[bool]) -> dict[str, Number]:
    """Return what is cited: of generated tasks by size, of files with the smallest slices, and how sure it is."""
    found: dict[str, Number] = {}
    quantities = ("gap", "wrong", "missed", "lost")
    for (size, rule), chosen in results[made].groupby(["records", "rule"], sort=False):
        for quantity in quantities:
            found[f"{quantity}_{SHORT[str(rule)]}_{size}"] = stratified(chosen, quantity)
        if chosen["half_width"].notna().all():
            found[f"width_{SHORT[str(rule)]}_{size}"] = stratified(chosen, "half_width")
    largest = {quantity: max(n.se for key, n in found.items() if key.startswith(quantity)) for quantity in quantities}
    found |= {f"error_{quantity}": Number(error) for quantity, error in largest.items()}
    smallest = results[~made & (results["records"] == min(SLICES))]
    for rule, chosen in smallest.groupby("rule", sort=False):
        for quantity in ("gap", "missed"):
            found[f"{quantity}_{SHORT[str(rule)]}_files"] = stratified(chosen, quantity)
    finals = results[made & results["half_width"].notna()]
    found["outside"] = share_number(finals["outside"])
    found["certificates"], found["false"] = Number(finals["certified"].sum()), Number(finals["false"].sum())
    return found


def picture(summary: pd.DataFrame) -> Any:
    """Draw gap, wrong keeps and missed gains against the size of the slice."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.4), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True)
    shown = {
        "gap": "reported accuracy - true accuracy",
        "wrong": f"kept though worse, of {PROPOSALS} proposals",
        "missed": "best accuracy offered - accuracy at the end",
    }
    for panel, (quantity, label) in zip(panels, shown.items(), strict=True):
        for rule, (colour, style) in DRAWN.items():
            chosen = summary[summary["rule"] == rule]
            values, errors = chosen[quantity], chosen[f"{quantity}_se"]
            panel.plot(chosen["records"], values, style, color=colour, marker="o", markersize=3.5, label=rule)
            panel.fill_between(
                chosen["records"], values - 2 * errors, values + 2 * errors, color=colour, alpha=0.15, linewidth=0
            )
        panel.axhline(0.0, color="black", linewidth=0.8)
        panel.set_xscale("log")
        panel.set_xticks(sorted(set(summary["records"])), [f"{size:,}" for size in sorted(set(summary["records"]))])
        panel.minorticks_off()
        panel.set_title(label, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("records in the slice that the rule looks at", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize="small")
    return figure
