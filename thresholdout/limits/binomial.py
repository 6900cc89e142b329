"""Exact limits for the mean of independent records that are 0 or 1, of one law or of different laws, also behind noise.

For one law the number of ones is Bin(n, p), and the one-sided Clopper-Pearson limits are exact. Different laws with
mean p have smaller tails than Bin(n, p) from ``k >= n p + 1`` on (Hoeffding 1956, Theorem 5) and not before: with two
records, p = (2p, 0), at least one is 1 with probability 2p, more than 2p - p^2. So a limit is taken from the binomial
law only where this holds; for ``k = 1`` from the union bound ``P(S >= 1) <= n p``; and from relative entropy elsewhere
(at levels above a quarter, and below the smallest float). Every limit here is therefore valid for any laws, and for one
law it is the Clopper-Pearson limit except at ``k = 1``.

A limit concerns one fixed k: the largest p at which ``P(S >= k)`` is at most the level for every choice of laws with
mean at most p. So the best of several bounds may be taken.

*One law* (`log_one_law_tail`), for the sign test and win rates. Of K discordant records one of two models wins
Bin(K, theta), if the records are independent and have one law. That tail is about this law only, also below
``k = K theta + 1``.

*Behind a noisy edge.* A test compares a mean with a threshold, both with Laplace noise. It passes where ``K >= a +
nu``: K the holdout's integer statistic, a an edge that is fixed, nu the sum of independent Laplace variables, on
lattices (of either sign: their law is symmetric). The probability of this is

    P(K >= a + nu) = sum over m of P(nu = m) P(K >= a + m).

Let ``T(j) >= P(K >= j)`` be a bound on the tail, for all laws with the mean p. Where ln T lies below a line through
``(a, ln T(a))`` with slope -theta, the sum is at most ``T(a) E exp(-theta nu)``, and for a discrete Laplace variable
on any lattice, ``P(nu = m h)`` proportional to ``exp(-|m| h/s)``, with r = h/s and theta < 1/s,

    E exp(theta nu) = 1 / (1 - sinh(theta h/2)^2 / sinh(r/2)^2) <= 1 / (1 - theta^2 s^2),

the moment of the continuous law, since sinh(x)/x increases. (For a finer lattice than that of K the tail is read at the
next integer, where it is at most the secant.)

*Counts.* The binomial survival function S is log-concave in j, so its logarithm lies below every secant of neighbours
that is continued outside of them: with ``theta = ln S(a-1)/S(a)``, ``S(a+m) <= S(a) e^(-theta m)`` for every integer m.
For different laws S bounds the tail from ``j >= n p + 1`` on, which are the j above some integer c; for the rest a
probability is at most 1. So the sum is at most

    S(a) E exp(-theta nu) + P(nu <= c - a),    P(nu >= d) <= e^(-t d) E exp(t nu) for every t >= 0,

and the second term is small where the edge is many scales of the noise above c.

*A slope that is rounded up is valid*, for any number of records. With the exact slope theta >= 0 the line is above ln S
on both sides of a, so the sum is at most ``S(a) E exp(-theta nu)``. The bound ``1 / (1 - theta^2 s^2)`` of each moment
increases with theta. So any ``theta' >= theta`` may stand in its place, although the line of slope theta' is not above
ln S beyond a.

*Errors of the library.* Let ``e = _SLACK max(1, n/_MANY)``. A computed ln S(j) is within e/10 of the exact one from
``j >= n p + 1`` on, and within 6 e elsewhere. There the library may take powers of 1 - p, rounded to a float: their
exponent is at most n, so that the logarithm is off by ``n 2^-54`` more, which is at most 5.6 e; at ``j = n p`` 5 e were
seen, of either sign. This is measured, not proved, up to `_MOST` records (the tests repeat both). So ln S is raised by
e from ``j >= n p + 1`` on, and elsewhere by ``max(e, 7e-17 n)``, which exceeds ``n 2^-54 + e/10`` for every n and is
7 e at most. In the slope, a is such a j and a - 1 may be none: ln S(a) is then 0 to 2 e too large and ln S(a-1) 0 to
13 e, and their difference u is at least ``theta - 2 e``. The slope is ``u (1 + 1e-9) + 10 e``: the other 8 e exceed
every rounding of these few operations. Beyond `_MOST`, only relative entropy is used behind noise.

*Means.* ``T(x) = exp(-N kl(x, p))`` for x >= p, and 1 below: for every theta, ``ln T(x)`` is at most
``N ln(1 - p + p e^(theta/N)) - theta x`` (the conjugate of the relative entropy; at x = p by Jensen's inequality, and
so below). With the edge put in and the noise's moment added, this is the level at one p, in closed form, for each
theta. The search takes the best theta, and any theta is valid. *Hoeffding's form*,
``ln E exp(theta (q - p)) <= theta^2/(8N)``, gives ``-theta nu + theta^2/(8N) - theta (a - p)`` in the same way: K is q
itself, and Markov's inequality needs no tail at all.

Noise of a twentieth of a standard deviation widens an interval by 0.5 % at most from 100 records on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

from graphs.numerics.rounding import UNIT
from thresholdout.limits.entropy import coin_divergence, entropy_lower

__all__ = [
    "beta_functions",
    "binomial_lower",
    "binomial_upper",
    "log_binomial_tail",
    "log_laplace_moment",
    "log_one_law_tail",
    "noisy_binomial_lower",
    "noisy_entropy_lower",
    "noisy_hoeffding_lower",
]

_SMALLEST: Final = -650.0  # logarithm of the smallest level at which the incomplete beta function is used
_SHRINK: Final = 1.0 - 1e-9  # moves the tail by 1e-9 and more; the incomplete beta function is off by 1e-12
_SLACK: Final = 1e-10  # of a tail, in proportion to the number of records beyond `_MANY`
_POWER: Final = 7e-17  # of a tail for each record below the mean and one; above 2^-54, the rounding of 1 - p
_MANY: Final = 1e7  # records up to which the bound on a tail's error does not grow
_MOST: Final = 10**11  # records up to which the incomplete beta function was compared with 60 digits
_ABOVE: Final = 1.0 + 2.0**-51  # above the rounding of a product of a count and a mean
_SMALLEST_TAIL: Final = 1e-280  # smaller ones are near denormal floats and are bounded by relative entropy


@cache
def beta_functions() -> tuple[Any, Any]:
    """Return scipy's regularised incomplete beta function and its inverse; scipy is loaded at the first call."""
    from scipy.special import betainc, betaincinv

    return betainc, betaincinv


