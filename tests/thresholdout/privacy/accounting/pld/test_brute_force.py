"""Up to five steps by brute force: one integral over outcomes after another, against certified bounds.

delta of T steps at e is the mean of delta of T - 1 steps at e - loss. Nothing of the library is used: densities of
outcomes, Gauss-Legendre rules, and splines through logarithms of delta in between.
"""

import math

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from tests.sizes import corners
from thresholdout.privacy.accounting.pld.distribution import PrivacyLossDistribution
from thresholdout.privacy.accounting.pld.minibatch_steps import poisson_pairs

RULE = np.polynomial.legendre.leggauss(8)
CLOSE = 1e-5  # what splines leave, relative to delta: cells of half the width move nothing by more than 5e-6


def rule(low: float, high: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for an integral."""
    edges = np.linspace(low, high, max(2, math.ceil((high - low) / width)) + 1)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    x, w = RULE
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def losses(t: np.ndarray, sigma: float, q: float) -> np.ndarray:
    """Return the loss of outcomes when a record is removed."""
    return np.log1p(q * np.expm1(np.minimum(t / sigma - 0.5 / sigma**2, 700.0)))


def density(t: np.ndarray, sigma: float, q: float) -> np.ndarray:
    """Return the density of outcomes."""
    found = (1 - q) * np.exp(-0.5 * t**2) + q * np.exp(-0.5 * (t - 1 / sigma) ** 2)
    return np.asarray(found / math.sqrt(2 * math.pi))


def one_step(epsilons: np.ndarray, sigma: float, q: float) -> np.ndarray:
    """Return delta of a step, by a rule from where the loss is epsilon."""
    found = np.empty(epsilons.size)
    for i, epsilon in enumerate(epsilons.tolist()):
        least = math.expm1(epsilon) / q + 1.0
        start = -14.0 if least <= 0 else max(sigma * (math.log(least) + 0.5 / sigma**2), -14.0)
        t, w = rule(start, max(start, 1 / sigma) + 14.0, 0.5)
        found[i] = float((w * density(t, sigma, q)) @ -np.expm1(epsilon - losses(t, sigma, q)).clip(max=0.0))
    return found


def brute_force(sigma: float, q: float, count: int, epsilons: np.ndarray, cells: float = 1.0) -> np.ndarray:
    """Return delta of several steps when a record is removed."""
    if count == 1:
        return one_step(epsilons, sigma, q)
    t, w = rule(-10.0, 10.0 + 1 / sigma, 0.05 * cells)
    each = losses(t, sigma, q)
    weights = w * density(t, sigma, q)
    lowest, highest = float(each[0]), float(each[-1])
    # Far beyond what is asked for, since splines are wrong near their ends, where values in between need more.
    top = 1.5 * max(float(epsilons.max()), 0.0) + 20 * q - lowest * (count - 1)
    low = float(epsilons.min()) - highest * (count - 1)
    # Epsilons as dense as losses are: places of sums, and a plain grid.
    u = np.linspace(math.asinh(low / q), math.asinh(top / q), round(2000 / cells))
    grid = q * np.sinh(u)
    values = one_step(grid, sigma, q)
    for done in range(1, count):
        spline = CubicSpline(u, np.log(np.maximum(values, 1e-300)))
        wanted = grid if done < count - 1 else epsilons
        new = np.empty(wanted.size)
        for i, epsilon in enumerate(wanted.tolist()):
            at = np.clip(np.arcsinh((epsilon - each) / q), u[0], u[-1])
            new[i] = float(weights @ np.exp(spline(at)))
        values = new
    return values


def settings() -> list[tuple[float, float, int]]:
    """Return random noise, rates and numbers of steps."""
    u = np.random.default_rng(5).uniform(size=(12, 3))
    sigmas, rates = 0.5 * 16.0 ** u[:, 0], 1e-4 * 5000.0 ** u[:, 1]
    return list(zip(sigmas.tolist(), rates.tolist(), (2 + (4 * u[:, 2]).astype(int)).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "q", "count"), corners(settings(), 1))
def test_up_to_five_steps(sigma: float, q: float, count: int) -> None:
    removed, added = (PrivacyLossDistribution({pair: count}) for pair in poisson_pairs(sigma, q))
    deltas = np.repeat([1e-3, 1e-6, 1e-9], 2)
    found = np.array([[bounds.lower, bounds.upper] for bounds in map(removed.epsilon, deltas[::2])]).ravel()
    other = np.array([added.epsilon(1e-3).lower, added.epsilon(1e-3).upper])
    exact = brute_force(sigma, q, count, np.concatenate((found, -other)))
    ratios = exact[:6] / deltas
    assert (ratios[::2][found[::2] > 0] >= 1 - CLOSE).all()
    assert (ratios[1::2] <= 1 + CLOSE).all()
    assert (np.abs(ratios - 1)[found > 0] < 1e-3).all()
    # A record that is added: H_g(Q, P) = 1 - g + g H_{1/g}(P, Q).
    reverse = (-np.expm1(other) + np.exp(other) * exact[6:]) / 1e-3
    assert other[0] == 0 or reverse[0] >= 1 - CLOSE
    assert reverse[1] <= 1 + CLOSE


@pytest.mark.slow
def test_an_epsilon_that_is_too_small_is_seen() -> None:
    sigma, q, count = 1.5, 0.05, 4
    steps = {poisson_pairs(sigma, q)[0]: count}
    closer = PrivacyLossDistribution(steps).guaranteed_epsilon(1e-6) * (1 - 2e-5)
    fewer = PrivacyLossDistribution(dict.fromkeys(steps, count - 1)).guaranteed_epsilon(1e-6)
    exact = brute_force(sigma, q, count, np.array([closer, fewer]))
    assert exact[0] > 1e-6 * (1 + CLOSE)
    assert exact[1] > 1.1e-6
