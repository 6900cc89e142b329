"""Pictures of how each mechanism works: ``python docs/how_pictures.py`` draws them into ``docs/how/pictures``.

Guards in pictures are real ones, asked about simulated models whose truths are known, with noise from a seed. Whoever
changes a mechanism draws its picture again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import binomtest

from graphs import Groups
from thresholdout import SparseVector, Thresholdout
from thresholdout.plotting import BLUE, GREY, ORANGE

FOLDER = Path(__file__).parent / "how" / "pictures"
GREEN = "#2a7f3f"
"""Blue is what a guard says, orange what comes from the holdout, green the truth, grey the training part."""

Floats = NDArray[np.float64]


def models(n: int, queries: int, seed: int) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Draw truths of models, who of the holdout each is right about, and training values from as many records."""
    rng = np.random.default_rng(seed)
    truths = rng.uniform(0.7, 0.85, queries)
    right = rng.random((queries, n)) < truths[:, None]
    train = (rng.random((queries, n)) < truths[:, None]).mean(axis=1)
    return truths, right, train


def opened(n: int, **settings: Any) -> Thresholdout:
    """Open a guard over records that are their numbers, with repeatable noise."""
    records = np.arange(float(2 * n))
    return Thresholdout(records[:n], train=records[n:], random_state=3, **settings)


def panels(*shape: int, height: float = 3.2, **settings: Any) -> Any:
    """Return a figure's axes."""
    found = Figure(figsize=(8.0, height), layout="constrained").subplots(*shape, **settings)
    for ax in np.atleast_1d(found).ravel():
        ax.spines[["top", "right"]].set_visible(False)
    return found


def told(ax: Any, answers: list[Any], truths: Floats) -> None:
    """Draw intervals, values and truths of answers."""
    places = np.arange(1, len(answers) + 1)
    ax.vlines(places, *np.array([answer.interval for answer in answers]).T, color=BLUE, lw=5, alpha=0.35)
    for source, colour, words in (("train", BLUE, "answer"), ("holdout", ORANGE, "answer from the holdout")):
        some = [answer.source == source for answer in answers]
        if any(some):
            ax.plot(places[some], [a.value for a in np.array(answers)[some]], "o", color=colour, ms=6, label=words)
    ax.plot(places, truths, "_", color=GREEN, ms=13, mew=2, label="truth, which nobody sees")
    ax.set_xticks(places)
    ax.set_xlabel("query")


def claims() -> Any:
    """Draw eight claims, one of which fails, and what is left of the probability of error."""
    n, queries = 2000, 8
    truths, right, train = models(n, queries, 4)
    train[4] = truths[4] + 0.09  # a model that knows its training records
    guard, answers, left = opened(n), [], [0.05]
    for value, values in zip(train, right, strict=True):
        answers.append(guard.ask(float(value), values, binary=True))
        left.append(float(np.exp(guard.history["log_error_budget"].iloc[-1])))
    above, below = panels(2, 1, height=4.6, sharex=True, height_ratios=[3, 1])
    told(above, answers, truths)
    above.plot(np.arange(1, queries + 1), train, "x", color=GREY, ms=7, mew=2, label="training value")
    above.text(4.9, train[4], "the first claim failed", color=GREY, ha="right", va="center")
    above.set(xlabel="", ylabel="accuracy")
    above.legend(frameon=False, fontsize="small", ncols=2, loc="upper left")
    above.set_ylim(top=above.get_ylim()[1] + 0.06)
    below.step(np.arange(queries + 1), left, where="post", color=BLUE)
    below.set(yscale="log", ylabel="risk left", xlabel="query")
    return above


