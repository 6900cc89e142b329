"""Exact moments of step functions of few Gaussian values, by quadrature that is exact to about 1e-12.

Two families: values that share one Gaussian (``R_ij = a_i a_j``), where the records are independent given it, and
series of order one, which are integrated one record after the other. `worst_inflation` looks for the functions and
the u with the largest ``8 n/u^2 ln E exp(u (q - E q))``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr

from graphs.numerics.arguments import FloatArray

__all__ = ["Steps", "one_factor_mean", "series_mean", "worst_inflation"]

#: A step function: jumps at some points, the value before the first, between them, and after the last.
Steps = tuple[FloatArray, FloatArray]

#: Mean of a product of step functions, one for each record.
Mean = Callable[[Sequence[Steps]], float]

REACH = 9.0


def one_factor_mean(loadings: FloatArray, steps: Sequence[Steps]) -> float:
    """Return E prod F_i(a_i U + (1 - a_i^2)^(1/2) W_i)."""
    nodes, weights = _panels(np.linspace(-REACH, REACH, 361), 6)
    product = weights * _normal(nodes)
    for loading, (jumps, values) in zip(loadings, steps, strict=True):
        rest = math.sqrt(max(1 - loading**2, 1e-300))
        below = ndtr((jumps[:, None] - loading * nodes) / rest)
        shares = np.diff(np.vstack([np.zeros_like(nodes), below, np.ones_like(nodes)]), axis=0)
        product = product * (values @ shares)
    return float(product.sum())


def series_mean(coefficient: float, steps: Sequence[Steps]) -> float:
    """Return E prod F_i(Z_i) for a stationary series with Z_t = coefficient Z_{t-1} + noise."""
    width = math.sqrt(1 - coefficient**2)
    jumps = np.concatenate([jumps for jumps, _ in steps])
    grid = np.linspace(-REACH, REACH, math.ceil(2 * REACH / min(width, 1.0)) + 1)
    nodes, weights = _panels(np.unique(np.clip(np.r_[grid, jumps], -REACH, REACH)), 16)
    kernel = _normal((nodes[None, :] - coefficient * nodes[:, None]) / width) / width * weights
    ahead = np.ones_like(nodes)
    for place, (at, values) in enumerate(reversed(steps)):
        if place:
            ahead = kernel @ ahead
        ahead = ahead * values[np.searchsorted(at, nodes)]
    return float((weights * _normal(nodes)) @ ahead)


def worst_inflation(mean: Mean, n: int, rng: np.random.Generator, starts: int = 3, cuts: int = 1) -> float:
    """Return the largest 8 n/u^2 ln E exp(u (q - E q)) found over u and over steps between 0 and 1, `cuts` jumps each.

    A search from several starts over the jumps, with the values 0 and 1 in turn, in either order.
    """

    def objective(point: FloatArray, rising: FloatArray) -> float:
        u = math.exp(min(max(point[0], -3.0), 5.0))
        tilted, centre = [], 0.0
        for jumps, first in zip(np.sort(point[1:].reshape(n, cuts), axis=1), rising, strict=True):
            values = (np.arange(cuts + 1) + first) % 2
            centre += float(np.diff(np.r_[0.0, ndtr(jumps), 1.0]) @ values) / n
            tilted.append((jumps, np.exp(u * values / n)))
        return -(math.log(mean(tilted)) - u * centre) * 8 * n / u**2

    best = 0.0
    for start in range(starts):
        rising = np.zeros(n) if start == 0 else rng.integers(0, 2, n).astype(float)
        jumps = np.zeros(n * cuts) if start == 0 and cuts == 1 else rng.normal(size=n * cuts)
        found = minimize(
            objective, np.r_[-1.0, jumps], (rising,), method="Nelder-Mead", options={"maxfev": 40 * n * cuts}
        )
        best = max(best, -float(found.fun))
    return best


def _normal(x: FloatArray) -> FloatArray:
    density: FloatArray = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return density


def _panels(edges: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights between neighbouring edges."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    centre = (edges[:-1, None] + edges[1:, None]) / 2
    return (centre + half * nodes).ravel(), (half * weights).ravel()
