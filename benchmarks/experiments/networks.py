"""Eight networks under attack, declared three ways, and the warnings that training labels cause.

The holdout and the training part have 2,000 records each, two draws of the same model, and labels 0 and 1 of
probability 1/2. An analyst who knows the network queries the share of positive labels in all records and in 30 regions,
then the classifier that says the side to which each region leans (`thresholdout.simulation.ClusterAnalyst`). The truth
of every query is 1/2. Three guards answer on the same data, each with the parameters of `plan` for 32 queries at
confidence 0.95:

- "declared": one for the true model,
- "too weak": one for a declaration that leaves some dependence out (edges alone, a window of 1, groups of half the
  size),
- "independent": one for independent records.

A session is broken if the truth is outside some answer's interval. Warned says whether the guard's check of training
labels (`thresholdout.guard.label_check`) warns. The check compares records that the declaration calls independent, at
places that the declaration chooses. A declaration of independent records chooses none, and no check runs: the order of
rows says little, since files sorted by class show the same as a series.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pandas as pd

from benchmarks.experiments.outcome import Number, Outcome, Size, share_limits
from graphs import (
    BayesianNetwork,
    DependenceModel,
    DependencyGraph,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    MarkovField,
    MovingWindow,
)
from thresholdout import SeededNoise, plan
from thresholdout.guard.label_check import beyond_declared
from thresholdout.simulation import ClusterAnalyst, SimulatedGuard, interview, run_experiment
from thresholdout.simulation.simulated_session import Part
from thresholdout.simulation.strategic import around_hubs

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

NAME = "networks"
RECORDS, REGIONS, CONFIDENCE = 2_000, 30, 0.95
QUERIES: Final = REGIONS + 2
GROUP: Final = 20  # records of a group, and records that a window joins
ROWS: Final = 4  # of the grid: its labels are sampled exactly by elimination of one column after the other
KINDS: Final = (
    "chain, gap 0.01",
    "chain, gap 0.1",
    "Ising tree",
    "Ising grid",
    "two parents",
    "hidden chain",
    "groups",
    "window",
)
WAYS: Final = ("declared", "too weak", "independent")
SEEDS: dict[Size, int] = {"tiny": 1, "quick": 10, "full": 200}


@cache
def network(kind: str) -> nx.Graph[int]:
    """Return the edges of a Markov network, or of the network with two parents."""
    import networkx as nx

    if kind == "Ising tree":
        return nx.Graph(nx.barabasi_albert_graph(RECORDS, 1, seed=1))
    if kind == "Ising grid":
        return nx.convert_node_labels_to_integers(nx.grid_2d_graph(RECORDS // ROWS, ROWS), ordering="sorted")
    rng = np.random.default_rng(1)
    found: nx.DiGraph[int] = nx.DiGraph()
    found.add_nodes_from(range(RECORDS))
    for node in range(1, RECORDS):
        above = rng.choice(np.arange(max(0, node - 10), node), min(2, node), replace=False)
        found.add_edges_from((int(parent), node) for parent in above)
    return found


@cache
def model(kind: str) -> DependenceModel:
    """Return the true model; labels 0 and 1 have probability 1/2 in each of them."""
    if kind.startswith("chain"):
        return MarkovChain(_two_states(float(kind.rpartition(" ")[2])), n=RECORDS)
    if kind == "hidden chain":
        return HiddenMarkov(_two_states(0.02), n=RECORDS, emission=[[0.9, 0.1], [0.1, 0.9]])
    if kind == "Ising tree":
        return MarkovField.ising(network(kind), math.atanh(0.6))
    if kind == "Ising grid":
        return MarkovField.ising(network(kind), 0.3)
    if kind == "two parents":
        graph = cast("nx.DiGraph[int]", network(kind))
        laws = {node: _law(tuple(graph.predecessors(node))) for node in graph}
        return BayesianNetwork(graph, laws)
    if kind == "groups":
        return Groups(np.arange(RECORDS) // GROUP)
    return MovingWindow(RECORDS, GROUP)


def _two_states(gap: float) -> list[list[float]]:
    return [[1 - gap / 2, gap / 2], [gap / 2, 1 - gap / 2]]


def _law(parents: tuple[int, ...]) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """Return the law of a node: 1 has probability 0.1 where all parents are 0, 0.9 where all are 1."""
    ones = np.full((), 0.5)
    if parents:
        ones = 0.1 + 0.8 / len(parents) * np.indices((2,) * len(parents)).sum(axis=0)
    return parents, np.stack([1 - ones, ones], axis=-1)


@cache
def too_weak(kind: str) -> DependenceModel:
    """Return a declaration that leaves some dependence out."""
    import networkx as nx

    if kind in ("Ising tree", "Ising grid", "two parents"):
        return DependencyGraph(nx.Graph(network(kind)))
    if kind == "groups":
        return Groups(np.arange(RECORDS) // (GROUP // 2))
    return MovingWindow(RECORDS, 1)


@cache
def declaration(kind: str, way: str) -> DependenceModel:
    """Return the model that a guard is told."""
    if way == "independent":
        return Independent(RECORDS)
    return model(kind) if way == "declared" else too_weak(kind)


@cache
def guard(kind: str, way: str) -> SimulatedGuard:
    """Return the planned guard."""
    assumed = declaration(kind, way)
    parameters = plan(assumed, queries=QUERIES, confidence=CONFIDENCE).parameters
    return SimulatedGuard(parameters, assumed, SeededNoise(0), CONFIDENCE)


@cache
def regions(kind: str) -> NDArray[np.int64]:
    """Return the region of each record."""
    return around_hubs(network(kind), REGIONS) if kind == "Ising tree" else np.arange(RECORDS) * REGIONS // RECORDS


def drawn(rng: np.random.Generator, kind: str) -> Part:
    """Draw labels; the analyst has no use for features."""
    return Part(np.zeros((RECORDS, 1)), np.asarray(model(kind).sample(rng)) > 0)


def warned(labels: NDArray[np.bool_], kind: str, way: str) -> bool:
    """Whether the check of training labels warns."""
    declared = declaration(kind, way)
    groups = np.arange(RECORDS) // (GROUP if way == "declared" else GROUP // 2) if kind == "groups" else None
    series = declared if isinstance(declared, MovingWindow) else None
    return beyond_declared(labels, declared, declared, groups, np.arange(RECORDS), series) != ""


def session(rng: np.random.Generator, kind: str) -> list[dict[str, Any]]:
    """Let the analyst query all three guards on the same data."""
    train, holdout = drawn(rng, kind), drawn(rng, kind)
    who = ClusterAnalyst(regions(kind), largest=REGIONS)
    rows = []
    for way in WAYS:
        mechanism = guard(kind, way).renewed(SeededNoise(int(rng.integers(2**62))))
        found = interview(who, mechanism, train, holdout, rng, truth=0.5)
        row = {"way": way, "half_width": found.promised, "error": found.largest_error, "broken": found.broken}
        rows.append(row | {"warned": warned(train.labels, kind, way)})
    return rows


def run(size: Size, jobs: int, folder: Path | None) -> Outcome:
    """Run all sessions; see the module's docstring."""
    kinds = KINDS if size != "tiny" else KINDS[1:2]
    results = run_experiment(session, {"kind": kinds}, SEEDS[size], folder=folder, n_jobs=jobs)
    table = summarised(results)
    notes = [
        f"{RECORDS:,} records, {SEEDS[size]} sessions of each network, {QUERIES} queries, confidence {CONFIDENCE}."
    ]
    return Outcome(NAME, size, {"Networks under attack": table}, numbers(results), picture(table), notes)


