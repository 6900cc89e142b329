"""Exact laws of counts of independent records that are 0 or 1, and of such counts behind noisy edges."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, fsum

import mpmath as mp

__all__ = ["binomial_log_tail", "binomial_tail", "count_law", "lattice_law", "noisy_tail", "raised", "tail"]


def count_law(expectations: Sequence[float]) -> list[Fraction]:
    """Return P(S = k), k = 0..n, by multiplying the records' generating functions in fractions."""
    law = [Fraction(1)]
    for p in map(Fraction, expectations):
        law = [(1 - p) * a + p * b for a, b in zip([*law, Fraction(0)], [Fraction(0), *law], strict=True)]
    return law


def tail(law: Sequence[Fraction], k: int) -> Fraction:
    """Return P(S >= k)."""
    return sum(law[max(0, k) :], Fraction(0))


def binomial_tail(k: int, n: int, p: float, digits: int = 60) -> mp.mpf:
    """Return P(Bin(n, p) >= k) to many digits, term by term."""
    with mp.workdps(digits):
        q = mp.mpf(p)
        term = mp.binomial(n, k) * q**k * (1 - q) ** (n - k)
        total = mp.mpf(0)
        for j in range(k, n + 1):
            total += term
            term *= q / (1 - q) * (n - j) / (j + 1)
            if j > n * p and term < total * mp.mpf(10) ** (8 - digits):
                break
        return total


def binomial_log_tail(k: int, n: int, p: float, digits: int = 40) -> mp.mpf:
    """Return ln P(Bin(n, p) >= k) to many digits, also for billions of records.

    The continued fraction of the incomplete beta function (Numerical Recipes, section 6.4), on its convergent side.
    """
    with mp.workdps(digits):
        if k <= 0:
            return mp.mpf(0)
        x, a, b = mp.mpf(p), mp.mpf(k), mp.mpf(n - k + 1)
        swapped = x > (a + 1) / (a + b + 2)
        if swapped:
            x, a, b = 1 - x, b, a
        front = a * mp.log(x) + b * mp.log1p(-x) - mp.log(a) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
        c, d = mp.mpf(1), 1 / (1 - (a + b) * x / (a + 1))
        found, m = d, 0
        while True:
            m += 1
            for step in (
                m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
            ):
                d, c = 1 / (1 + step * d), 1 + step / c
                found *= c * d
            if abs(c * d - 1) < mp.mpf(10) ** (5 - digits):
                break
        whole = front + mp.log(found)
        return mp.log1p(-mp.exp(whole)) if swapped else whole


def lattice_law(step: Fraction, scale: float, reach: int) -> list[tuple[Fraction, float]]:
    """Return the discrete Laplace law on multiples of a step, cut off at `reach` steps and made a law again."""
    weights = [float(mp.exp(-abs(m) * mp.mpf(float(step)) / scale)) for m in range(-reach, reach + 1)]
    total = sum(weights)
    return [(m * step, w / total) for m, w in zip(range(-reach, reach + 1), weights, strict=True)]


def raised(noises: Sequence[Sequence[tuple[Fraction, float]]]) -> dict[int, float]:
    """Return the law of the sum of independent noises, rounded up, which makes no difference to integer counts."""
    sums: dict[Fraction, float] = {Fraction(0): 1.0}
    for noise in noises:
        after: dict[Fraction, float] = {}
        for shift, mass in sums.items():
            for value, weight in noise:
                after[shift + value] = after.get(shift + value, 0.0) + mass * weight
        sums = after
    law: dict[int, float] = {}
    for shift, mass in sums.items():
        law[ceil(shift)] = law.get(ceil(shift), 0.0) + mass
    return law


def noisy_tail(law: Sequence[Fraction], edge: int, noise: dict[int, float]) -> float:
    """Return P(S >= edge + noise), by adding up every value of a noise that `raised` has made."""
    top = len(law)
    tails = [float(tail(law, k)) for k in range(top + 1)]
    return fsum(mass * tails[min(top, max(0, edge + shift))] for shift, mass in noise.items())
