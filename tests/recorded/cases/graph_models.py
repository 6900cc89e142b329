"""What dependence models say: leakages, budgets, inflations, samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from graphs import (
    ArgumentError,
    BayesianNetwork,
    CategoricalEmission,
    Communities,
    DependenceModel,
    DependencyGraph,
    FactorGraph,
    GaussianEmission,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    MarkovField,
    MovingWindow,
    RouteUnavailable,
    exact_leakage,
    pedigree,
)
from graphs.estimation.pseudo_likelihood import fit_ising, fit_potts
from graphs.model import Adversary
from graphs.models.baum_welch import baum_welch
from graphs.models.out_of_fold import OutOfFold
from tests.recorded.cases.registry import Cases

CASES = Cases()

TWO = [[0.9, 0.1], [0.2, 0.8]]
THREE = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.2, 0.5]]
MILD = [[0.6, 0.4], [0.45, 0.55]]
WET = [[[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.05, 0.95]]]
EVEN = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])


def _wet() -> BayesianNetwork:
    graph = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet")])
    return BayesianNetwork(graph, {"rain": [0.8, 0.2], "sprinkler": [0.7, 0.3], "wet": WET})


def _family() -> BayesianNetwork:
    trios = {"a": ("f", "m"), "b": ("f", "m"), "c": ("a", None)}
    return pedigree(trios, 0.1)


MODELS: dict[str, Callable[[], DependenceModel]] = {
    "independent": lambda: Independent(7),
    "groups": lambda: Groups(["a", "b", "a", "c", "c", "c", "d", "a"]),
    "groups of one size": lambda: Groups([k // 4 for k in range(12)]),
    "moving window": lambda: MovingWindow(14, 2),
    "moving window as long as the records": lambda: MovingWindow(5, 4),
    "dependency graph, path": lambda: DependencyGraph(nx.path_graph(9)),
    "dependency graph, grid": lambda: DependencyGraph(nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))),
    "chain of two states": lambda: MarkovChain(TWO, 12),
    "chain of three states": lambda: MarkovChain(THREE, 10),
    "chain from a state": lambda: MarkovChain(TWO, 8, initial=[1.0, 0.0]),
    "chain with zeros": lambda: MarkovChain([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.6, 0.4]], 9),
    "mild chain": lambda: MarkovChain(MILD, 40),
    "fitted chain": lambda: MarkovChain.fit("aabbbababbbaaabbabab", "abbabbbaaab", n=15, smoothing=0.5),
    "hidden chain": lambda: HiddenMarkov(TWO, 9),
    "hidden chain, categories": lambda: HiddenMarkov(TWO, 9, emission=MILD),
    "hidden chain, three symbols": lambda: HiddenMarkov(
        TWO, 6, initial=[0.5, 0.5], emission=CategoricalEmission([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], ["x", "y", "z"])
    ),
    "hidden chain, normal": lambda: HiddenMarkov(THREE, 7, emission=GaussianEmission([0, 1, 4], [1, 2, 1])),
    "communities": lambda: Communities(["a", "a", "b", "b", "b", "c"]),
    "communities, blurred": lambda: Communities(["a", "a", "b", "b", "b", "c"], emission=MILD),
    "communities along a chain": lambda: Communities([0, 0, 1, 1, 2, 2, 2], MarkovChain(TWO, 3), emission=MILD),
    "ising path": lambda: MarkovField.ising(nx.path_graph(10), 0.3),
    "ising grid": lambda: MarkovField.ising(nx.grid_2d_graph(3, 3), 0.1, 0.05),
    "ising, weak": lambda: MarkovField.ising(nx.cycle_graph(14), 0.05),
    "ising, wheel": lambda: MarkovField.ising(nx.wheel_graph(12), 0.02),
    "ising with hidden nodes": lambda: MarkovField.ising(nx.star_graph(5), 0.2, latent=[0]),
    "potts cycle": lambda: MarkovField.potts(nx.cycle_graph(6), 0.4, 3),
    "field of tables": lambda: MarkovField(nx.path_graph(4), [[1.0, 2.0, 0.5], [2.0, 1.0, 1.5], [0.5, 1.5, 3.0]]),
    "factors, parity": lambda: FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b", "c"), EVEN)]),
    "factors, path": lambda: FactorGraph(
        [2, 3, 2], [((0, 1), [[3, 1, 2], [1, 3, 2]]), ((1, 2), [[1, 2], [2, 1], [1, 1]])]
    ),
    "network, wet": _wet,
    "network, family": _family,
    "chain, one known": lambda: MarkovChain(TWO, 9).given([4]),
    "groups, one known": lambda: Groups([0, 0, 0, 1, 1, 1]).given([1]),
    "ising, two known": lambda: MarkovField.ising(nx.path_graph(8), 0.3).given([2, 5]),
    "network, values known": lambda: _wet().given({"wet": 1}),
    "hidden chain, one known": lambda: HiddenMarkov(TWO, 7, emission=MILD).given([3]),
    "out of fold": lambda: OutOfFold([0, 0, 1, 1, 2, 2, 2]),
    "out of fold, groups": lambda: OutOfFold([0, 0, 1, 1, 1], groups=[7, 7, 8, 8, 9]),
}


def _tried(function: Callable[[], Any]) -> Any:
    """Return a result, or that the route does not apply."""
    try:
        return function()
    except RouteUnavailable:
        return "does not apply"


def _leakages(make: Callable[[], DependenceModel]) -> Any:
    model = make()
    adversaries: tuple[Adversary, ...] = ("informed", "uninformed")
    return [
        [method, adversary, epsilon, _tried(lambda m=method, a=adversary, e=epsilon: model.leakage(e, m, a))]  # type: ignore[misc]
        for method in (*model.methods, "best")
        for adversary in adversaries
        for epsilon in (0.05, 0.7)
    ]


def _budgets(make: Callable[[], DependenceModel]) -> Any:
    model = make()
    columns = ["budget", "published", "won"]
    means = [_tried(lambda a=a: model.budget(0.4, "best", a, "mean")) for a in ("informed", "uninformed")]  # type: ignore[misc]
    return [model.explain(0.5)[columns], model.explain(0.1, "uninformed")[columns], means]


def _inflations(make: Callable[[], DependenceModel]) -> Any:
    model = make()
    rows = [
        [method, bounded, _tried(lambda m=method, b=bounded: model.variance_inflation(m, b))]  # type: ignore[misc]
        for method in (*model.inflation_methods, "best")
        for bounded in (False, True)
    ]
    return [rows, model.effective_records(), model.independent_groups()]


def _tried_sample(model: DependenceModel) -> Any:
    try:
        return [model.sample(np.random.default_rng(seed)) for seed in range(3)]
    except ArgumentError:
        return "does not sample"


def _whole(make: Callable[[], DependenceModel]) -> Any:
    model = make()
    return [model.n, model.fingerprint(), _inflations(make), _tried_sample(model)]


for _name, _make in MODELS.items():
    CASES.add(f"graphs: {_name}: leakages", lambda make=_make: _leakages(make))  # type: ignore[misc]
    CASES.add(f"graphs: {_name}: inflation, groups, samples", lambda make=_make: _whole(make))  # type: ignore[misc]
    if not _name.startswith("out of fold"):
        CASES.add(f"graphs: {_name}: budgets", lambda make=_make: _budgets(make))  # type: ignore[misc]


@CASES.case("graphs: joint laws")
def joint_laws() -> Any:
    return [
        MarkovChain(TWO, 3).joint(),
        HiddenMarkov(TWO, 3, emission=MILD).joint(),
        _wet().joint(),
        MODELS["potts cycle"]().joint(),
    ]


@CASES.case("graphs: exact leakages")
def exact_leakages() -> Any:
    chain = MarkovChain(TWO, 4)
    return [exact_leakage(chain, 0.3, 1), exact_leakage(chain, 0.3, 1, [3]), exact_leakage(_wet(), 0.2, "wet")]


@CASES.case("graphs: chains in long")
def long_chains() -> Any:
    chain = MarkovChain(TWO, 10_000)
    found = chain.leakage(0.05)
    return [
        found.max(),
        found.mean(),
        chain.budget(0.5),
        chain.variance_inflation(),
        chain.spectral_gap,
        chain.stationary,
    ]


@CASES.case("graphs: hidden states given the records")
def hidden_states() -> Any:
    model = HiddenMarkov(TWO, 6, emission=MILD)
    return model.posterior([0, 0, 1, 1, 0, 1])


@CASES.case("graphs: fitted fields")
def fitted_fields() -> Any:
    graph = nx.cycle_graph(12)
    sides = [0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1]
    ising, potts = fit_ising(graph, sides), fit_potts(graph, [side + k % 2 for k, side in enumerate(sides)])
    return [ising.diameters.max(), ising.budget(0.5), potts.diameters.max()]


@CASES.case("graphs: fitted hidden chain")
def fitted_hidden_chain() -> Any:
    records = HiddenMarkov(TWO, 150, emission=[[0.9, 0.1], [0.2, 0.8]]).sample(np.random.default_rng(0))
    fit = baum_welch(records, states=2, emission="categorical", restarts=2)
    return [fit.transition.round(6), fit.converged]
