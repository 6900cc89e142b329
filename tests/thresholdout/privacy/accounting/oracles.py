"""Slow and independent twins: worst pairs by enumeration, binomials in many digits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import mpmath as mp

mp.mp.dps = 50


def worst_pair(eps: float, delta: float) -> list[tuple[mp.mpf, mp.mpf]]:
    """Return the four outcomes' probabilities under both hypotheses."""
    E, d = mp.exp(mp.mpf(eps)), mp.mpf(delta)
    p = [d, (1 - d) * E / (1 + E), (1 - d) / (1 + E), mp.mpf(0)]
    return list(zip(p, p[::-1], strict=True))


def product_hockey_stick(steps: Sequence[tuple[float, float]], eps_total: float) -> mp.mpf:
    """Return the hockey-stick divergence of the product of worst pairs, outcome by outcome."""
    total, e = mp.mpf(0), mp.exp(mp.mpf(eps_total))
    for outcome in itertools.product(*[worst_pair(*step) for step in steps]):
        p, q = mp.mpf(1), mp.mpf(1)
        for a, b in outcome:
            p, q = p * a, q * b
        total += max(mp.mpf(0), p - e * q)
    return total


def equal_delta(eps: float, delta: float, eps_total: float, T: int) -> mp.mpf:
    """Return the optimal delta of equal steps, as the sum in the theorem."""
    x, e, total = mp.mpf(eps), mp.mpf(eps_total), mp.mpf(0)
    log_norm = T * mp.log1p(mp.exp(-x))  # of (1 + e^eps)^T, with e^(T eps) taken out
    for lost in range(T + 1):
        gap = (T - 2 * lost) * x - e
        if gap <= 0:
            break
        total += mp.binomial(T, lost) * mp.exp(-lost * x - log_norm) * (1 - mp.exp(-gap))
    survives = (1 - mp.mpf(delta)) ** T
    return (1 - survives) + survives * total


def bernoulli_tail(eps: float, T: int, eps_total: float) -> mp.mpf:
    """Return exp(-T KL(Bernoulli(a) || Bernoulli(p)))."""
    x, e = mp.mpf(eps), mp.mpf(eps_total)
    a, p = (T * x + e) / (2 * T * x), 1 / (1 + mp.exp(-x))
    rest = (1 - a) * mp.log((1 - a) / (1 - p)) if a < 1 else mp.mpf(0)
    return mp.exp(-T * (a * mp.log(a / p) + rest))


def gaussian_delta(mu: float, eps: float) -> mp.mpf:
    """Return the delta of a Gaussian step."""
    m, e = mp.mpf(mu), mp.mpf(eps)

    def cumulative(x: mp.mpf) -> mp.mpf:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    with mp.workdps(80):
        return cumulative(m / 2 - e / m) - mp.exp(e) * cumulative(-m / 2 - e / m)
