"""Mixing series: coefficients by enumeration, worst functions and statistics, closed forms of long chains."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from graphs import ArgumentError, MarkovChain, MixingSeries, MovingWindow, RouteUnavailable
from graphs.leakage.spectral import stationary_law
from tests.cases import for_each
from tests.oracles.chains import chain_table
from tests.oracles.moments import worst_inflation, worst_of_bounded_differences
from tests.sizes import sizes

FloatArray = npt.NDArray[np.float64]


def coefficients(law: FloatArray) -> list[float]:
    """Return phi_1, ..., phi_{n-1} of a table, by their definition: all pasts, all events of the future."""
    n = law.ndim
    found = []
    for k in range(1, n):
        largest = 0.0
        for i in range(1, n - k + 1):
            table = law.sum(axis=tuple(range(i, i + k - 1))) if k > 1 else law
            rows = table.reshape(math.prod(law.shape[:i]), -1)
            possible = rows.sum(axis=1) > 0
            laws = rows[possible] / rows[possible].sum(axis=1, keepdims=True)
            largest = max(largest, float(np.abs(laws - rows.sum(axis=0)).sum(axis=1).max()) / 2)
        found.append(min(largest, 1.0))
    return found


def random_law(rng: np.random.Generator, n: int, kind: int) -> FloatArray:
    """Return a law of n coins: mixed with independence, a chain, a chain seen through noise, copies of a few."""
    if kind == 0:
        law: FloatArray = rng.dirichlet(np.full(2**n, 0.3)).reshape((2,) * n)
        share = float(rng.random())
        return np.asarray(share * law + (1 - share) / 2**n)
    matrix = rng.dirichlet(np.ones(2), size=2)
    table: FloatArray = chain_table(matrix, rng.dirichlet(np.ones(2)), n)
    if kind == 1:
        return table
    for axis in range(n):
        noisy = np.array([[0.9, 0.1], [0.3, 0.7]])
        table = np.moveaxis(np.tensordot(table, noisy, axes=(axis, 0)), -1, axis)
    return table


def seen(law: FloatArray) -> list[npt.NDArray[np.int64]]:
    return list(np.array(list(itertools.product(*map(range, law.shape))), dtype=np.int64).T)


@sizes("seeds", 5, 150)
def test_no_functions_fluctuate_more(seeds: int) -> None:
    """Any law, its own coefficients: for the worst functions of single records, and the worst statistics."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        law = random_law(rng, 5, seed % 3)
        model = MixingSeries(coefficients(law), 5)
        assert worst_inflation(law.ravel(), seen(law), rng) <= model.variance_inflation("mixing") * (1 + 1e-9)
        if seed % 15 < 3:
            small = random_law(rng, 4, seed % 3)
            worst = worst_of_bounded_differences(small, rng, starts=2)
            bound = MixingSeries(coefficients(small), 4).variance_inflation(bounded_differences=True)
            assert worst <= bound * (1 + 1e-9)


def test_five_per_cent_less_is_refuted() -> None:
    """Copies attain it: phi_k is 1/2 for fair coins, and the futures of two pasts have nothing in common."""
    law = np.zeros((2,) * 4)
    law[0, 0, 0, 0] = law[1, 1, 1, 1] = 0.5
    assert coefficients(law) == [0.5] * 3
    bound = MixingSeries([0.5] * 3, 4).variance_inflation("mixing")
    assert bound == pytest.approx(4.0)
    assert 0.95 * bound < worst_inflation(law.ravel(), seen(law), np.random.default_rng(0)) <= bound


def test_one_past_and_two() -> None:
    """A coin and its copy have phi_1 = 1/2: with phi in place of 2 phi the bound would be broken."""
    law = np.diag([0.5, 0.5])
    (phi,) = coefficients(law)
    assert phi == 0.5
    worst = worst_inflation(law.ravel(), seen(law), np.random.default_rng(0))
    assert ((1 + phi) ** 2 + 1) / 2 < worst <= MixingSeries([phi], 2).variance_inflation()


def test_blocks_are_sharper_than_single_records() -> None:
    """About 4 S instead of (1 + S)^2, against the exact variance of a symmetric chain: (1 + r) / (1 - r)."""
    for rate in (0.3, 0.9, 0.99):
        sum_of_all = rate / (1 - rate)
        model = MixingSeries([rate / 2], 10**6, tail=rate)
        single = (1 + sum_of_all) ** 2
        found = model.variance_inflation()
        assert found <= single * (1 + 1e-9)
        assert found <= max(single if sum_of_all < 1 else 0, 4 * sum_of_all * (1 + 0.1 / sum_of_all) + 0.2)
        assert found >= (1 + rate) / (1 - rate) * (1 - 1e-3)
    assert MixingSeries([0.45], 10**8, tail=0.9).variance_inflation() == pytest.approx(36.0, rel=1e-6)
    assert MixingSeries([0.25], 10**6, tail=0.5).variance_inflation() == pytest.approx(4.0, rel=1e-5)


