"""The same adaptive sessions through every way of answering: error, width, queries answered, time a query.

Training part and holdout have 2,000 records each, with 400 boolean attributes and a boolean label. An honest search
compares 20 candidates on data with signal (40 attributes agree with the label 56 % of the time): made on one half of
the training part, each claims its accuracy on the other half. Three analysts adapt
to the holdout on data without any signal, where every truth is 1/2: the aggregation attack of Blum and Hardt, the
quadratic analyst of Rogers et al., and the same one claiming that every training value is 1, so that a guard that
compares must answer from the holdout. All mechanisms are declared for 420 queries at confidence 0.95:

- plain reuse: the mean over the holdout; promises nothing,
- the Ladder of Blum and Hardt, which tells the best score so far (errors are those of the best score),
- Rogers et al. 2020: Gaussian noise on every answer, with the half-width of their Theorem 2.1,
- thresholdout, which makes claims, as `plan` makes them.

"Broken" is the share of sessions in which some answer was farther from the truth than promised.
"""

from __future__ import annotations

import math
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.experiments.outcome import Number, Outcome, Size, mean_number, share_number
from graphs import Independent
from thresholdout import SeededNoise, plan
from thresholdout.mechanisms import LadderParameters
from thresholdout.simulation import (
    AggregationAnalyst,
    BenignSearch,
    NaiveReuse,
    QuadraticAnalyst,
    SimulatedGuard,
    interview,
    run_experiment,
)
from thresholdout.simulation.simulated_session import Part, Reply

NAME = "side_by_side"
SEEDS: dict[Size, int] = {"tiny": 2, "quick": 20, "full": 100}

RECORDS, ATTRIBUTES, INFORMATIVE, AGREES = 2_000, 400, 40, 0.56
QUERIES, CONFIDENCE, FRESH = 420, 0.95, 20_000
ANALYSTS: dict[str, Any] = {
    "honest search": BenignSearch(20, validated=True),
    "aggregation": AggregationAnalyst(),
    "quadratic": QuadraticAnalyst(400),
    "quadratic, claims 1": QuadraticAnalyst(400, claim=1.0),
}
MECHANISMS = (
    "plain reuse",
    "Ladder",
    "Rogers et al.",
    "claims",
)


def published_gaussian(n: int, queries: int, beta: float) -> tuple[float, float]:
    """Return half-width and standard deviation of [R20, Theorem 2.1] at their best.

    The half-width is ``sqrt((2x - ln(1-lambda))/(2 n lambda beta)) + s sqrt(2 ln(4k/beta))``, s^2 = k/(8nx).
    """
    x = np.geomspace(1e-4 * n, 10.0 * n, 2001)[:, None] * beta / 100.0
    rate = np.linspace(0.001, 0.999, 999)
    std = np.sqrt(queries / (8.0 * n * x))
    widths = np.sqrt((2.0 * x - np.log1p(-rate)) / (2.0 * n * rate * beta))
    widths = widths + std * math.sqrt(2.0 * math.log(4.0 * queries / beta))
    best = np.unravel_index(int(np.argmin(widths)), widths.shape)
    return float(widths[best]), float(std[best[0], 0])


class PublishedGaussian:
    """Gaussian noise of one size on every answer, with the published half-width."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.width, self.std = published_gaussian(n, QUERIES, 1.0 - CONFIDENCE)
        self.rng = rng

    def ask(self, train_values: Any, holdout_values: Any) -> Reply:
        """Answer with the noisy mean over the holdout."""
        return Reply(float(np.mean(holdout_values) + self.std * self.rng.normal()), self.width, "holdout")


class Timed:
    """A mechanism whose answers are timed."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism, self.seconds = mechanism, 0.0

    def ask(self, train_values: Any, holdout_values: Any) -> Any:
        """Answer, and remember how long it took."""
        start = time.perf_counter()
        try:
            return self.mechanism.ask(train_values, holdout_values)
        finally:
            self.seconds += time.perf_counter() - start


def made(name: str, rng: np.random.Generator) -> Any:
    """Return a mechanism by its name."""
    if name == "plain reuse":
        return NaiveReuse()
    if name == "Rogers et al.":
        return PublishedGaussian(RECORDS, rng)
    return guard(name).renewed(SeededNoise(int(rng.integers(2**62))))


@cache
def guard(name: str) -> SimulatedGuard:
    """Return a guard with the plan's parameters, or with those that a mechanism needs."""
    parameters: Any
    if name == "claims":
        parameters = plan(RECORDS, queries=QUERIES, confidence=CONFIDENCE).parameters
    else:
        parameters = LadderParameters(CONFIDENCE, queries=QUERIES)
    return SimulatedGuard(parameters, Independent(RECORDS), SeededNoise(0), CONFIDENCE)