def algorithm_1() -> Any:
    """Draw gaps between training part and holdout, against a noisy threshold."""
    n, queries = 10_000, 12
    _, right, train = models(n, queries, 5)
    train[[3, 8]] += [0.12, -0.1]
    guard = opened(n, mechanism=SparseVector(0.05, 0.002, budget=3), queries=queries)
    sources = [guard.ask(float(t), values, binary=True).source for t, values in zip(train, right, strict=True)]
    gaps = np.abs(train - right.mean(axis=1))
    ax = panels()
    ax.bar(np.arange(1, queries + 1), gaps, width=0.55, color=[ORANGE if s == "holdout" else GREY for s in sources])
    ax.axhline(0.05, color=BLUE)
    ax.axhspan(0.05 - 0.006, 0.05 + 0.006, color=BLUE, alpha=0.15, lw=0)
    ax.text(queries + 0.5, 0.06, "threshold with noise", ha="right", color=BLUE)
    for place in np.flatnonzero([s == "holdout" for s in sources]):
        ax.text(place + 1, gaps[place] + 0.003, "holdout's value + noise", ha="center", color=ORANGE)
    ax.text(4.6, 0.022, "below: the training value, for nothing", color=GREY)
    ax.set(xlabel="query", ylabel="|training value - holdout's value|", ylim=(0, 0.16))
    ax.set_xticks(np.arange(1, queries + 1))
    return ax


def ladder() -> Any:
    """Draw what a leaderboard shows of thirty submissions."""
    n, queries = 2000, 30
    rng = np.random.default_rng(7)
    truths = 0.6 + 0.22 * (1 - np.exp(-np.arange(queries) / 12)) + 0.03 * rng.standard_normal(queries)
    right = rng.random((queries, n)) < truths[:, None]
    guard = opened(n, mechanism="ladder")
    answers = [guard.ask(0.6, values, binary=True) for values in right]
    ax = panels(height=3.6)
    places = np.arange(1, queries + 1)
    low, high = np.array([answer.interval for answer in answers]).T
    ax.fill_between(places, low, high, step="post", color=BLUE, alpha=0.15, lw=0, label="certified for the best so far")
    ax.step(places, [answer.value for answer in answers], where="post", color=BLUE, label="what the leaderboard shows")
    ax.step(places, np.maximum.accumulate(truths), where="post", color=GREEN, lw=1, label="truth of the best so far")
    ax.plot(places, right.mean(axis=1), ".", color=ORANGE, label="holdout's value, which nobody sees")
    ax.set(xlabel="submission", ylabel="accuracy")
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def final_check() -> Any:
    """Draw the intervals of a search, and of the last look at the model that it chose."""
    n, queries = 1000, 20
    truths, right, train = models(n, queries, 9)
    y = np.random.default_rng(0).integers(0, 2, 2 * n)
    X = np.arange(float(2 * n))[:, None]
    guard = Thresholdout((X[:n], y[:n]), train=(X[n:], y[n:]), final_check=True, random_state=3)
    answers = [guard.ask(float(t), values, binary=True) for t, values in zip(train, right, strict=True)]
    best = int(np.argmax([answer.value for answer in answers]))

    class Chosen:
        classes_ = np.array([0, 1])

        def predict(self, rows: Floats) -> Any:
            which = rows[:, 0].astype(int)
            well = np.r_[right[best], np.arange(n) < train[best] * n][which]
            return np.where(well, y[which], 1 - y[which])

    last = guard.final_check(Chosen(), cv="training")
    alone = binomtest(int(right[best].sum()), n).proportion_ci(0.95, method="exact")
    ax = panels()
    told(ax, answers, truths)
    for place, interval, colour, words in (
        (queries + 2, last.interval, ORANGE, "final check"),
        (queries + 3.5, alone, GREY, "one exact look, no search"),
    ):
        ax.vlines(place, *interval, color=colour, lw=5, alpha=0.6)
        ax.text(place, interval[0] - 0.012, words, rotation=90, ha="center", va="top", fontsize="small", color=colour)
    ax.plot(queries + 2, truths[best], "_", color=GREEN, ms=13, mew=2)
    ax.set_xticks([1, 5, 10, 15, 20])
    ax.set(ylabel="accuracy", ylim=(0.55, None))
    ax.legend(frameon=False, fontsize="small", loc="lower left", ncols=2)
    return ax