def test_a_long_tail_has_what_lies_beyond_the_steps_that_are_followed() -> None:
    rate = 0.9999  # powers over 20,000 steps leave 1.3 of 10,000 out
    total = rate / (1 - rate)
    assert MixingSeries([rate / 2], 10**8, tail=rate).variance_inflation() >= 4 * total * (1 - 1e-3)
    assert MixingSeries([0.5], 10**8, tail=0.99999).variance_inflation() >= 4 * 1e5 * (1 - 1e-2)


def test_coefficients_that_end_make_a_window() -> None:
    model = MixingSeries([1.0, 0.7], 50)
    window = MovingWindow(50, 2)
    assert model.variance_inflation() == window.variance_inflation() == 3.0
    assert model.effective_records() == 50 / 3
    for adversary in ("informed", "uninformed"):
        assert model.leakage(0.1, adversary=adversary).tolist() == window.leakage(0.1, adversary=adversary).tolist()
    assert MixingSeries([0.01] * 30, 10**6).variance_inflation() == pytest.approx(1.6**2, rel=1e-4)
    groups = MixingSeries([0.0], 3).independent_groups()
    assert groups is not None
    assert groups.tolist() == [1, 1, 1]
    assert MixingSeries([0.0], 3, tail=0.5).variance_inflation() == 1.0
    assert MixingSeries([0.3], 3).leakage(0.1) == pytest.approx([0.3] * 3)
    assert MixingSeries([0.3], 1).variance_inflation() == 1.0
    endless = MixingSeries([0.3], 9, tail=0.5)
    assert endless.effective_records() is None
    assert endless.leakage(0.1, adversary="uninformed") == pytest.approx([0.9] * 9)
    with pytest.raises(RouteUnavailable, match="no two records are independent"):
        endless.variance_inflation("colouring")


def test_the_smallest_coefficient_so_far_is_used() -> None:
    assert MixingSeries([0.2, 0.4, 0.1], 9).phi.tolist() == [0.2, 0.2, 0.1]
    assert MixingSeries([0.2, 0.4], 99).variance_inflation() == MixingSeries([0.2, 0.2], 99).variance_inflation()
    slow = MixingSeries([0.1, 0.4], 10**5, tail=0.5).variance_inflation()  # 0.1, 0.1, 0.1, 0.1, 0.05, ...
    assert slow == pytest.approx(MixingSeries([0.1] * 4, 10**5, tail=0.5).variance_inflation(), rel=1e-9)


@sizes("seeds", 8, 120)
def test_contraction(seeds: int) -> None:
    """Stationary chains of three states, reversible or not: the worst functions, which differ from record to record."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        matrix = rng.dirichlet(np.full(3, 0.5 + seed % 2), size=3)
        law = stationary_law(matrix)[0]
        root = np.sqrt(law)
        norm = float(np.linalg.svd(root[:, None] * matrix / root - np.outer(root, root))[1][0])
        table = chain_table(matrix, law, 5)
        worst = worst_inflation(table.ravel(), seen(table), rng)
        assert worst <= MixingSeries.contraction(min(norm, 1.0), 5).variance_inflation() * (1 + 1e-9)
        if norm < 1:
            chain = MarkovChain(matrix, 5).variance_inflation("spectral")
            assert MixingSeries.contraction(norm, 5).variance_inflation() == pytest.approx(chain, rel=1e-6)


def test_contraction_in_closed_form() -> None:
    """The variance of a symmetric chain of 2,000 records; five per cent less is refuted. Signs of an autoregression."""
    for rate in (0.2, 0.5, 0.9):
        n = 2000
        truth = (1 + rate) / (1 - rate) - 2 * rate * (1 - rate**n) / (n * (1 - rate) ** 2)
        bound = MixingSeries.contraction(rate, n).variance_inflation()
        assert 0.95 * bound < truth <= bound
    signs = 1 + 2 * sum((1 - k / 1000) * 2 / math.pi * math.asin(0.9**k) for k in range(1, 1000))
    assert 13 < signs <= MixingSeries.contraction(0.9, 1000).variance_inflation()
    assert MixingSeries.contraction(0.0, 5).variance_inflation() == 1.0
    assert MixingSeries.contraction(1.0, 5).variance_inflation() == 5.0
    assert MixingSeries.contraction(0.0, 5).leakage(0.1).tolist() == [0.1] * 5
    with pytest.raises(RouteUnavailable, match="means of per-record values only"):
        MixingSeries.contraction(0.5, 9).variance_inflation("spectral", bounded_differences=True)
    assert MixingSeries.contraction(0.5, 9).variance_inflation(bounded_differences=True) == 9.0
    with pytest.raises(RouteUnavailable, match="the series was declared by a contraction in L2"):
        MixingSeries.contraction(0.5, 9).variance_inflation("mixing")
    with pytest.raises(RouteUnavailable, match="the series was declared by coefficients of uniform mixing"):
        MixingSeries([0.5], 9).variance_inflation("spectral")


@sizes("seeds", 10, 60)
def test_a_known_beginning(seeds: int) -> None:
    """The law that is left, its worst functions, against the coefficients of the law of all records."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        law = random_law(rng, 6, seed % 3)
        given = MixingSeries(coefficients(law), 6).given([0, 1])
        part = law[tuple(rng.integers(0, 2, size=2))]
        if part.sum() > 1e-9:
            part = part / part.sum()
            assert worst_inflation(part.ravel(), seen(part), rng) <= given.variance_inflation() * (1 + 1e-9)


