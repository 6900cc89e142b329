"""What goes wrong when dependence is ignored: guards calibrated as if records were independent, and with the truth.

The holdout has 10,000 records. Three kinds of dependence, each weaker and stronger, down to none:

- groups of equal records, of 1, 5 and 20 (each record is six fair coins),
- a chain over 64 states that keeps its state with probability lambda and draws a new one otherwise, lambda 0, 0.5, 0.9,
- a preferential-attachment tree whose labels are an Ising field without external field: neighbours' labels have the
  correlation h = 0, 0.3, 0.5, 0.7 (homophily); sampled exactly.

The truth of every query is 1/2, exactly. Two analysts know where records depend on each other. One asks for the share
of positive labels in all records and in regions of them (blocks; in the tree, the surroundings of the largest hubs),
and then for the classifier that says what each region leans to (`thresholdout.simulation.ClusterAnalyst`). The other
asks how often each attribute agrees with the label, and then for the vote of all, each turned to the side that scored
better (`AggregationAnalyst`; not for the tree, whose records are labels only). Both have the value on the training part
tested, as an honest analyst does.

Both guards are those of `plan` for 32 queries and confidence 0.95: one for 10,000 independent records, one for the true
model. They make claims. Plain reuse stands beside with the usual interval for one query, 0.0136. A session is broken
when any answer was farther from the truth than its half-width; the promise of a session is its largest half-width.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.experiments.outcome import Number, Outcome, Size, share_limits, share_number
from graphs import DependenceModel, Groups, Independent, MarkovChain, MarkovField
from thresholdout import SeededNoise, plan
from thresholdout.simulation import (
    AggregationAnalyst,
    ClusterAnalyst,
    DependentRecords,
    NaiveReuse,
    SimulatedGuard,
    interview,
    run_experiment,
)
from thresholdout.simulation.strategic import around_hubs

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

    from thresholdout.simulation.simulated_session import Analyst, Answering

NAME = "dependent"
RECORDS, QUERIES, CONFIDENCE, STATES, COINS = 10_000, 32, 0.95, 64, 6
BETA = 1.0 - CONFIDENCE
NAIVE, IGNORING, KNOWING = "plain reuse", "guard, as if independent", "guard, with dependence"
KINDS: dict[str, tuple[float, ...]] = {
    "groups": (1, 5, 20),
    "chain": (0.0, 0.5, 0.9),
    "social tree": (0.0, 0.3, 0.5, 0.7),
}
STRENGTH = {"groups": "size of groups", "chain": "lambda", "social tree": "homophily h"}
COLOURS = {NAIVE: "#999999", IGNORING: "#d95f02", KNOWING: "#0b6fa4"}
SEEDS: dict[Size, int] = {"tiny": 2, "quick": 100, "full": 1000}


@cache
def tree() -> nx.Graph[int]:
    """Return the tree, which grew by preferential attachment."""
    import networkx as nx

    return nx.Graph(nx.barabasi_albert_graph(RECORDS, 1, seed=1))


@cache
def model(kind: str, strength: float) -> DependenceModel:
    """Return the true model."""
    if kind == "groups":
        return Groups(np.arange(RECORDS) // int(strength))
    if kind == "chain":
        return MarkovChain(np.full((STATES, STATES), (1 - strength) / STATES) + strength * np.eye(STATES), RECORDS)
    return MarkovField.ising(tree(), math.atanh(strength))


@cache
def data(kind: str, strength: float) -> DependentRecords:
    """Return the law of the records."""
    if kind == "groups":
        return DependentRecords(model(kind, strength), attributes=QUERIES - 1, draws=COINS)
    if kind == "chain":
        return DependentRecords(model(kind, strength), attributes=QUERIES - 1, states=STATES)
    return DependentRecords(model(kind, strength), attributes=1)


@cache
def guard(kind: str, strength: float | None) -> SimulatedGuard:
    """Return the planned guard; strength None stands for independent records."""
    assumed = Independent(RECORDS) if strength is None else model(kind, strength)
    parameters = plan(assumed, queries=QUERIES, confidence=CONFIDENCE).parameters
    return SimulatedGuard(parameters, assumed, SeededNoise(0), CONFIDENCE)


@cache
def regions(kind: str, count: int) -> NDArray[np.int64]:
    """Return the region of each record."""
    return around_hubs(tree(), count) if kind == "social tree" else np.arange(RECORDS) * count // RECORDS


def session(rng: np.random.Generator, kind: str, strength: float, analyst: str) -> list[dict[str, Any]]:
    """Let an analyst query all three on the same data."""
    law = data(kind, strength)
    train, holdout = law.draw(rng), law.draw(rng)
    who: Analyst = AggregationAnalyst()
    if analyst == "clusters":
        who = ClusterAnalyst(regions(kind, QUERIES - 2), largest=QUERIES - 2)
    rows = []
    for name in (NAIVE, IGNORING, KNOWING):
        mechanism: Answering = NaiveReuse()
        if name != NAIVE:
            made = guard(kind, None if name == IGNORING else strength)
            mechanism = made.renewed(SeededNoise(int(rng.integers(2**62))))
        found = interview(who, mechanism, train, holdout, rng, truth=0.5)
        usual = math.sqrt(math.log(2.0 / BETA) / (2 * RECORDS))
        width, error = usual if name == NAIVE else found.promised, found.largest_error
        broken = error > width if name == NAIVE else found.broken
        rows.append({"answers": name, "half_width": width, "error": error, "broken": broken, "asked": found.answered})
    return rows


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all sessions; see the module's docstring."""
    grid = [
        {"kind": kind, "strength": float(strength), "analyst": analyst}
        for kind, strengths in KINDS.items()
        for strength in (strengths if size != "tiny" else strengths[-1:])
        for analyst in ("clusters", "aggregation")
        if (kind, analyst) != ("social tree", "aggregation")
    ]
    results = run_experiment(session, grid, SEEDS[size], folder=folder, n_jobs=jobs)
    table = summarised(results)
    notes = [
        f"n = {RECORDS:,}, {SEEDS[size]} sessions in each row, beta = {BETA:.2f}; limits are exact binomial ones, each "
        "right with probability 0.99."
    ]
    return Outcome(NAME, size, {"Dependence, known and ignored": table}, numbers(table, results), picture(table), notes)


