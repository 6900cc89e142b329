"""The feature-selection experiment of Dwork et al. (2015): 10,000 records, 10,000 attributes, one reused holdout.

Training part and holdout have 10,000 records each, every attribute is standard normal, the label is a fair sign.
Without signal nothing is related to the label; with signal the mean of 20 attributes is shifted by 6/sqrt(n) in the
label's direction. The analyst is `thresholdout.simulation.FeatureSelectionAnalyst`: she asks for the correlation of
every attribute with the label on the holdout, keeps the attributes whose correlations agree, and asks for the accuracy
of the classifier that adds up the best k, k = 0, 10, ..., 500. She reuses the holdout as it is, or asks one guard for
everything. Two guards have the published T = 0.04 and sigma = 0.01, without a budget, the noises in the ratios of [D15]
or of [Z17]; products of label and attribute are clipped to [-4, 4]. These promise nothing. The third is what
`thresholdout.plan` makes for as many queries at confidence 0.95: it makes claims, by limits that need the means of
records only, and each of its answers has a certified interval. Accuracy on fresh data is measured on 10,000 more
records.

Every attribute is a row that is drawn, compared with the label and forgotten unless its correlation on the training
part exceeds the cut, so that a repetition needs neither the 800 MB of both parts nor a second look at them.
"""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.experiments.outcome import Number, Outcome, Size, mean_number
from thresholdout import plan
from thresholdout.mechanisms import (
    DWORK_RATIOS,
    ZHAO_RATIOS,
    ClaimsMechanism,
    ClaimsParameters,
    ClaimsState,
    Known,
    NoiseRatios,
    SparseVectorMechanism,
    SparseVectorParameters,
    SparseVectorState,
)
from thresholdout.mechanisms import Outcome as Answered
from thresholdout.noise.sources import SeededNoise
from thresholdout.simulation import FeatureSelectionAnalyst, run_experiment
from thresholdout.simulation.feature_selection import REACH, from_unit, to_unit

RECORDS, ATTRIBUTES, SHIFTED, SHIFT = 10_000, 10_000, 20, 6.0
LARGEST, STEP, BLOCK = 500, 10, 250
SIZES = range(0, LARGEST + 1, STEP)
THRESHOLD, SIGMA, CONFIDENCE = 0.04, 0.01, 0.95
NAME = "feature_selection"
NAIVE, PUBLISHED, LOUD, PLANNED = "plain reuse", "guard", "guard, louder answers", "guard, planned"
RATIOS: dict[str, NoiseRatios] = {PUBLISHED: DWORK_RATIOS, LOUD: ZHAO_RATIOS}
COLOURS = {NAIVE: "#d95f02", PUBLISHED: "#0b6fa4", LOUD: "#7fb3d5", PLANNED: "#1b7837"}
REPETITIONS: dict[Size, int] = {"tiny": 2, "quick": 10, "full": 100}
TINY = 600  # records and attributes

Floats32 = NDArray[np.float32]