def gates() -> Any:
    """Draw proposals: what cross-validation turns down, what the holdout is asked about, and what is kept."""
    n, rng = 4000, np.random.default_rng(12)
    y = rng.integers(0, 2, 2 * n)
    X, hard = np.arange(float(2 * n))[:, None], rng.random(2 * n)

    class Model:
        classes_ = np.array([0, 1])

        def __init__(self, truth: float) -> None:
            self.truth = truth
            self.right = np.where(rng.random(2 * n) < 0.95, hard, rng.random(2 * n)) < truth

        def predict(self, rows: Floats) -> Any:
            which = rows[:, 0].astype(int)
            return np.where(self.right[which], y[which], 1 - y[which])

    settings: dict[str, Any] = {"sampling": "iid", "random_state": 3}
    guard = Thresholdout((X[:n], y[:n]), train=(X[n:], y[n:]), **settings)
    champion = 0.7
    gate = guard.gate(Model(champion))
    ax = panels(height=3.4)
    path, words = [champion], set()
    for step in range(1, 41):
        truth = min(champion + float(rng.normal(-0.005, 0.025)), 0.95)
        decision = gate.propose(Model(truth), cv="training", key=f"proposal {step}")
        champion = truth if decision else champion
        path.append(champion)
        rejected = "rejected for nothing" if decision.cost == 0 else "looked at, rejected"
        kind = "kept, certified" if decision else rejected
        colour = {"kept, certified": BLUE, "rejected for nothing": GREY, "looked at, rejected": ORANGE}[kind]
        ax.plot(step, truth, "o", color=colour, ms=6, label=None if kind in words else kind)
        words.add(kind)
    ax.step(np.arange(len(path)), path, where="post", color=BLUE, lw=1.5, label="champion")
    ax.set(xlabel="proposal", ylabel="true accuracy")
    ax.legend(frameon=False, fontsize="small", loc="lower right", ncols=2)
    return ax


def kfold() -> Any:
    """Draw how every record is tested once, by a model that was fitted without its group."""
    left, other = panels(1, 2, height=2.8, width_ratios=[3, 2])
    folds = 4
    for model in range(folds):
        for fold in range(folds):
            tested = model == fold
            left.barh(-model, 1, left=fold, height=0.7, color=ORANGE if tested else GREY, alpha=0.8 if tested else 0.3)
            if tested:
                left.text(fold + 0.5, -model, "tested", ha="center", va="center", fontsize="small")
    left.barh(-folds - 0.4, folds, height=0.7, color=BLUE, alpha=0.35)
    left.text(folds / 2, -folds - 0.4, "one claim about all out-of-fold values", ha="center", va="center")
    left.set_yticks([-k for k in range(folds)], [f"model {k + 1}" for k in range(folds)])
    left.set_xticks([k + 0.5 for k in range(folds)], [f"fold {k + 1}" for k in range(folds)])
    left.spines[["left", "bottom"]].set_visible(False)
    left.tick_params(length=0)
    counts = np.array([2, 3, 4, 5, 8, 10])
    other.plot(counts, 1000 / counts, "o-", color=BLUE, label="single records")
    pairs = Groups(np.repeat(np.arange(500), 2)).variance_inflation()
    other.plot(counts, 1000 / counts / pairs, "o-", color=ORANGE, label="groups of two")
    other.set(xlabel="folds", ylabel="worth of 1,000 records")
    other.legend(frameon=False, fontsize="small")
    return left


PICTURES: dict[str, Callable[[], Any]] = {
    "claims": claims,
    "algorithm-1": algorithm_1,
    "ladder": ladder,
    "final-check": final_check,
    "gates": gates,
    "kfold": kfold,
}


def draw(names: list[str], folder: Path = FOLDER) -> None:
    """Draw pictures into a folder, the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "thresholdout", "svg.fonttype": "none", "font.size": 10}):
        for name in names:
            PICTURES[name]().figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(sys.argv[1:] or list(PICTURES))
