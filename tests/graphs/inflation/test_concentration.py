"""Variance inflation: closed forms, exact tail probabilities, and a number that is too small."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from graphs import ArgumentError, Groups, Independent, MarkovChain, MovingWindow, RouteUnavailable
from graphs.inflation.concentration import coupling_inflation, dobrushin_inflation, operator_norm, spectral_inflation
from graphs.leakage.spectral import stationary_law
from tests.cases import for_each
from tests.oracles.chains import FloatArray, chain_table, random_chain, tail

MATRIX = [[0.9, 0.1], [0.2, 0.8]]


def violations(table: FloatArray, inflation: float, rng: np.random.Generator, queries: int = 20) -> int:
    """How many (query, t) have P(|q - E q| >= t) above 2 exp(-2 n t^2 / inflation)."""
    n, states = table.ndim, table.shape[0]
    found = 0
    for trial in range(queries):
        values = rng.random((n, states)) if trial % 2 else rng.integers(0, 2, (n, states)).astype(float)
        if trial == 0:
            values = np.tile(np.arange(states) == 0, (n, 1)).astype(float)
        for t, probability in tail(table, values):
            found += probability > 2 * math.exp(-2 * n * t * t / inflation) * (1 + 1e-9)
    return found


@pytest.mark.slow
@for_each("seed", range(8))
def test_tails_of_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for start, zeros in itertools.product(("stationary", "any", "few"), (False, True)):
        states = int(rng.integers(2, 4))
        n = 9 if states == 2 else 6
        matrix, law = random_chain(rng, states, zeros, start)
        try:
            model = MarkovChain(matrix, n, None if start == "stationary" else law)
        except ArgumentError:
            continue
        table = chain_table(model.transition, model.initial, n)
        for method in model.inflation_methods:
            try:
                inflation = model.variance_inflation(method)
            except RouteUnavailable:
                assert method == "spectral"
                assert start != "stationary"
                continue
            assert 1 <= inflation <= n
            assert violations(table, inflation, rng) == 0


def test_a_number_that_is_too_small_is_caught() -> None:
    rng = np.random.default_rng(0)
    table = chain_table([[0.98, 0.02], [0.02, 0.98]], [0.5, 0.5], 9)
    assert violations(table, 1.0, rng) > 0
    copies = np.zeros((2,) * 6)
    copies[(0,) * 6] = copies[(1,) * 6] = 0.5
    assert violations(copies, Groups([0] * 6).variance_inflation(), rng) == 0
    assert violations(copies, 6 / 2, rng) > 0


def test_tails_of_groups_and_windows() -> None:
    rng = np.random.default_rng(1)
    for labels in ([0, 0, 0, 1, 1, 2], [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 1]):
        table = np.zeros((2,) * 6)
        groups = sorted(set(labels))
        for coins in itertools.product(range(2), repeat=len(groups)):
            table[tuple(coins[g] for g in labels)] += 0.5 ** len(groups)
        assert violations(table, Groups(labels).variance_inflation(), rng) == 0
    for m in (1, 2):
        table = np.zeros((2,) * 6)
        for coins in itertools.product(range(2), repeat=6 + m):
            table[tuple(max(coins[i : i + m + 1]) for i in range(6))] += 0.5 ** (6 + m)
        assert violations(table, MovingWindow(6, m).variance_inflation(), rng) == 0


def in_blocks(theta: float, n: int) -> float:
    """The best of blocks of 1, S and n records, S = theta / (1 - theta), in closed form, 60 digits, rounded down."""
    with mpmath.workdps(60):
        t, found = mpmath.mpf(theta), []
        whole = t / (1 - t)
        for length in {1, n, *(k for k in (int(mpmath.floor(whole)), int(mpmath.ceil(whole))) if 1 <= k <= n)}:
            full = (n - 1) // length
            last = n - full * length
            # the sum over j < full of (length + whole (1 - t^(last + j length)))^2
            once = t**last * (1 - t ** (full * length)) / (1 - t**length)
            twice = t ** (2 * last) * (1 - t ** (2 * full * length)) / (1 - t ** (2 * length))
            total = full * (length + whole) ** 2 - 2 * (length + whole) * whole * once + whole**2 * twice + last**2
            found.append(total / n)
        return float(min(found)) * (1 - 2**-52)


@for_each(("theta", "n"), [(0.9999, 10**8), (0.9999, 30_000), (0.999, 10**6), (0.99999, 10**7), (0.9, 10**5)])
def test_inflations_of_slow_chains_have_what_lies_beyond_the_steps_that_are_followed(theta: float, n: int) -> None:
    """Dependence is followed over 20,000 steps, or 2,048: the rest must not be lost, and is not more than its bound."""
    found = dobrushin_inflation(theta, n)
    assert in_blocks(theta, n) <= found <= min((1 - theta) ** -2, 4 * theta / (1 - theta) + 1) * (1 + 1e-6)
    stay = (1 + theta) / 2
    matrix = np.array([[stay, 1 - stay], [1 - stay, stay]])  # P^m has the coefficient (2 stay - 1)^m
    assert in_blocks(2 * stay - 1, n) <= coupling_inflation(matrix, n)
    chain = MarkovChain(matrix, n)
    for method in ("dobrushin", "coupling"):
        least = in_blocks(2 * stay - 1, n)
        assert least <= chain.variance_inflation(method) or n == chain.variance_inflation(method)


@for_each("n", [1, 2, 777, 20_000, 20_001, 25_000])
def test_inflations_are_sums_over_all_steps(n: int) -> None:
    """Term by term, on both sides of the last step that is followed; the tail is all that is added."""
    powers = [0.9997**m for m in range(n)]
    sums = list(itertools.accumulate(powers, initial=0.0))
    whole = sums[n] - 1.0 if n <= 20_000 else 0.9997 / 0.0003
    totals = []
    for length in {1, n, *(k for k in (math.floor(whole), math.ceil(whole)) if 1 <= k <= n)}:
        ends = [*range(n - (n - 1) // length * length, n, length)]  # how many records follow a block
        last = n - len(ends) * length
        totals.append((math.fsum((length + sums[after + 1] - 1.0) ** 2 for after in ends) + last**2) / n)
    total = min(totals)
    assert total * (1 - 1e-12) <= dobrushin_inflation(0.9997, n) <= total * (1.001 if n > 20_000 else 1 + 1e-6)


def test_bounded_differences() -> None:
    """Statistics that are no means: the largest run of ones, changed by every record by at most n/2 + 1."""
    n = 8
    table = chain_table(MATRIX, [0.3, 0.7], n)
    model = MarkovChain(MATRIX, n, [0.3, 0.7])
    inflation = model.variance_inflation(bounded_differences=True)
    assert inflation == min(model.variance_inflation(m) for m in ("components", "dobrushin", "coupling"))
    paths = np.array(list(itertools.product(range(2), repeat=n)))
    flips = (paths[:, 1:] != paths[:, :-1]).sum(axis=1).astype(float)  # changed by 2 at most
    weights = table.ravel()
    deviation = np.abs(flips - flips @ weights)
    for t in np.unique(deviation):
        bound = 2 * math.exp(-2 * t * t / (n * 4 * inflation))
        assert weights[deviation >= t - 1e-12].sum() <= bound
    with pytest.raises(RouteUnavailable, match="means of per-record values only"):
        MarkovChain(MATRIX, n).variance_inflation("spectral", bounded_differences=True)


def test_closed_forms() -> None:
    assert Independent(7).variance_inflation() == 1.0
    assert Groups(list("aaabb")).variance_inflation() == pytest.approx(13 / 5, abs=1e-12)
    assert MovingWindow(100, 6).variance_inflation() == 7.0
    assert MovingWindow(4, 6).variance_inflation() == 4.0
    sums = [(6 + min(6, 100 - end)) ** 2 for end in range(6, 100, 6)]  # 16 blocks of six records, and four at the end
    assert MovingWindow(100, 6).variance_inflation(bounded_differences=True) == pytest.approx((sum(sums) + 16) / 100)
    assert MovingWindow(100, 0).variance_inflation(bounded_differences=True) == 1.0
    model = MarkovChain(MATRIX, 10_000)
    assert model.variance_inflation("spectral") == pytest.approx(17 / 3, abs=1e-9)
    assert model.variance_inflation("spectral") >= 17 / 3
    assert model.variance_inflation() == model.variance_inflation("spectral")
    assert model.variance_inflation("components") == 10_000


@for_each("n", [1, 2, 7, 500])
def test_dobrushin_against_its_blocks(n: int) -> None:
    theta = 0.7
    whole = theta / (1 - theta)  # 2.33
    found = []
    for length in {1, n, *(k for k in (math.floor(whole), math.ceil(whole)) if 1 <= k <= n)}:
        blocks = [range(start, min(start + length, n)) for start in range(0, n, length)]
        moved = [len(b) + sum(theta ** (j - b[-1]) for j in range(b[-1] + 1, n)) for b in blocks]
        found.append(sum(step**2 for step in moved) / n)
    exact = min(found)
    assert dobrushin_inflation(theta, n) == pytest.approx(exact, rel=1e-9)
    assert dobrushin_inflation(theta, n) >= exact * (1 - 1e-15)
    assert MarkovChain(MATRIX, n, [0.5, 0.5]).variance_inflation("dobrushin") == pytest.approx(exact, rel=1e-9)
    assert coupling_inflation(np.array(MATRIX), n) == pytest.approx(exact, rel=1e-7)


@pytest.mark.slow
def test_long_chains() -> None:
    assert dobrushin_inflation(0.9, 10**8) == pytest.approx(36, rel=1e-5)
    assert dobrushin_inflation(0.99999, 10**6) <= 1e10
    assert MarkovChain([[0.5, 0.5], [0.0, 1.0]], 10**6, [1, 0]).variance_inflation() <= 10**6
    assert MarkovChain([[0.0, 1.0], [1.0, 0.0]], 10**6, [1, 0]).variance_inflation("dobrushin") == 10**6


def test_coupling_sees_more_than_one_step() -> None:
    """The drunkard on five places: one step tells two far states apart for sure, many steps do not."""
    walk = np.zeros((5, 5))
    for i in range(5):
        walk[i, max(i - 1, 0)] += 0.5
        walk[i, min(i + 1, 4)] += 0.5
    model = MarkovChain(walk, 5000)
    assert model.variance_inflation("dobrushin") == 5000
    assert model.variance_inflation("coupling") < 200


@for_each("seed", range(5))
def test_norm_of_the_kernel(seed: int) -> None:
    """Against the multiplicative reversibilisation, and above the ratio for any mean-zero function."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(4), 4)
    law, error = stationary_law(matrix)
    backward = law * matrix.T / law[:, None]
    second = np.sort(np.linalg.eigvals(matrix @ backward).real)[-2] ** 0.5
    found = spectral_inflation(matrix, law, error)
    assert found == pytest.approx((1 + second) / (1 - second), rel=1e-9)
    for _ in range(50):
        f = rng.normal(size=4)
        f -= f @ law
        ratio = math.sqrt((matrix @ f) ** 2 @ law / (f**2 @ law))
        assert (1 + ratio) / (1 - ratio) <= found


def test_operator_norm_is_above() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        matrix = rng.normal(size=(6, 6))
        vector = np.linalg.svd(matrix)[2][0]
        assert operator_norm(matrix) >= np.linalg.norm(matrix @ vector) / np.linalg.norm(vector)
        assert operator_norm(matrix) == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-12)


def test_where_it_does_not_apply() -> None:
    with pytest.raises(RouteUnavailable, match="stationary law") as caught:
        MarkovChain(MATRIX, 10, [0.5, 0.5]).variance_inflation("spectral")
    assert "dobrushin" in caught.value.alternatives
    with pytest.raises(RouteUnavailable, match="Groups has no such route"):
        Groups([1, 2]).variance_inflation("spectral")
    with pytest.raises(ArgumentError, match="'nonsense'"):
        Groups([1, 2]).variance_inflation("nonsense")