@lru_cache(maxsize=16)  # a limit is checked with it, and then weighed against noise
def log_binomial_tail(k: int, n: int, p: float) -> float:
    """Bound ``ln P(S >= k)`` for n independent records with mean p, of any laws; rounded up, ``-inf`` for k > n."""
    if k <= 0 or p >= 1.0:
        return 0.0
    if k > n:
        return -math.inf
    if p <= 0.0:
        return -math.inf
    mean = n * p
    # Hoeffding's theorem does not reach, or rounding of the mean could hide that
    if k < mean * _ABOVE + 1.0 + 1e-9:
        union = math.log(mean) + _SLACK if k == 1 else 0.0
        return min(0.0, union)
    betainc, _ = beta_functions()
    tail = float(betainc(k, n - k + 1, p))
    if tail > _SMALLEST_TAIL:
        return min(0.0, math.log(tail) + _slack(n))
    return min(0.0, -n * coin_divergence(k / n, p) * (1.0 - 1e-9))


def binomial_lower(k: int, n: int, log_level: float) -> float:
    """Return the lower limit for the mean of the records' expectations, given that k of n are 1."""
    if k <= 0:
        return 0.0
    if log_level >= _SMALLEST:
        _, betaincinv = beta_functions()
        level, farthest = math.exp(log_level), (k - 1.0 - 1e-5) / n  # Hoeffding's theorem reaches no farther
        p = level / n if k == 1 else float(betaincinv(k, n - k + 1, level))
        whole = k > 1 and p <= farthest
        p = _SHRINK * (p if whole or k == 1 else farthest)
        if log_binomial_tail(k, n, p) <= log_level:
            return p if whole else max(p, entropy_lower(k / n, n, log_level))
    return entropy_lower(k / n, n, log_level)