def summarised(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each network and declaration."""
    rows = []
    for (kind, way), group in results.groupby(["kind", "way"], sort=False):
        row: dict[str, Any] = {"network": kind, "declaration": way, "half_width": group["half_width"].mean()}
        row |= {"mean_error": group["error"].mean(), "sessions": len(group), "broken": int(group["broken"].sum())}
        rows.append(row | {"warned": int(group["warned"].sum())})
    return pd.DataFrame(rows)


def numbers(results: pd.DataFrame) -> dict[str, Number]:
    """Return counts over all networks."""
    found = {"sessions": Number(float((results["way"] == WAYS[0]).sum()))}
    for way in WAYS:
        rows = results[results["way"] == way]
        name = way.replace(" ", "_")
        found[f"broken_{name}"] = Number(float(rows["broken"].sum()))
        found[f"warned_{name}"] = Number(float(rows["warned"].sum()))
        found[f"unseen_{name}"] = Number(float((rows["broken"] & ~rows["warned"]).sum()))
    found["at_most_declared"] = Number(
        share_limits(int(found["broken_declared"].value), int(found["sessions"].value))[1]
    )
    return found


def picture(table: pd.DataFrame) -> Any:
    """Draw broken sessions and warnings of each network and declaration."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    colours = {"declared": "#0b6fa4", "too weak": "#e6ab02", "independent": "#d95f02"}
    kinds = list(dict.fromkeys(table["network"]))
    for panel, column, title in zip(
        panels, ("broken", "warned"), ("share of broken sessions", "share of sessions with a warning"), strict=True
    ):
        for shift, way in enumerate(WAYS):
            rows = table[table["declaration"] == way].set_index("network").loc[kinds]
            panel.barh(np.arange(len(kinds)) + 0.27 * (shift - 1), rows[column] / rows["sessions"], 0.25,
                       color=colours[way], label=way)  # fmt: skip
        panel.set_xlim(0.0, 1.0)
        panel.set_xlabel(title)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(np.arange(len(kinds)), kinds)
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure
