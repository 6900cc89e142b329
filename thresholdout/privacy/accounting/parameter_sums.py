"""Sums and products of privacy parameters, rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from graphs.numerics.rounding import up_relative
from thresholdout.privacy.accounting.bound_arguments import Steps

__all__ = ["TINY", "any_of", "sum_up", "tail_slack"]

TINY = 1e-300  # what is left out of tails is far below


def sum_up(values: Sequence[float], counts: Sequence[int]) -> float:
    """Return the sum of values with multiplicities, rounded up: exact where it is a float.

    Examples
    --------
    >>> sum_up([0.5, 0.25], [1, 2])
    1.0
    >>> sum_up([0.1], [3]) >= 0.30000000000000004
    True
    """
    total = 0  # in units of the smallest float, 2**-1074
    for value, times in zip(values, counts, strict=True):
        numerator, denominator = value.as_integer_ratio()
        total += (numerator << (1075 - denominator.bit_length())) * times
    exact = Fraction(total, 1 << 1074)
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < exact else nearest


def any_of(steps: Steps, *extra: float) -> float:
    """Return ``1 - prod(1 - delta_i)``, rounded up; `extra` are further events.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.bound_arguments import steps
    >>> any_of(steps(0.1, 0.25, 2)) >= 0.4375
    True
    """
    exponent = math.fsum(int(c) * math.log1p(-float(d)) for c, d in zip(steps.counts, steps.delta, strict=True))
    exponent += math.fsum(math.log1p(-d) for d in extra)
    union = sum_up([*map(float, steps.delta), *extra], [*map(int, steps.counts), *[1] * len(extra)])
    return min(1.0, union, up_relative(-math.expm1(exponent)))


def tail_slack(trials: int) -> float:
    """Return a bound on the relative error of a binomial probability or exponent in `binomial` (PROOFS.md, A2)."""
    return 1e-12 + 1e-15 * math.sqrt(400.0 * trials)