def binomial_upper(k: int, n: int, log_level: float) -> float:
    """Return the upper limit, the mirror of `binomial_lower`."""
    return 1.0 if k >= n else min(1.0, 1.0 - binomial_lower(n - k, n, log_level) + UNIT)


def log_one_law_tail(k: int, n: int, p: float) -> float:
    """Return ``ln P(Bin(n, p) >= k)``, rounded up, also below the mean."""
    if k <= 0:
        return 0.0
    if k > n or p <= 0.0:
        return -math.inf
    if p >= 1.0:
        return 0.0
    from scipy.special import betainc

    tail = float(betainc(k, n - k + 1, p))
    if tail > _SMALLEST_TAIL:
        return min(0.0, math.log(tail) + _slack_anywhere(k, n, p))
    return min(0.0, -n * coin_divergence(k / n, p) * (1.0 - 1e-9)) if k > n * p else 0.0


_ROUNDS: Final = 10  # of the search for a limit; each costs two tails of the binomial law
_RETREAT: Final = 0.05  # of a shortfall, added to the next attempt so that it lands on the valid side
_FAR: Final = -600.0  # below it the tail is not the binomial one
_NOISY_SLACK: Final = 1e-10  # of a logarithm, far above the rounding of a few operations
_ROUNDED: Final = 1.0 + 1e-9  # far above the rounding of a few operations
_STEEPEST: Final = 600.0  # slope for each record: its exponential is finite
_SECTIONS: Final = 36  # leave 3e-8 of the range of ln theta; the limit is flat around its maximum
_GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)
_DEEP: Final = -40.0  # from here on the noise may weigh more than the records


def log_laplace_moment(theta: float, scale: float) -> float:
    """Bound ``ln E exp(theta nu)`` for a Laplace variable of some scale, continuous or on any lattice; rounded up.

    It is ``-ln(1 - theta^2 scale^2)``, or ``inf`` where that is not finite.
    """
    part = (theta * scale) ** 2
    # nearer to 1 the rounding of the square would exceed the margin
    return math.inf if part >= 1.0 - 1e-6 else -math.log1p(-part) * (1.0 + 1e-9)


def noisy_binomial_lower(k: int, n: int, log_level: float, scales: tuple[float, ...]) -> float:
    """Return a lower limit for the mean, given only ``K >= k + nu``, K the number of ones among n."""
    if not any(scales):
        return binomial_lower(k, n, log_level)
    if k <= 0:
        return 0.0
    k = min(k, n)
    if n > _MOST:
        return noisy_entropy_lower(k / n, n, log_level, scales, n)

    def bound(p: float) -> tuple[float, float]:
        """Return the logarithm of the bound on the probability, and the share of it that the noise adds."""
        top = math.ceil(n * p * _ABOVE + 1.0 + 1e-6) - 1  # the largest j at which a tail of 1 is possible
        tail = log_binomial_tail(k, n, p)
        if k <= top or tail < _FAR:
            return math.inf, math.inf
        # at least the slope of the secant: a steeper one enlarges the moments, nothing else is needed of it
        theta = (_log_survival(k - 1, n, p) - tail) * (1.0 + 1e-9) + 10.0 * _slack(n)
        noise = sum(log_laplace_moment(theta, scale) for scale in scales)
        if noise == math.inf:
            return math.inf, math.inf
        beyond = _log_laplace_tail(float(k - top), scales) - tail - noise
        if beyond > 0.0:  # the noise alone reaches the edge more often than the records do
            return math.inf, math.inf
        noise += math.log1p(math.exp(beyond)) + _NOISY_SLACK
        return tail + noise, noise

    found = _largest(bound, lambda level: binomial_lower(k, n, level), log_level)
    if found > 0.0 and log_level >= _DEEP:
        return found
    return max(found, noisy_entropy_lower(k / n, n, log_level, scales, n))


def noisy_entropy_lower(
    mean: float, effective: float, log_level: float, scales: tuple[float, ...], steps: float
) -> float:
    """Return a lower limit for the expectation of a mean, given only ``q >= mean + nu / steps``."""
    if not any(scales):
        return entropy_lower(mean, effective, log_level)
    if mean <= 0.0:
        return 0.0

    def limit(theta: float) -> float:
        """Return the limit from one slope, in units of the range."""
        noise = sum(log_laplace_moment(theta, scale / steps) for scale in scales)
        lost = (noise - log_level) * _ROUNDED + _NOISY_SLACK * theta
        return math.expm1((theta * mean - lost) / effective) / math.expm1(theta / effective)

    return min(max(0.0, _best(limit, scales, steps, _STEEPEST * effective)), 1.0)


def noisy_hoeffding_lower(
    mean: float, records: float, log_level: float, scales: tuple[float, ...], steps: float
) -> float:
    """Return a lower limit from ``ln E exp(u (q - E q)) <= u^2/(8 N)``, N = `records`, behind a noisy edge."""
    if mean <= 0.0:
        return 0.0

    needed = -log_level * (1.0 + 1e-9)
    if not any(scales):
        return max(0.0, mean - math.sqrt(needed / (2.0 * records)))

    def limit(theta: float) -> float:
        """Return the limit from one slope, in units of the range."""
        noise = sum(log_laplace_moment(theta, scale / steps) for scale in scales)
        return mean - ((needed + noise) / theta + theta / (8.0 * records)) * _ROUNDED

    return max(0.0, _best(limit, scales, steps, 16.0 * records))


def _best(limit: Callable[[float], float], scales: tuple[float, ...], steps: float, most: float) -> float:
    """Return the largest value of a function that rises and then falls: golden sections of ln slope, up to `most`."""
    high = math.log(min(most, 0.999 * steps / max(scales)))  # steeper, the noise has no moment
    low = min(math.log(1e-3), high) - 7.0
    first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_first, at_second = limit(math.exp(first)), limit(math.exp(second))
    for _ in range(_SECTIONS):
        if at_first > at_second:
            high, second, at_second = second, first, at_first
            first = high - _GOLDEN * (high - low)
            at_first = limit(math.exp(first))
        else:
            low, first, at_first = first, second, at_second
            second = low + _GOLDEN * (high - low)
            at_second = limit(math.exp(second))
    return max(at_first, at_second)


def _largest(bound: Callable[[float], tuple[float, float]], plain: Callable[[float], float], log_level: float) -> float:
    """Return a p at which the bound is at most the level, near the largest; 0 where none is found.

    Without noise it would be ``plain(log_level)``. The share that the noise adds is taken from the level, a few times.
    """
    added, best = 0.0, 0.0
    small, large = 0.0, math.inf  # too little to take from the level, and enough
    for _ in range(_ROUNDS):
        p = plain(log_level - added)
        total, noise = bound(p)
        if total <= log_level:
            best, large = max(best, p), added
            if added - noise < 1e-6 * (1.0 + noise):
                break
        else:
            small = added
        wanted = noise + _RETREAT * max(0.0, noise - added) + _NOISY_SLACK
        if small < wanted < large:
            added = wanted
        elif large == math.inf:  # too near to the edge, or too far from it
            added = small + 0.25 * -log_level
        else:
            added = 0.5 * (small + large)
    return best


def _log_laplace_tail(distance: float, scales: tuple[float, ...]) -> float:
    """Bound ``ln P(nu >= distance)`` by Chernoff's bound, nu a sum of independent Laplace variables on any lattices."""
    widest = max(scales)
    far = distance / widest
    # any slope gives a bound; this one is the best for a single variable of the largest scale
    slope = (math.sqrt(1.0 + far * far) - 1.0) / far / widest
    bound = sum(log_laplace_moment(slope, scale) for scale in scales) - slope * distance
    return min(0.0, bound + _NOISY_SLACK * (1.0 + abs(bound)))


def _log_survival(k: int, n: int, p: float) -> float:
    """Return ``ln P(Bin(n, p) >= k)``, rounded up, also below the mean."""
    betainc, _ = beta_functions()
    return 0.0 if k <= 0 else math.log(float(betainc(k, n - k + 1, p))) + _slack_anywhere(k, n, p)


def _slack(n: int) -> float:
    """Return the amount by which the logarithm of a tail of n records is raised, from the mean and one on."""
    return _SLACK * max(1.0, n / _MANY)


def _slack_anywhere(k: int, n: int, p: float) -> float:
    """Return the amount by which the logarithm of a tail from any k on is raised."""
    return _slack(n) if k >= n * p * _ABOVE + 1.0 else max(_slack(n), _POWER * n)
