"""No mechanism leaks more than the routes of factor graphs and Bayesian networks say: exact linear programs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from graphs import FactorGraph, exact_leakage
from graphs.errors import RouteUnavailable
from graphs.leakage.network_messages import propagate
from tests.graphs.random_networks import random_bayesian_network, random_factor_graph
from tests.sizes import corners

SOUND = ("best", "group", "messages", "self-avoiding", "quilt", "quilt-contracted")

#: The linear programs are solved to about 1e-8.
SOLVED = 1e-7


def bounds(model: FactorGraph, epsilon: np.ndarray, adversary: str) -> dict[str, np.ndarray]:
    found = {}
    for method in SOUND:
        try:
            found[method] = model.leakage(epsilon, method, adversary)  # type: ignore[arg-type]
        except RouteUnavailable:
            assert method in ("quilt-contracted", "self-avoiding")
    return found


def worst(model: FactorGraph, epsilon: np.ndarray, record: int) -> tuple[float, float]:
    """Return the exact leakage for the worst known set, and for none."""
    joint = model.joint()
    others = [j for j in range(model.n) if j != record]
    exact = [
        exact_leakage(joint, epsilon, record, known)
        for size in range(len(others) + 1)
        for known in combinations(others, size)
    ]
    return max(exact), exact[0]


def random_model(seed: int) -> tuple[FactorGraph, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng([7, seed])
    states = 3 if seed % 3 == 0 else 2
    nodes = int(rng.integers(2, 5))
    latent = int(rng.integers(0, 2)) if nodes > 2 else 0
    make = random_bayesian_network if seed % 2 else random_factor_graph
    model = make(rng, nodes, states, latent)
    epsilon = rng.uniform(0.02, 1.0, model.n) if seed % 4 < 3 else np.full(model.n, rng.uniform(0.02, 1.0))
    return model, epsilon, rng


def check(model: FactorGraph, epsilon: np.ndarray, records: list[int]) -> None:
    informed, uninformed = bounds(model, epsilon, "informed"), bounds(model, epsilon, "uninformed")
    for record in records:
        most, nothing_known = worst(model, epsilon, record)
        for method, leakage in informed.items():
            assert most <= leakage[record] + SOLVED, method
        for method, leakage in uninformed.items():
            assert nothing_known <= leakage[record] + SOLVED, method


@pytest.mark.parametrize("block", corners(range(40), 0))
def test_no_mechanism_leaks_more(block: int) -> None:
    for seed in range(5 * block, 5 * block + 5):
        model, epsilon, rng = random_model(seed)
        check(model, epsilon, [int(rng.integers(model.n))] if model.n > 3 else list(range(model.n)))


@pytest.mark.parametrize("seed", corners(range(8), 2, 6))
def test_no_mechanism_leaks_more_with_six_binary_or_four_ternary_records(seed: int) -> None:
    rng = np.random.default_rng([8, seed])
    make = random_bayesian_network if seed % 2 else random_factor_graph
    model = make(rng, 6, 2) if seed % 4 < 2 else make(rng, 4, 3)
    check(model, rng.uniform(0.05, 0.5, model.n), [int(rng.integers(model.n))])


def test_a_weakened_bound_is_caught() -> None:
    """Messages with diameters a tenth too small are below what some mechanism leaks."""
    violations = 0
    for seed in range(40):
        model, epsilon, _ = random_model(seed)
        p = model._potentials
        smaller = replace(p.incidence, diameters=0.9 * p.incidence.diameters)
        weak = propagate(smaller, p.spread(epsilon))[p.records]
        violations += any(worst(model, epsilon, record)[0] > weak[record] + SOLVED for record in range(model.n))
        if violations:
            break
    assert violations


def test_quilts_are_nearly_attained_and_a_weakened_penalty_is_caught() -> None:
    """Two records, one state of the other rare, large budgets: it tells nearly the range of the log-ratios."""
    model = FactorGraph([2, 2], [((0, 1), [[1.0, 1.3], [1.3, 1.0]]), ((1,), [50.0, 1.0])])
    quilts, budgets = model._found_quilts, np.full(2, 10.0)
    exact, nothing_known = worst(model, budgets, 0)
    penalty = model.leakage(10.0, "quilt")[0] - 10
    assert 0.95 * penalty < exact - 10 <= penalty
    assert exact > quilts.leakages(budgets, 0.9 * quilts.ranges("any"))[0]
    assert nothing_known <= model.leakage(10.0, "quilt", "uninformed")[0] < model.leakage(10.0, "quilt-published")[0]
    assert nothing_known > quilts.leakages(budgets, 0.9 * quilts.influences("none"))[0]
