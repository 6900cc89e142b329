"""Slow twins in 40 digits, and brute force over tiny data sets; written from the definitions, not from the package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

MIXTURE = Sequence[tuple[float, float]]  # weight, shift


def _ratio(t: Any, mixture: Any) -> Any:
    return mpmath.fsum(w * mpmath.exp(m * t - m * m / 2) for w, m in mixture)


def renyi(mixture: Any, alpha: float, *, added: bool = False) -> Any:
    """Return the Renyi divergence of a mixture of normal laws and N(0, 1), of the second from the first when added."""
    with mpmath.workdps(40):
        pairs = [(mpmath.mpf(w), mpmath.mpf(m)) for w, m in mixture]
        power = 1 - mpmath.mpf(alpha) if added else mpmath.mpf(alpha)
        top = max(m for _, m in pairs)

        def integrand(t: Any) -> Any:
            ratio = _ratio(t, pairs)
            return mpmath.npdf(t) * (ratio**power - 1 - power * (ratio - 1))

        last = max(power, 1) * top + 11
        pieces = max(6, int((last + 11) * max(1, top / 2)) // 3)
        excess = mpmath.quad(integrand, mpmath.linspace(-11, last, pieces), method="gauss-legendre", maxdegree=5)
        return mpmath.log1p(excess) / (mpmath.mpf(alpha) - 1)


def without_replacement(alpha: float, sigma: float, q: float) -> Any:
    return renyi([(1 - mpmath.mpf(q), 0), (mpmath.mpf(q), 2 / mpmath.mpf(sigma))], alpha)


def with_replacement(alpha: float, sigma: float, draws: int, records: int, *, added: bool = False) -> Any:
    with mpmath.workdps(40):
        p = mpmath.mpf(1) / records
        a = 2 / mpmath.mpf(sigma)
        weights = [(mpmath.binomial(draws, n) * p**n * (1 - p) ** (draws - n), n * a) for n in range(draws + 1)]
    return renyi(weights, alpha, added=added)


def envelope(alpha: float, sigma: float, q: float) -> Any:
    """Return the envelope by its definition, an integral over gamma of the one-step hockey-stick divergence."""
    with mpmath.workdps(30):
        a, al, q = 2 / mpmath.mpf(sigma), mpmath.mpf(alpha), mpmath.mpf(q)

        def stick(gamma: Any) -> Any:
            inner = 1 + (gamma - 1) / q
            e = mpmath.log(inner)
            return q * (mpmath.ncdf(a / 2 - e / a) - inner * mpmath.ncdf(-a / 2 - e / a))

        def integrand(lam: Any) -> Any:  # gamma = exp(lam)
            gamma = mpmath.exp(lam)
            return al * (al - 1) * (gamma ** (al - 1) + gamma**-al) * stick(gamma)

        top = mpmath.log1p(q * mpmath.expm1(a * (a * al + 12)))
        marks = [mpmath.log1p(q * mpmath.expm1(a * a * k / 2)) for k in (0, 1, 2)] if a > 1 else [mpmath.mpf(0)]
        grid = [top * mpmath.mpf(i) ** 2 / 144 for i in range(13)]
        return mpmath.log1p(mpmath.quad(integrand, sorted(set(grid + marks)))) / (al - 1)


def finite(ones: Any, others: Any, alpha: float, sigma: float, weights: Any = None) -> float:
    """Return the Renyi divergence of two mixtures of normal laws on the line, given by equally likely means."""
    p, q = np.asarray(ones, dtype=float) / sigma, np.asarray(others, dtype=float) / sigma
    reach = 2 * alpha * max(np.abs(p).max(), np.abs(q).max()) + 10
    step = 0.05
    t = np.arange(-reach, reach, step)

    def log(means: Any) -> Any:
        w = np.full(means.size, 1 / means.size) if weights is None else weights
        logs = t[:, None] * means - 0.5 * means**2 + np.log(w)
        peak = logs.max(axis=1)
        return peak + np.log(np.exp(logs - peak[:, None]).sum(axis=1))

    logs = alpha * log(p) + (1 - alpha) * log(q) - 0.5 * t * t
    peak = float(logs.max())
    total = math.log(float(np.exp(logs - peak).sum()) * step / math.sqrt(2 * math.pi)) + peak
    return total / (alpha - 1)


def batches(gradients: Any, size: int, *, replacement: bool = False) -> list[float]:
    """Return the sums over all batches, each as often as it is likely."""
    n = range(len(gradients))
    chosen: Any = itertools.product(n, repeat=size) if replacement else itertools.combinations(n, size)
    return [float(sum(gradients[i] for i in batch)) for batch in chosen]
