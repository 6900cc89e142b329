"""Tails of the difference of two discrete Laplace numbers, from their definition."""

from __future__ import annotations

from fractions import Fraction

import mpmath


def difference_at_least(k: int, first: Fraction, second: Fraction, digits: int = 60) -> mpmath.mpf:
    """P(X - Y >= k) for independent discrete Laplace X, Y of two different scales.

    With ratios a, b the law of X - Y, that of X + Y, is the convolution of ``(1-a)/(1+a) a^|i|`` and ``(1-b)/(1+b)
    b^|i|``: at j >= 0 the constant times ``(a^(j+1) - b^(j+1))/(a-b) + (a^j + b^j) ab/(1-ab)``, the three parts being
    those of i in [0, j], i < 0 and i > j. Geometric series of these make the tail.
    """
    if k < 1:
        return 1 - difference_at_least(1 - k, first, second, digits)
    with mpmath.workdps(digits):
        a, b = (mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator) for scale in (first, second))
        constant = (1 - a) * (1 - b) / ((1 + a) * (1 + b))
        inner = (a ** (k + 1) / (1 - a) - b ** (k + 1) / (1 - b)) / (a - b)
        outer = (a**k / (1 - a) + b**k / (1 - b)) * a * b / (1 - a * b)
        return constant * (inner + outer)
