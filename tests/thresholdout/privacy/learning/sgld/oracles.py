"""Slow and independent twins: the chain step by step, probabilities in many digits, divergences by quadrature."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid

Floats = NDArray[np.float64]
SYSTEM_A: dict[str, Any] = {"n": 100, "c": 100**1.2, "x_h": 1.0, "alpha": 1.0, "beta": 4.0}
SYSTEM_G: dict[str, Any] = {"n": 10, "c": 1.0, "x_h": 1.0, "alpha": 1.0, "beta": 4.0}
FIGURE_1: dict[str, Any] = {"n": 17_864_389, "c": 20_920_252.506786935, "x_h": 1.8, "alpha": 2.0, "beta": 1.0}


def recursion(
    n: int, c: float, x_h: float, alpha: float, beta: float, steps: int, r: int | None, eta: float, batch_size: int = 1
) -> tuple[float, float]:
    """Return mean and variance after some steps, one by one, from the gradients themselves."""
    mean, var = 0.0, 1.0 / alpha
    sweep = n // batch_size
    for step in range(1, steps + 1):
        inputs = [x_h] * batch_size
        if r is not None and (step - 1) % sweep + 1 == r:
            inputs[0] = x_h / 2
        slope = alpha + n / batch_size * sum(beta * x * x for x in inputs)
        pull = n / batch_size * sum(beta * x * c * x for x in inputs)
        factor = 1.0 - eta / 2 * slope
        mean, var = factor * mean + eta / 2 * pull, factor**2 * var + eta
    return mean, var


def tail_epsilon(n: int, c: float, x_h: float, alpha: float, beta: float, K: int, delta: float) -> mp.mpf:
    """Return the bound of the exact tail in 40 digits, from the recursion over records and epochs."""
    with mp.workdps(40):
        u = mp.mpf(alpha) + n * mp.mpf(x_h) ** 2 * mp.mpf(beta)
        eta = 2 / u**2
        total = mp.mpf(0)
        first = _moments(n, c, x_h, alpha, beta, K, None, eta)
        for r in range(1, n + 1):
            mean, var = _moments(n, c, x_h, alpha, beta, K, r, eta)
            total += mp.erfc((first[0] - mean) / mp.sqrt(2 * var)) / 2
        return mp.log(mp.mpf(1) / 2 - mp.mpf(delta)) - mp.log(total / n)


def _moments(
    n: int, c: float, x_h: float, alpha: float, beta: float, K: int, r: int | None, eta: mp.mpf
) -> tuple[mp.mpf, mp.mpf]:
    s, mean, var = mp.mpf(x_h) ** 2 * mp.mpf(beta), mp.mpf(0), 1 / mp.mpf(alpha)
    for _ in range(K):
        for position in range(1, n + 1):
            share = mp.mpf(1) / 4 if position == r else mp.mpf(1)
            factor = 1 - eta / 2 * (alpha + n * s * share)
            mean, var = factor * mean + eta / 2 * n * mp.mpf(c) * s * share, factor**2 * var + eta
    return mean, var


def hockey_stick(p: Any, q: Any, eps: float, low: float, high: float, points: int = 400_001) -> float:
    """Return the integral of ``max(p - e^eps q, 0)`` for two densities."""
    grid = np.linspace(low, high, points)
    return float(trapezoid(np.maximum(p(grid) - np.exp(eps) * q(grid), 0.0), grid))


def normal_density(x: Floats, mean: float, var: float) -> Floats:
    """Return a normal density."""
    found: Floats = np.exp(-((x - mean) ** 2) / (2 * var)) / np.sqrt(2 * np.pi * var)
    return found


def renyi_by_quadrature(nu: float, m1: float, v1: float, m2: float, v2: float) -> float:
    """Return the Renyi divergence of two normal distributions; the trapezoidal rule is exact for such integrands."""
    grid = np.linspace(-80, 80, 200_001)
    logs = [-((grid - m) ** 2) / (2 * v) - 0.5 * np.log(2 * np.pi * v) for m, v in ((m1, v1), (m2, v2))]
    return float(np.log(trapezoid(np.exp(nu * logs[0] + (1 - nu) * logs[1]), grid)) / (nu - 1))
