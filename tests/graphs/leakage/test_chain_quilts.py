"""Quilts and the published routes against enumeration and worked values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from graphs import ArgumentError, MarkovChain, RouteUnavailable
from graphs.leakage.spectral import published_budget, published_quilts
from tests.cases import for_each
from tests.oracles.chains import chain_table, end_influence, quilt_leakage, random_chain
from tests.sizes import corners

MATRIX = [[0.9, 0.1], [0.2, 0.8]]


def symmetric(second: float, n: int = 1_000_000) -> MarkovChain:
    stay, move = (1 + second) / 2, (1 - second) / 2
    return MarkovChain([[stay, move], [move, stay]], n)


def test_worked_influences() -> None:
    """Blankets of the two ends, of the inner records, and the quilt two steps away on both sides."""
    model = MarkovChain(MATRIX, 5)
    influence = (model.leakage(1e-9, "blanket-published") - 1e-9) / 4
    assert influence[[0, 4]] == pytest.approx(2.0794415416798357, abs=1e-9)
    assert influence[1:4] == pytest.approx(np.full(3, 4.1588830833596715), abs=1e-9)
    table = chain_table(MATRIX, [2 / 3, 1 / 3], 5)
    assert end_influence(table, 2, [0, 4]) == pytest.approx(2.7128827959404194, abs=1e-12)
    quilt = 3 * 0.01 + 2 * 2.7128827959404194
    long_chain = MarkovChain(MATRIX, 5)
    assert long_chain.leakage(0.01, "quilt")[2] == pytest.approx(min(quilt, 0.05), abs=1e-9)
    costly = 1.5
    options = [
        5 * costly,
        costly + 2 * 4.1588830833596715,
        3 * costly + 2 * 2.7128827959404194,
        *(2 * costly + 2 * end_influence(table, 2, q) for q in ([0, 3], [1, 4])),
        *(3 * costly + 2 * end_influence(table, 2, q) for q in ([1], [3])),
        *(4 * costly + 2 * end_influence(table, 2, q) for q in ([0], [4])),
    ]
    assert long_chain.leakage(costly, "quilt")[2] == pytest.approx(min(options), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("second", "epsilon", "spectral", "published", "quilt", "messages"),
    [
        (0.1, 1.0, "0.0330", "0.280", "0.307", "0.821"),
        (0.5, 0.2, "0.00259", "0.00993", "0.0112", "0.0667"),
        (0.5, 1.0, "0.0177", "0.0682", "0.0833", "0.336"),
        (0.9, 0.2, "0.00051", "0.00144", "0.00162", "0.0105"),
        (0.9, 1.0, "0.00350", "0.00974", "0.0116", "0.0532"),
        pytest.param(0.99, 1.0, "0.000346", "0.000919", "0.00109", "0.00508", marks=pytest.mark.slow),
    ],
)
def test_worked_budgets(
    second: float, epsilon: float, spectral: str, published: str, quilt: str, messages: str
) -> None:
    """Budgets of a long symmetric binary chain, to the digits that are stated."""
    model = symmetric(second)
    expected = {"spectral-published": spectral, "quilt-published": published, "quilt": quilt, "messages": messages}
    for method, text in expected.items():
        unit = 10.0 ** -len(text.split(".")[1])
        assert model.budget(epsilon, method) == pytest.approx(float(text), abs=unit * 0.51), method
    assert model.budget(epsilon) == pytest.approx(model.budget(epsilon, "messages"), rel=1e-9)


def test_small_budgets_of_a_symmetric_chain() -> None:
    """For small eps' the leakage tends to eps' (1 + lambda) / (1 - lambda)."""
    assert symmetric(0.9, 4001).leakage(1e-9, "messages")[2000] == pytest.approx(19e-9, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(range(6), 5))
def test_against_enumeration(seed: int) -> None:
    """Stationary or not, zeros or not, equal budgets or not: the smallest over all quilts and known near records."""
    rng = np.random.default_rng(seed)
    for start, zeros in itertools.product(("stationary", "any", "few"), (False, True)):
        matrix, law = random_chain(rng, int(rng.integers(2, 4)), zeros, start)
        n = 5
        try:
            model = MarkovChain(matrix, n, None if start == "stationary" else law)
        except ArgumentError:
            continue
        table = chain_table(model.transition, model.initial, n)
        for epsilon in (0.05, 1.0):
            budgets = np.full(n, epsilon)
            for method, adversary, factor in (
                ("quilt", "informed", 2.0),
                ("quilt", "uninformed", 1.0),
                ("quilt-published", "informed", 4.0),
            ):
                found = model.leakage(epsilon, method, adversary)  # type: ignore[arg-type]
                for record in range(n):
                    truth = quilt_leakage(table, record, budgets, factor, adversary == "informed")
                    assert found[record] >= truth * (1 - 1e-11)
                    assert found[record] == pytest.approx(truth, rel=1e-6)


def test_different_budgets() -> None:
    n, rng = 6, np.random.default_rng(5)
    model = MarkovChain(MATRIX, n)
    table = chain_table(MATRIX, model.initial, n)
    epsilon = rng.random(n) * 2
    truth = [quilt_leakage(table, record, epsilon, 2.0, informed=True) for record in range(n)]
    assert model.leakage(epsilon, "quilt") == pytest.approx(truth, rel=1e-9)


@pytest.mark.slow
def test_long_chains_that_start_elsewhere() -> None:
    """Upper bounds at the start, the stationary value far from it."""
    n = 400
    moved, settled = MarkovChain(MATRIX, n, [0.01, 0.99]), MarkovChain(MATRIX, n)
    for method in ("quilt", "quilt-published"):
        found, stationary = moved.leakage(0.05, method), settled.leakage(0.05, method)
        assert found[200:] == pytest.approx(stationary[200:], rel=1e-9)
        short = MarkovChain(MATRIX, 60, [0.01, 0.99]).leakage(0.05, method)
        assert (found[:30] >= short[:30] * (1 - 1e-12)).all()


def test_different_distances_to_the_ends() -> None:
    """The shortcut for long chains gives every record what the short form gives it."""
    matrix = [[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]]
    long, short = MarkovChain(matrix, 3000), MarkovChain(matrix, 161)
    for method in ("quilt", "quilt-published", "quilt-contracted", "messages", "long-edges", "best"):
        many, few = long.leakage(0.2, method), short.leakage(0.2, method)
        close = 1e-6 if method == "quilt-contracted" else 1e-9  # its ends leak as the most exposed record does
        assert many[:30] == pytest.approx(few[:30], rel=close)
        assert many[-30:] == pytest.approx(few[-30:], rel=close)
        assert many[1500] == pytest.approx(few[80], rel=close)


def test_worked_spectral_route() -> None:
    d, s, budget = published_quilts(1.0, 0.3, 1 / 3, 0.05)
    assert (d, s) == (16, 11)
    assert budget == pytest.approx(0.008641975308641974, abs=1e-12)
    assert MarkovChain(MATRIX, 100_000).spectral_gap == pytest.approx(0.3, abs=1e-12)


@pytest.mark.slow
@for_each("epsilon", [0.05, 1.0, 8.0])
@for_each(("gap", "rarest"), [(0.3, 1 / 3), (0.01, 0.5), (0.7, 0.02)])
def test_best_share_of_the_spectral_route(epsilon: float, gap: float, rarest: float) -> None:
    """The search over d finds what a fine grid over c finds, and respects n >= 2 d."""
    shares: Sequence[float] = np.linspace(1e-5, 1 / 6 - 1e-5, 20_000).tolist()
    for n in (10**9, 400):
        options = [published_quilts(epsilon, gap, rarest, c) for c in shares]
        best = max((h for d, _, h in options if n >= 2 * d), default=0.0)
        assert best * (1 - 1e-9) <= published_budget(epsilon, gap, rarest, n) <= best * 1.01 + 1e-12


def test_published_routes_are_never_better() -> None:
    model = symmetric(0.5)
    best, quilt = model.budget(0.5), model.budget(0.5, "quilt")
    for method in ("quilt-published", "spectral-published"):
        assert model.budget(0.5, method) <= quilt <= best


def test_no_budget_names_a_record_and_the_other_routes() -> None:
    with pytest.raises(
        RouteUnavailable, match=r"record 1 leaks 16\.6.* nats however small the privacy budget"
    ) as caught:
        MarkovChain(MATRIX, 5).budget(1.0, "blanket-published")
    assert "messages" in caught.value.alternatives
    assert caught.value.method == "blanket-published"


@for_each(
    ("matrix", "initial", "reason"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], "periodic"),
        ([[0.5, 0.5], [0.0, 1.0]], [0.5, 0.5], "reducible"),
        ([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]], None, "not reversible"),
        (MATRIX, [0.5, 0.5], "does not start in its stationary law"),
    ],
)
def test_where_the_spectral_route_does_not_apply(
    matrix: list[list[float]], initial: list[float] | None, reason: str
) -> None:
    with pytest.raises(RouteUnavailable, match=reason):
        MarkovChain(matrix, 100, initial).leakage(0.1, "spectral-published")


def test_a_chain_too_short_for_the_spectral_route() -> None:
    with pytest.raises(RouteUnavailable, match="too short"):
        symmetric(0.99, 100).leakage(0.1, "spectral-published")


def test_contraction_helps_quilts() -> None:
    """With zeros in the matrix short quilts have infinite influence, and what their ends leak still bounds them."""
    model = MarkovChain([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]], 50)
    assert model.leakage(0.05, "quilt-contracted").max() < model.leakage(0.05, "quilt").max()
    assert math.isfinite(model.leakage(0.05, "quilt").max())
