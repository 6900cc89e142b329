"""Budgets for Bayesian differential privacy by every route, beside the exact ones of linear programs.

Five small models, one of each kind that states its law: a chain, a tree, a cycle, a network with tables, a hidden
chain. The exact budget is the largest epsilon of a mechanism, per record, at which no adversary gains more than the
target about any record: an adversary knows any set of other records, and each of them is a linear program
(`graphs.exact_leakage`). Larger models stand beside: there only the routes are known. Nothing here is random.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from benchmarks.experiments.outcome import Number, Outcome, Size
from graphs import BayesianNetwork, DependenceModel, HiddenMarkov, MarkovChain, MarkovField, exact_leakage
from graphs.plotting import plot_graph
from thresholdout.simulation import run_experiment

NAME = "budgets"
TARGET = 0.5
STEPS = 20  # of bisection: to a millionth of the target
BLUE, ORANGE, GREEN = "#0b6fa4", "#d95f02", "#1b9e77"
ROUTES = {"group": "group", "quilt": "Lemma 2, half of its constant", "best": "best"}

CLUB: nx.Graph[int] = nx.Graph(nx.karate_club_graph().edges)  # without the weights of its edges
SMALL = ("chain of 4", "star of 5", "cycle of 4", "network of 4", "hidden chain of 4")
LARGE = ("chain of 1,000", "tree of 1,000", "grid of 10 by 10", "karate club", "hidden chain of 1,000")


def model(name: str) -> DependenceModel:
    """Return a model by its name."""
    half, sticky = [[0.75, 0.25], [0.25, 0.75]], [[0.9, 0.1], [0.1, 0.9]]
    seen = [[0.8, 0.2], [0.3, 0.7]]
    match name:
        case "chain of 4" | "chain of 1,000":
            return MarkovChain(half, n=4 if name in SMALL else 1000)
        case "star of 5":
            return MarkovField.ising(nx.star_graph(4), 0.2)
        case "tree of 1,000":
            return MarkovField.ising(nx.random_labeled_tree(1000, seed=1), 0.2)
        case "cycle of 4":
            return MarkovField.ising(nx.cycle_graph(4), 0.2)
        case "grid of 10 by 10":
            return MarkovField.ising(nx.grid_2d_graph(10, 10), 0.2)
        case "karate club":
            return MarkovField.ising(CLUB, 0.05)
        case "network of 4":
            graph = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
            both = [[[0.7, 0.3], [0.5, 0.5]], [[0.5, 0.5], [0.3, 0.7]]]
            return BayesianNetwork(graph, {"a": [0.5, 0.5], "b": [0.6, 0.4], "c": both, "d": half})
        case _:
            return HiddenMarkov(sticky, emission=seen, n=4 if name in SMALL else 1000)


def worst(law: Any, epsilon: float, adversaries: list[tuple[int, tuple[int, ...]]]) -> tuple[float, Any]:
    """Return the largest exact leakage over adversaries, and which of them has it."""
    return max((exact_leakage(law, epsilon, record, known), (record, known)) for record, known in adversaries)


def exact_budget(law: Any, informed: bool) -> float:
    """Return the largest epsilon at which no adversary gains more than the target, to a millionth of it.

    The adversary who gains most at one epsilon bounds the budget from above; whoever gains more there takes its place.
    """
    n = law.ndim
    adversaries = [
        (record, known)
        for record in range(n)
        for size in range(n if informed else 1)
        for known in itertools.combinations([j for j in range(n) if j != record], size)
    ]
    _, first = worst(law, TARGET / n, adversaries)
    while True:
        low, high = 0.0, TARGET
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if exact_leakage(law, middle, *first) <= TARGET else (low, middle)
        gain, another = worst(law, low, adversaries)
        if gain <= TARGET * (1 + 1e-5):
            return low
        first = another


def budgets(rng: np.random.Generator, network: str, informed: bool) -> dict[str, Any]:
    """Return the budget of a model by every route, and the exact one where it is small."""
    found = model(network)
    table = found.explain(TARGET)
    sound, published = table[~table["published"]], table[table["published"]]
    return {
        "group": float(table["budget"].get("group", np.nan)),
        "quilt": float(table["budget"].get("quilt", np.nan)),
        "best": float(sound["budget"].max()),
        "route": str(sound["budget"].idxmax()),
        "published": float(published["budget"].max()) if len(published) else None,
        "exact": exact_budget(np.asarray(found.joint()), informed) if network in SMALL else None,
    }


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Compute all budgets; see the module's docstring. The tiny size asks adversaries who know nothing only."""
    grid: dict[str, list[Any]] = {"network": [*SMALL, *LARGE], "informed": [size != "tiny"]}
    results = run_experiment(budgets, grid, 1, folder=folder, n_jobs=jobs)
    table = results.drop(columns=["seed", "informed"])
    table["exact / best"] = table["exact"] / table["best"]
    return Outcome(NAME, size, {f"Budgets for a leakage of {TARGET} nats": table}, numbers(table), picture(table), [])


def numbers(table: pd.DataFrame) -> dict[str, Number]:
    """Return what is cited: the budgets that there are, and both ends of the ratios."""
    found = {}
    for row in table.to_dict("records"):
        name = str(row["network"]).replace(" ", "_").replace(",", "")
        for route in ("group", "quilt", "published", "best", "exact"):
            if not pd.isna(row[route]):  # hidden chains have no quilts, large models no exact budget
                found[f"{route}_{name}"] = Number(float(row[route]))
    found["least_ratio"] = Number(float(table["exact / best"].min()))
    found["largest_ratio"] = Number(float(table["exact / best"].max()))
    return found


def picture(table: pd.DataFrame) -> Any:
    """Draw the budgets of each route, and the leakage of each member of the karate club over its graph."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 9.0), layout="constrained")
    axes, below = figure.subplots(2, 1)
    places = np.arange(len(table))
    for shift, (column, colour, name) in enumerate(
        (("published", ORANGE, "published (Lemmas 2 to 4)"), ("best", BLUE, "best route"), ("exact", GREEN, "exact"))
    ):
        axes.barh(places + 0.27 * (shift - 1), table[column].astype(float), 0.25, color=colour, label=name)
    axes.set_yticks(places, table["network"])
    axes.invert_yaxis()
    axes.set_xlabel(f"epsilon per record that leaks at most {TARGET} nats")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    plot_graph(CLUB, model("karate club").leakage(TARGET / 2), below)
    below.set_title(f"karate club: leakage about each member at epsilon {TARGET / 2:g} per record")
    return figure
