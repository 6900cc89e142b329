"""Slow twins of the noise: another exact sampler, and the law in high precision.

The sampler is that of C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
Algorithms 1 and 2: rational arithmetic and uniform integers only, one draw at a time, and a construction that shares
nothing with the one under test.
"""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath


def probability(k: int, scale: Fraction, digits: int = 60) -> mpmath.mpf:
    """P(L = k), from the definition."""
    with mpmath.workdps(digits):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        return (1 - q) / (1 + q) * q ** abs(k)


def at_least(k: int, scale: Fraction, digits: int = 60) -> mpmath.mpf:
    """P(L >= k): the geometric series of the definition."""
    with mpmath.workdps(digits):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        return q**k / (1 + q) if k >= 1 else 1 - q ** (1 - k) / (1 + q)


def continuous_at_least(x: mpmath.mpf, scale: Fraction) -> mpmath.mpf:
    """P(continuous Laplace >= x)."""
    tail = mpmath.exp(-abs(x) * scale.denominator / scale.numerator) / 2
    return tail if x >= 0 else 1 - tail


def coin_floor(exponent: Fraction, bits: int, *, logistic: bool) -> int:
    """floor(2**bits p) for p = 1/(1+exp(x)) or exp(-x), with far more digits than needed."""
    with mpmath.workprec(4 * bits + 4000):
        x = mpmath.mpf(exponent.numerator) / exponent.denominator
        p = 1 / (1 + mpmath.exp(x)) if logistic else mpmath.exp(-x)
        return int(mpmath.floor(p * mpmath.mpf(2) ** bits))


def _bernoulli_exp_below_one(gamma: Fraction, rng: random.Random) -> bool:
    k = 1
    while rng.randrange(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1


def _bernoulli_exp(gamma: Fraction, rng: random.Random) -> bool:
    while gamma > 1:
        if not _bernoulli_exp_below_one(Fraction(1), rng):
            return False
        gamma -= 1
    return _bernoulli_exp_below_one(gamma, rng)


def rational_laplace(scale: Fraction, rng: random.Random) -> int:
    """One exact discrete Laplace draw by rejection, Algorithm 2 with scale = t/s."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = rng.randrange(t)
        if not _bernoulli_exp(Fraction(u, t), rng):
            continue
        v = 0
        while _bernoulli_exp(Fraction(1), rng):
            v += 1
        y = (u + t * v) // s
        negative = rng.randrange(2)
        if negative and y == 0:
            continue
        return -y if negative else y
