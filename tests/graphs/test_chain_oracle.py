"""No leakage of a small model is below the exact one; a weakened bound is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphs import ArgumentError, Groups, Independent, MarkovChain, MovingWindow, RouteUnavailable, exact_leakage
from graphs.routes import ROUTES
from tests.oracles.chains import FloatArray, chain_table, random_chain
from tests.sizes import corners

SLACK = 1e-7
ADVERSARIES = ("informed", "uninformed")


def exact(table: FloatArray, epsilon: float | FloatArray, record: int) -> dict[str, float]:
    """Exact leakage to the worst adversary, and to the one who knows nothing."""
    others = [j for j in range(table.ndim) if j != record]
    known = itertools.chain.from_iterable(itertools.combinations(others, r) for r in range(table.ndim))
    found = [exact_leakage(table, epsilon, record, subset) for subset in known]
    return {"informed": max(found), "uninformed": found[0]}


def random_budgets(rng: np.random.Generator, n: int) -> float | FloatArray:
    if rng.random() < 0.6:
        return float(rng.choice([0.03, 0.3, 1.0, 3.0]))
    return rng.choice([0.0, 0.1, 0.5, 1.0], n) + 0.3 * rng.random(n)


@pytest.mark.parametrize("seed", corners(range(26), 12))
def test_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        states = int(rng.choice([2, 2, 2, 3]))
        n = int(rng.integers(1, 5 if states == 2 else 4))
        start = str(rng.choice(["stationary", "any", "few"]))
        matrix, law = random_chain(rng, states, bool(rng.random() < 0.4), start)
        try:
            model = MarkovChain(matrix, n, None if start == "stationary" else law)
        except ArgumentError:
            model = MarkovChain(matrix, n, law)
        epsilon = random_budgets(rng, n)
        bounds = {}
        for adversary, method in itertools.product(ADVERSARIES, ("best", *model.methods)):
            try:
                bounds[method, adversary] = model.leakage(epsilon, method, adversary)  # type: ignore[arg-type]
            except RouteUnavailable:
                assert method == "spectral-published"
        table = chain_table(model.transition, model.initial, n)
        for record in range(n):
            truth = exact(table, epsilon, record)
            for (_, adversary), bound in bounds.items():
                assert bound[record] >= truth[adversary] * (1 - SLACK) - SLACK
            assert bounds["best", "informed"][record] <= min(
                bound[record] for (method, who), bound in bounds.items() if who == "informed" and sound(method)
            )


def sound(method: str) -> bool:
    return method != "best" and not ROUTES[method].published


def test_a_weakened_bound_is_caught() -> None:
    """Messages with tanh(D/8) in place of tanh(D/4), and quilts without any penalty, are below the truth."""
    table = chain_table([[0.9, 0.1], [0.2, 0.8]], [2 / 3, 1 / 3], 3)
    diameter, epsilon = math.log(36), 0.5
    truth = exact(table, epsilon, 1)["informed"]

    def leakage(share: float) -> float:
        return epsilon + 2 * 4 * math.atanh(math.tanh(diameter * share) * math.tanh(epsilon / 4))

    assert leakage(1 / 4) >= truth * (1 - SLACK)
    assert leakage(1 / 8) < truth * (1 - 0.01)
    assert epsilon < truth * (1 - 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(range(4), 3))
def test_groups(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(5):
        labels = rng.integers(0, 2, 4)
        parts = [rng.dirichlet(np.ones(2 ** int((labels == g).sum()))) for g in range(2)]
        table = np.zeros((2,) * 4)
        for path in itertools.product(range(2), repeat=4):
            codes = [int("0" + "".join(str(s) for s, g in zip(path, labels, strict=True) if g == k), 2) for k in (0, 1)]
            table[path] = parts[0][codes[0]] * parts[1][codes[1]]
        epsilon = random_budgets(rng, 4)
        bound = Groups(labels).leakage(epsilon)
        assert all(bound[i] >= exact(table, epsilon, i)["informed"] * (1 - SLACK) - SLACK for i in range(4))


def test_copies_attain_the_group_bound() -> None:
    table = np.zeros((2, 2, 2))
    table[0, 0, 0] = table[1, 1, 1] = 0.5
    assert exact_leakage(table, 0.3, 1) == pytest.approx(Groups([7, 7, 7]).leakage(0.3)[1], rel=1e-7)
    independent = np.full((2, 2, 2), 1 / 8)
    assert exact(independent, 0.3, 1)["informed"] == pytest.approx(Independent(3).leakage(0.3)[1], rel=1e-7)


@pytest.mark.parametrize("seed", corners(range(8), 2))
def test_moving_windows(seed: int) -> None:
    """Functions of two neighbouring coins each are 1-dependent."""
    rng = np.random.default_rng(200 + seed)
    n = 4
    model = MovingWindow(n, 1)
    for _ in range(2):
        rules, coin = rng.integers(0, 2, (n, 2, 2)), rng.random()
        table = np.zeros((2,) * n)
        for coins in itertools.product(range(2), repeat=n + 1):
            weight = math.prod(coin if c else 1 - coin for c in coins)
            table[tuple(rules[i][coins[i], coins[i + 1]] for i in range(n))] += weight
        epsilon = random_budgets(rng, n)
        informed, uninformed = (model.leakage(epsilon, adversary=who) for who in ("informed", "uninformed"))
        for record in range(n):
            truth = exact(table, epsilon, record)
            assert informed[record] >= truth["informed"] * (1 - SLACK) - SLACK
            assert uninformed[record] >= truth["uninformed"] * (1 - SLACK) - SLACK


def test_a_known_sum_joins_what_a_window_separates() -> None:
    """The middle record is the parity of two coins: knowing it makes the outer ones copies of each other."""
    table = np.zeros((2, 2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        table[a, a ^ b, b] = 0.25
    epsilon = np.array([0.2, 0.0, 0.2])
    assert exact_leakage(table, epsilon, 0, [1]) == pytest.approx(0.4, rel=1e-7)
    assert exact_leakage(table, epsilon, 0) == pytest.approx(0.2, rel=1e-7)
    window = MovingWindow(3, 1)
    assert window.leakage(epsilon)[0] >= 0.4
    assert window.leakage(epsilon, adversary="uninformed")[0] == pytest.approx(0.2)