def test_what_known_records_leave() -> None:
    series = MixingSeries([0.25], 1000, tail=0.5)
    assert series.given(range(400)).variance_inflation() == pytest.approx(
        MixingSeries([0.25], 600, tail=0.5).variance_inflation()
    )
    assert series.given([500]).variance_inflation() == 999.0
    assert MixingSeries([1.0], 9).given([4]).variance_inflation() == pytest.approx(
        MovingWindow(8, 1).variance_inflation()
    )
    assert MixingSeries.contraction(0.5, 9).given([0]).variance_inflation() == 8.0
    assert series.given([]).variance_inflation() == series.variance_inflation()


def test_words_and_identity() -> None:
    assert MixingSeries([0.4, 0.1], 9).describe() == "9 records of a series with mixing coefficients 0.4, 0.1"
    assert MixingSeries([0.4], 9, tail=0.5).describe() == "9 records of a series with mixing coefficients 0.4, ..."
    contraction = MixingSeries.contraction(0.5, 9)
    assert contraction.describe() == "9 records of a stationary Markov chain whose kernel has norm 0.5"
    models = [MixingSeries([0.4], 9), MixingSeries([0.4], 9, tail=0.5), contraction, MixingSeries([0.5], 9)]
    assert len({model.fingerprint() for model in models}) == 4


@pytest.mark.slow
def test_samples_mix_as_declared() -> None:
    """Coefficients of what is drawn, over 4,000 draws, against those declared; far records are independent."""
    rng = np.random.default_rng(1)
    for model, rate in (
        (MixingSeries([0.3, 0.18], 6, tail=0.6), 0.6),
        (MixingSeries.contraction(0.5, 6), 0.5),
        (MixingSeries([0.5, 0.2], 6), math.sqrt(0.4)),
    ):
        drawn = 2 * np.array([model.sample(rng) for _ in range(4000)]) - 1
        agree = float((drawn[:, 0] * drawn[:, 1]).mean())
        assert abs(agree - rate) < 6 / math.sqrt(4000)
        if model.effective_records() is not None:
            assert abs(float((drawn[:, 0] * drawn[:, 3]).mean())) < 6 / math.sqrt(4000)


@for_each(
    ("make", "message"),
    [
        (lambda: MixingSeries([], 5), "phi must be .*; got an array of shape"),
        (lambda: MixingSeries(0.5, 5), "phi must be .*; got an array of shape"),  # type: ignore[arg-type]
        (lambda: MixingSeries([0.5, 1.2], 5), "phi must be coefficients.*; got 1.2 at lag 2"),
        (lambda: MixingSeries([-0.1], 5), "phi must be .*; got -0.1 at lag 1"),
        (lambda: MixingSeries([float("nan")], 5), "phi must be .*; got nan at lag 1"),
        (lambda: MixingSeries({1: 0.5}, 5), "phi must be .*; got a mapping"),
        (lambda: MixingSeries([[0.5]], 5), "phi must be .*; got an array of shape"),  # type: ignore[list-item]
        (lambda: MixingSeries(["a"], 5), "phi must be .*; got values of type"),  # type: ignore[list-item]
        (lambda: MixingSeries([0.5], 0), "n must be .*; got 0"),
        (lambda: MixingSeries([0.5], 5, tail=1), "tail must be a factor.*; got 1"),
        (lambda: MixingSeries([0.5], 5, tail=-0.5), "tail must be .*; got -0.5"),
        (lambda: MixingSeries.contraction(1.5, 5), "norm must be .*; got 1.5"),
        (lambda: MixingSeries.contraction(float("nan"), 5), "norm must be .*; got nan"),
        (lambda: MixingSeries.contraction(True, 5), "norm must be .*; got True"),
        (lambda: MixingSeries.contraction(0.5, -1), "n must be .*; got -1"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