def summarised(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each setting and way of answering."""
    rows = []
    for keys, group in results.groupby(["kind", "strength", "analyst", "answers"], sort=False):
        broken = int(group["broken"].sum())
        low, high = share_limits(broken, len(group))
        row = dict(zip(("kind", "strength", "analyst", "answers"), keys, strict=True))
        row |= {"promised": group["half_width"].mean(), "mean_error": group["error"].mean()}
        rows.append(row | {"sessions": len(group), "broken": broken / len(group), "at_least": low, "at_most": high})
    return pd.DataFrame(rows)


def numbers(table: pd.DataFrame, results: pd.DataFrame) -> dict[str, Number]:
    """Return what is cited: the strongest dependence of each kind, by the analyst who breaks more."""
    found = {}
    for kind, strengths in KINDS.items():
        for name, short in ((IGNORING, "ignoring"), (KNOWING, "knowing")):
            rows = table[(table["kind"] == kind) & (table["answers"] == name)]
            worst = rows[rows["strength"] == strengths[-1]].sort_values("broken").iloc[-1]
            key = f"{short}_{kind.replace(' ', '_')}"
            same = (
                results[["kind", "strength", "analyst", "answers"]] == worst[["kind", "strength", "analyst", "answers"]]
            )
            found[f"broken_{key}"] = share_number(results.loc[same.all(axis=1), "broken"])
            found[f"at_least_{key}"] = Number(float(worst["at_least"]))
            found[f"at_most_{key}"] = Number(float(rows["at_most"].max() if name == KNOWING else worst["at_most"]))
            found[f"promised_{key}"] = Number(float(worst["promised"]))
    return found


def picture(table: pd.DataFrame) -> Any:
    """Draw shares of broken sessions and promised widths against the strength of dependence."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), layout="constrained")
    above, below = figure.subplots(2, len(KINDS), sharex="col", sharey="row")
    for top, bottom, (kind, strengths) in zip(above, below, KINDS.items(), strict=True):
        places = {float(strength): place for place, strength in enumerate(strengths)}
        for shift, name in enumerate((NAIVE, IGNORING, KNOWING)):
            rows = table[(table["kind"] == kind) & (table["answers"] == name)]
            worst = rows.sort_values("broken").groupby("strength").tail(1).sort_values("strength")
            where = worst["strength"].map(places) + 0.12 * (shift - 1)
            errors = [worst["broken"] - worst["at_least"], worst["at_most"] - worst["broken"]]
            top.errorbar(where, worst["broken"], errors, fmt="o", color=COLOURS[name], markersize=5, label=name)
            wide = rows.groupby("strength")[["promised", "mean_error"]].max()
            beside = np.array([places[strength] + 0.12 * (shift - 1) for strength in wide.index.tolist()])
            bottom.bar(beside, wide["promised"], 0.1, color=COLOURS[name], alpha=0.4)
            bottom.plot(beside, wide["mean_error"], "D", color=COLOURS[name], markersize=4)
        top.axhline(BETA, color="black", linestyle="--", linewidth=1, label="beta, the share that is allowed")
        top.set_title(kind, fontsize=10)
        bottom.set_xticks(list(places.values()), [f"{strength:g}" for strength in strengths])
        bottom.set_xlabel(STRENGTH[kind])
        for panel in (top, bottom):
            panel.spines[["top", "right"]].set_visible(False)
    above[0].set_ylabel("share of sessions with\na broken promise")
    below[0].set_ylabel("promised (bars) and largest\nerror, mean (diamonds)")
    handles, labels = above[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize="small")
    return figure