def records(rng: np.random.Generator, n: int, signal: bool) -> Part:
    """Draw records: fair coins, of which the first attributes may know the label."""
    labels = rng.random(n) < 0.5
    features = np.asfortranarray(rng.random((n, ATTRIBUTES)) < 0.5)
    if signal:
        agrees = rng.random((n, INFORMATIVE)) < AGREES
        features[:, :INFORMATIVE] = agrees == labels[:, None]
    return Part(features, labels)


def session(rng: np.random.Generator, analyst: str, mechanism: str) -> dict[str, Any]:
    """Run one session, and return what became of it."""
    signal = analyst == "honest search"
    train, holdout = records(rng, RECORDS, signal), records(rng, RECORDS, signal)
    fresh = records(rng, FRESH, signal) if signal else None
    timed = Timed(made(mechanism, rng))
    truth: Any = 0.5 if fresh is None else lambda query: float(np.mean(query(fresh)))
    found = interview(ANALYSTS[analyst], timed, train, holdout, rng, truth)
    values = np.array([exchange.reply.value for exchange in found.history])
    truths = np.array([exchange.truth for exchange in found.history])
    widths = np.array([exchange.reply.half_width for exchange in found.history])
    if mechanism == "Ladder":  # it is about the best score so far
        truths = np.maximum.accumulate(truths)
    errors = np.abs(values - truths)
    reported = found.reported
    return {
        "answered": found.answered,
        "refused": found.refused,
        "spent": sum(exchange.reply.source != "train" for exchange in found.history),
        "error": float(errors.max(initial=0.0)),
        "half_width": float(widths.max(initial=0.0)),
        "broken": math.nan if mechanism == "plain reuse" else float((errors > widths).any()),
        "overfitting": math.nan if reported is None else float(values[-1] - truths[-1]),
        "microseconds": 1e6 * timed.seconds / max(1, found.answered),
    }


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all sessions; see the module's docstring."""
    grid = {"analyst": list(ANALYSTS), "mechanism": list(MECHANISMS)}
    results = run_experiment(session, grid, SEEDS[size], folder=folder, n_jobs=jobs)
    table = summary(results)
    notes = [
        f"{RECORDS:,} records in the holdout, {SEEDS[size]} sessions in each row, {QUERIES} queries declared, "
        f"confidence {CONFIDENCE}. overfitting: the answer about the analyst's conclusion minus the truth; empty where "
        "she was refused before. spent: answers from the holdout."
    ]
    return Outcome(NAME, size, {"Side by side": table.reset_index()}, numbers(results), picture(table), notes)


def numbers(results: pd.DataFrame) -> dict[str, Number]:
    """Return what is cited."""
    found = {}
    for (analyst, mechanism), rows in results.groupby(["analyst", "mechanism"], sort=False):
        key = f"{analyst} {mechanism}".replace(",", "").replace(".", "").replace(" ", "_").lower()
        found[f"error_{key}"] = mean_number(rows["error"])
        if mechanism != "plain reuse":  # which promises nothing
            found[f"width_{key}"] = mean_number(rows["half_width"])
            found[f"broken_{key}"] = share_number(rows["broken"])
        found[f"answered_{key}"] = mean_number(rows["answered"])
    return found


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds, one row for each analyst and mechanism."""
    order = {name: k for k, name in enumerate((*ANALYSTS, *MECHANISMS))}
    table = results.groupby(["analyst", "mechanism"], sort=False).agg(
        answered=("answered", "mean"),
        spent=("spent", "mean"),
        error=("error", "mean"),
        half_width=("half_width", "mean"),
        broken=("broken", "mean"),
        overfitting=("overfitting", "mean"),
        overfitting_se=("overfitting", "sem"),
        microseconds=("microseconds", "median"),
        sessions=("error", "size"),
    )
    return table.sort_index(key=lambda names: names.map(order))


def picture(table: pd.DataFrame) -> Any:
    """Draw largest errors and half-widths, one panel for each analyst; return the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    places = np.arange(len(MECHANISMS))
    for panel, analyst in zip(panels, ANALYSTS, strict=True):
        rows = table.loc[analyst].reindex(list(MECHANISMS))
        panel.barh(places, rows["half_width"], color="#0b6fa4", alpha=0.25, label="promised half-width")
        panel.plot(rows["error"], places, "D", color="#d95f02", markersize=5, label="largest error, mean of sessions")
        for place, answered in zip(places, rows["answered"], strict=True):
            panel.text(0.99, place, f"{answered:.0f}", ha="right", va="center", fontsize=8, color="#555555")
        panel.set_title(analyst, fontsize=10)
        panel.set_yticks(places, MECHANISMS)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].invert_yaxis()
    panels[0].set_xlim(0.0, 1.0)
    figure.supxlabel("distance from the truth (grey, at the right: queries answered)", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize="small")
    return figure