class Drawn:
    """Both parts, of which only attributes that may be chosen are kept."""

    def __init__(self, rng: np.random.Generator, signal: bool, n: int, d: int) -> None:
        self.n, self.signal, self.rng = n, signal, rng
        self.labels = {part: rng.choice(np.array([-1, 1], dtype=np.float32), n) for part in ("train", "holdout")}
        self.train, self.holdout = np.zeros(d), np.zeros(d)
        cut = n**-0.5
        kept: dict[str, list[Floats32]] = {"train": [], "holdout": []}
        columns = []
        for first in range(0, d, BLOCK):
            block = np.arange(first, min(first + BLOCK, d))
            rows = {part: self.attributes(block, labels) for part, labels in self.labels.items()}
            self.train[block] = rows["train"] @ self.labels["train"] / n
            self.holdout[block] = rows["holdout"] @ self.labels["holdout"] / n
            chosen = np.abs(self.train[block]) >= cut
            columns.append(block[chosen])
            for part in kept:
                kept[part].append(rows[part][chosen])
        self.columns = np.concatenate(columns)
        self.kept = {part: np.concatenate(blocks) for part, blocks in kept.items()}

    def attributes(self, columns: NDArray[np.intp], labels: Floats32) -> Floats32:
        """Draw attributes, one in each row, clipped."""
        rows = self.rng.standard_normal((len(columns), self.n), dtype=np.float32)
        if self.signal:
            rows[columns < SHIFTED] += np.float32(SHIFT / math.sqrt(self.n)) * labels
        return np.clip(rows, -REACH, REACH, out=rows)

    def accuracies(self, part: str, columns: NDArray[np.intp], signs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the accuracy of the first 0, STEP, 2 STEP, ... columns together; "fresh" draws new records."""
        if part == "fresh":
            labels = self.rng.choice(np.array([-1, 1], dtype=np.float32), self.n)
            rows = self.attributes(columns, labels)
        else:
            labels, rows = self.labels[part], self.kept[part][np.searchsorted(self.columns, columns)]
        total = np.zeros(self.n, dtype=np.float32)
        found = []
        for size in SIZES:
            if size:
                chosen = slice(size - STEP, size)
                total += signs[chosen].astype(np.float32) @ rows[chosen]
            found.append(np.mean(np.where(total >= 0, 1, -1) == labels))
        return np.array(found)


class Guard:
    """One guard for all queries, whose values are in [0, 1] already."""

    def __init__(self, parameters: SparseVectorParameters, seed: int) -> None:
        self.mechanism = SparseVectorMechanism(parameters)
        self.noise = SeededNoise(seed)
        self.state: SparseVectorState | ClaimsState = self.mechanism.start(self.noise)
        self.widths: list[float] = []

    def ask(
        self, train: NDArray[np.float64], holdout: NDArray[np.float64], variance: float | None = None
    ) -> NDArray[np.float64]:
        """Answer many queries, in order; the variance of a value is for guards that make claims."""
        answers, self.widths = [], []
        for t, h in zip(train.tolist(), holdout.tolist(), strict=True):
            outcome = self.step(t, h, variance)
            answers.append(outcome.value)
            low, high = outcome.interval or (-math.inf, math.inf)
            self.widths.append((high - low) / 2)
        return np.array(answers)

    def step(self, train: float, holdout: float, variance: float | None) -> Answered:
        """Answer one query."""
        assert isinstance(self.state, SparseVectorState)
        self.state, outcome = self.mechanism.step(self.state, train, holdout, self.noise)
        return outcome


class ClaimingGuard(Guard):
    """A guard that makes claims."""

    def __init__(self, n: int, d: int, seed: int) -> None:
        planned = plan(n, queries=d + len(SIZES), anticipated_score=0.5, confidence=CONFIDENCE).parameters
        assert isinstance(planned, ClaimsParameters)
        self.claims = ClaimsMechanism(
            dataclasses.replace(planned, effective=float(n)), n
        )  # limits that need means only
        self.noise = SeededNoise(seed)
        self.state = self.claims.start(self.noise)
        self.widths = []

    def step(self, train: float, holdout: float, variance: float | None) -> Answered:
        """Answer one query."""
        assert isinstance(self.state, ClaimsState)
        value = self.claims.read([holdout], 1, (0.0, 1.0), "holdout", Known(variance=variance))
        self.state, outcome = self.claims.step(self.state, train, value, self.noise)
        return outcome


def ask_correlations(
    name: str, n: int, seed: int, correlations: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> tuple[Guard, NDArray[np.float64]]:
    """Make a guard, and ask it for all correlations."""
    if name == PLANNED:
        guard: Guard = ClaimingGuard(n, len(correlations[0]), seed)
    else:  # published threshold and noise are in the units of correlations
        sigma, threshold = SIGMA / (2 * REACH), THRESHOLD / (2 * REACH)
        guard = Guard(SparseVectorParameters(threshold, sigma, None, None, None, RATIOS[name]), seed)
    train, holdout = map(to_unit, correlations)
    return guard, from_unit(guard.ask(train, holdout, 1.0 / (2 * REACH) ** 2))


def ask_accuracies(
    name: str, guard: Guard, train: NDArray[np.float64], holdout: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Ask a guard for accuracies: for a published one in the units of correlations, as T and sigma are."""
    if name == PLANNED:
        return guard.ask(train, holdout)
    return from_unit(guard.ask(to_unit(train), to_unit(holdout)))


def repetition(rng: np.random.Generator, signal: bool, n: int = RECORDS, d: int = ATTRIBUTES) -> list[dict[str, Any]]:
    """Run the analyst once with each way of answering, all on the same data."""
    start = time.process_time()
    analyst = FeatureSelectionAnalyst(SIZES)
    data = Drawn(rng, signal, n, d)
    rows: list[dict[str, Any]] = []
    for name in COLOURS:
        guard, answers = None, data.holdout
        if name != NAIVE:
            guard, answers = ask_correlations(name, n, int(rng.integers(2**62)), (data.train, data.holdout))
        columns, signs = analyst.select(data.train, answers, n**-0.5)
        train, holdout, fresh = (data.accuracies(part, columns, signs) for part in ("train", "holdout", "fresh"))
        reported = holdout if guard is None else ask_accuracies(name, guard, train, holdout)
        hits = math.nan if guard is None else guard.state.hits
        widths = [math.inf] * len(SIZES) if guard is None else guard.widths
        rows += [
            {"answers": name, "k": size, "train": t, "reported": r, "fresh": f, "hits": hits, "width": w}
            for size, t, r, f, w in zip(SIZES, train, reported, fresh, widths, strict=True)
        ]
    seconds = time.process_time() - start
    return [{**row, "seconds": seconds} for row in rows]


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all repetitions; see the module's docstring."""
    records = TINY if size == "tiny" else RECORDS
    grid: dict[str, list[Any]] = {"signal": [False, True], "n": [records], "d": [records]}
    results = run_experiment(repetition, grid, REPETITIONS[size], folder=folder, n_jobs=jobs)
    results["optimism"] = results["reported"] - results["fresh"]
    groups = results[results["k"].isin([100, 300, LARGEST])].groupby(["signal", "answers", "k"], sort=False)
    table = groups.agg(
        train=("train", "mean"),
        reported=("reported", "mean"),
        reported_sd=("reported", "std"),
        fresh=("fresh", "mean"),
        optimism=("optimism", "mean"),
        optimism_se=("optimism", "sem"),
        answers_from_holdout=("hits", "mean"),
    ).reset_index()
    width = float(results.loc[(results["answers"] == PLANNED) & (results["k"] == LARGEST), "width"].mean())
    notes = [
        f"{REPETITIONS[size]} repetitions, n = d = {records:,}. The planned guard certifies all its answers at once, "
        f"at confidence {CONFIDENCE} for {records + len(SIZES):,} queries, the accuracy of {LARGEST} attributes "
        f"within {width:.3f}; the other guards certify nothing.",
        f"One repetition with all four: {results['seconds'].mean():.1f} s of processor time on one core.",
    ]
    return Outcome(NAME, size, {"Feature selection": table}, numbers(results, width), picture(results, width), notes)


def numbers(results: pd.DataFrame, width: float) -> dict[str, Number]:
    """Return what is cited."""
    last = results[results["k"] == LARGEST]
    found = {"planned_width": Number(width), "seconds": mean_number(results["seconds"].iloc[:: len(SIZES)])}
    for name, short in {NAIVE: "naive", PUBLISHED: "guard", LOUD: "loud", PLANNED: "planned"}.items():
        for signal, ending in ((False, ""), (True, "_signal")):
            rows = last[(last["answers"] == name) & (last["signal"] == signal)]
            for quantity in ("optimism", "reported", "fresh"):
                found[f"{quantity}_{short}{ending}"] = mean_number(rows[quantity])
    return found


def picture(results: pd.DataFrame, width: float) -> Any:
    """Draw reported and fresh accuracy against the number of attributes, one panel for each way of answering."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.4), layout="constrained")
    panels = figure.subplots(2, len(COLOURS), sharex=True, sharey=True)
    for row, signal in zip(panels, (False, True), strict=True):
        for panel, (name, colour) in zip(row, COLOURS.items(), strict=True):
            chosen = results[(results["answers"] == name) & (results["signal"] == signal)].groupby("k")
            mean, spread = chosen["reported"].mean(), chosen["reported"].std()
            panel.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
            panel.plot(mean.index, mean, color=colour, label="reported (mean, standard deviation)")
            panel.plot(mean.index, chosen["fresh"].mean(), color="black", linewidth=1, label="fresh records")
            panel.plot(mean.index, chosen["train"].mean(), color="#999999", linestyle=":", label="training part")
            panel.spines[["top", "right"]].set_visible(False)
            if not signal:
                panel.set_title(name if name != PLANNED else f"{name}: ± {width:.3f}", fontsize=10)
        row[0].set_ylabel(f"accuracy, {'with' if signal else 'without'} signal")
    panels[0, 0].set_ylim(0.45, 0.75)
    figure.supxlabel("attributes in the classifier, k", fontsize=10)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    return figure
