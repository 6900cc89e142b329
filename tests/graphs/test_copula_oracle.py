"""Functions of correlated Gaussians against exact moments: Hoelder's inequality, the inflation, the kl form."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtr

from graphs import GaussianField
from tests.cases import for_each
from tests.oracles.gaussians import Steps, one_factor_mean, series_mean, worst_inflation
from tests.sizes import sizes


def random_steps(rng: np.random.Generator, low: float = 0.05) -> Steps:
    jumps = np.sort(rng.normal(size=int(rng.integers(1, 4))) * 1.5)
    return jumps, np.exp(rng.uniform(math.log(low), 3.0, len(jumps) + 1))


def norm(step: Steps, power: float) -> float:
    jumps, values = step
    shares = np.diff(np.r_[0.0, ndtr(jumps), 1.0])
    return float((shares @ values**power) ** (1 / power))


def one_factor(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    loadings = rng.uniform(-1, 1, n) if rng.random() < 0.7 else rng.choice([-1, 1], n) * rng.uniform(0.9, 0.9999, n)
    matrix = np.outer(loadings, loadings)
    np.fill_diagonal(matrix, 1.0)
    return loadings, matrix


@pytest.mark.slow
def test_quadratures_have_the_orthants_of_closed_forms() -> None:
    half: Steps = (np.zeros(1), np.array([0.0, 1.0]))
    for rho in (-0.9, 0.3, 0.99):
        both = 0.25 + math.asin(rho) / (2 * math.pi)
        assert series_mean(rho, [half, half]) == pytest.approx(both, abs=1e-11)
        loading = math.sqrt(abs(rho))
        found = one_factor_mean(np.array([loading, math.copysign(loading, rho)]), [half, half])
        assert found == pytest.approx(both, abs=1e-11)
        three = 0.125 + (2 * math.asin(rho) + math.asin(rho**2)) / (4 * math.pi)
        assert series_mean(rho, [half] * 3) == pytest.approx(three, abs=1e-11)


@sizes("repeats", 16, 300)
def test_hoelders_inequality_for_gaussians(repeats: int) -> None:
    """The theorem itself: E prod F_i <= prod (E F_i^p_i)^(1/p_i) for a diagonal P above R."""
    rng = np.random.default_rng(3)
    for trial in range(repeats):
        n = int(rng.integers(2, 5))
        steps = [random_steps(rng) for _ in range(n)]
        if trial % 2:
            loadings, matrix = one_factor(rng, n)
            exact = one_factor_mean(loadings, steps)
        else:
            rho = float(rng.choice([-0.9, -0.4, 0.2, 0.7, 0.95]))
            matrix = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
            exact = series_mean(rho, steps)
        scale = rng.uniform(0.2, 5.0, n)  # a random P above R: scaled to the boundary
        root = 1 / np.sqrt(scale)
        powers = scale * float(np.linalg.eigvalsh(matrix * np.outer(root, root))[-1])
        bound = math.prod(norm(step, p) for step, p in zip(steps, powers, strict=True))
        assert exact <= bound * (1 + 1e-9)


def test_exponentials_attain_it_and_refute_less() -> None:
    """E exp(a.Z) = exp(a'Ra/2), and the norms are exp(p_i a_i^2/2): equal where (P - R) a = 0."""
    matrix = np.array([[1.0, 0.6, 0.2], [0.6, 1.0, -0.3], [0.2, -0.3, 1.0]])
    values, vectors = np.linalg.eigh(matrix)
    a, p = vectors[:, -1], values[-1]
    exact = a @ matrix @ a / 2
    assert exact == pytest.approx(p * (a @ a) / 2)
    assert exact > 0.95 * p * (a @ a) / 2


@sizes("repeats", 1, 24)
def test_no_functions_exceed_the_inflation(repeats: int) -> None:
    rng = np.random.default_rng(5)
    for trial in range(repeats):
        n = int(rng.integers(2, 5))
        if trial % 3 < 2:
            loadings, matrix = one_factor(rng, n)
            model = GaussianField(matrix)
            found = worst_inflation(partial(one_factor_mean, loadings), n, rng, 2, 1 + trial % 2)
        else:
            rho = float(rng.choice([-0.8, 0.5, 0.9]))
            model = GaussianField.ar(rho, n)
            found = worst_inflation(partial(series_mean, rho), n, rng, 1)
        bound = model.variance_inflation("copula")
        assert found <= bound * (1 + 1e-9)


@for_each("n", [2, 3])
def test_an_inflation_that_is_five_per_cent_smaller_is_refuted(n: int) -> None:
    loadings = np.full(n, math.sqrt(0.9999))
    matrix = np.full((n, n), 0.9999) + 0.0001 * np.eye(n)
    bound = GaussianField(matrix).variance_inflation("copula")
    found = worst_inflation(lambda s: one_factor_mean(loadings, s), n, np.random.default_rng(0), 1)
    assert 0.95 * bound < found <= bound


@sizes("repeats", 30, 300)
def test_means_fluctuate_as_so_many_coins(repeats: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(repeats):
        n = int(rng.integers(2, 5))
        loadings, matrix = one_factor(rng, n)
        effective = GaussianField(matrix).effective_records()
        p, tilted = 0.0, []
        u = float(rng.choice([-40.0, -8.0, -1.0, 1.0, 8.0, 40.0]))
        for _ in range(n):
            jumps = np.sort(rng.normal(size=2)) * 2
            values = rng.permutation([0.0, 1.0, float(rng.random() < 0.5)])
            p += float(np.diff(np.r_[0.0, ndtr(jumps), 1.0]) @ values) / n
            tilted.append((jumps, np.exp(u / n * values)))
        bound = effective * math.log1p(p * math.expm1(u / effective))
        assert math.log(one_factor_mean(loadings, tilted)) <= bound + 1e-9


def test_five_per_cent_more_effective_records_are_refuted() -> None:
    n, loadings = 3, np.full(3, math.sqrt(0.9999))
    effective = GaussianField(np.full((n, n), 0.9999) + 0.0001 * np.eye(n)).effective_records()
    half = [(np.zeros(1), np.exp(2.0 / n * np.array([0.0, 1.0])))] * n
    exact = math.log(one_factor_mean(loadings, half))

    def bound(records: float) -> float:
        return records * math.log1p(0.5 * math.expm1(2.0 / records))

    assert bound(1.05 * effective) < exact <= bound(effective)


def test_what_is_known_of_a_function_voids_the_inflation() -> None:
    """Z_0 = (Z_1 - Z_2)/sqrt(2) with independent Z_1, Z_2: that Z_0 is near 0 makes their signs the same."""
    half = math.sqrt(0.5)
    model = GaussianField([[1.0, half, -half], [half, 1.0, 0.0], [-half, 0.0, 1.0]])
    near = 0.1
    nodes = (np.arange(20_000) + 0.5) / 20_000 * near
    density = np.exp(-(nodes**2) / 2)
    # signs differ where the sum is smaller than the difference in absolute value
    differ = float(density @ (2 * ndtr(nodes) - 1) / density.sum())
    truth = 2 - 2 * differ
    assert truth > 1.9
    restricted = model._correlation.dominating()[1:].mean()
    assert restricted < 0.95 * truth  # the diagonal above the correlations of all would be wrong
    assert model.given([0]).variance_inflation() == 2.0


def orthants_of_three(matrix: np.ndarray) -> np.ndarray:
    """Probabilities of the eight sign patterns of three Gaussians, by the arcsine law."""
    angles = np.arcsin(matrix[np.triu_indices(3, 1)]) / (4 * math.pi)
    signs = np.array([[a, b, c] for a in (1, -1) for b in (1, -1) for c in (1, -1)])
    pairs = np.stack([signs[:, 0] * signs[:, 1], signs[:, 0] * signs[:, 2], signs[:, 1] * signs[:, 2]], axis=1)
    return np.asarray(0.125 + pairs @ angles)


@pytest.mark.slow
def test_signs_of_three_with_any_correlations() -> None:
    rng = np.random.default_rng(11)
    signs = np.array([[a, b, c] for a in (1, 0) for b in (1, 0) for c in (1, 0)])
    largest = 0.0
    for _ in range(200):
        vectors = rng.standard_normal((3, int(rng.integers(1, 4))))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        matrix = np.clip(vectors @ vectors.T, -1, 1)
        np.fill_diagonal(matrix, 1.0)
        law = orthants_of_three(matrix)
        model = GaussianField(matrix)
        bound, effective = model.variance_inflation("copula"), model.effective_records()
        for flips in range(4):  # which signs count as 1
            means = np.abs(signs - np.array([flips & 1, flips >> 1, 0])).mean(axis=1)
            for u in (0.1, 2.0, 8.0):
                exact = math.log(float(law @ np.exp(u * means)))
                found = (exact - u * 0.5) * 24 / u**2
                largest = max(largest, found / bound)
                assert found <= bound * (1 + 1e-9)
                assert exact <= effective * math.log1p(0.5 * math.expm1(u / effective)) + 1e-12
    assert largest > 0.95  # five per cent less would be refuted
