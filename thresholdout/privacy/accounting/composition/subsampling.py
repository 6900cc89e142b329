"""One Gaussian step, and what sampling a fixed-size minibatch does to its privacy parameters."""

from __future__ import annotations

import math
import warnings

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import UNIT, up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import TINY, chosen, open_unit, positive, probability, unit
from thresholdout.privacy.accounting.results import PrivacyParams, UnsoundBoundWarning

__all__ = ["FORMULAS", "amplified", "gaussian_delta", "gaussian_step", "subsample"]

FORMULAS = ("corrected", "paper")


def gaussian_delta(sensitivity: float, noise_std: float, eps: float) -> float:
    """Return the smallest delta of a Gaussian step at an epsilon.

    Parameters
    ----------
    sensitivity : float
        How far two neighbours can be apart in Euclidean norm, above 0.
    noise_std : float
        Standard deviation of the noise in each coordinate, above 0.
    eps : float
        At least 0.

    Returns
    -------
    float
        ``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)``, mu = sensitivity/noise_std, rounded up [Balle, Wang, 2018,
        Theorem 8].

    Examples
    --------
    >>> gaussian_delta(0.2, 1.0, 0.9797051824376162)
    2.97835...e-08
    """
    mu = positive(sensitivity, "sensitivity") / positive(noise_std, "noise_std")
    return _delta(mu, positive(eps, "eps", zero=True))


def _delta(mu: float, eps: float) -> float:
    from scipy.special import erfcx, ndtr

    if mu == 0.0:  # the ratio is below the smallest float
        return TINY
    near = eps / mu - mu / 2
    if not math.isfinite(near):
        return TINY
    far = near + mu
    # e^eps times the tail at `far` is the density at `near` times a Mills ratio; `near` itself is rounded, and the
    # derivative of the difference by it is at most three times the density
    density = math.exp(-min(near * near / 2, 745.0)) / 2
    moved = 8.0 * UNIT * (1.0 + abs(eps / mu) + mu) * density
    second = density * float(erfcx(far / math.sqrt(2)))
    if near > 0:
        first = density * float(erfcx(near / math.sqrt(2)))
        found = first - second + 16.0 * UNIT * first
    else:
        first = float(ndtr(-near))
        found = first - second + 16.0 * UNIT * (first + second * (1.0 + near * near))
    return min(1.0, up_relative(max(0.0, found + moved), 1e-12) + TINY)


def gaussian_step(sensitivity: float, noise_std: float, delta: float, exact: bool = False) -> float:
    """Return an epsilon of a Gaussian step at a delta.

    Parameters
    ----------
    sensitivity : float
        How far two neighbours can be apart in Euclidean norm, above 0.
    noise_std : float
        Standard deviation of the noise in each coordinate, above 0.
    delta : float
        In (0, 1).
    exact : bool
        The smallest epsilon, instead of the closed form.

    Returns
    -------
    float
        ``mu^2/2 + mu sqrt(2 ln(1/delta))`` with mu = sensitivity/noise_std, rounded up (PROOFS.md, S1).

    Examples
    --------
    >>> round(gaussian_step(0.2, 1.0, 1e-5), 12), round(gaussian_step(0.2, 1.0, 1e-5, exact=True), 6)
    (0.979705182438, 0.725522)
    """
    mu = positive(sensitivity, "sensitivity") / positive(noise_std, "noise_std")
    delta = open_unit(delta, "delta")
    high = up_relative(mu * mu / 2 + mu * math.sqrt(-2.0 * math.log(delta)))
    if not math.isfinite(high):
        raise InputError("sensitivity", f"{mu:g} times the noise", "a sensitivity below 1e150 times the noise")
    if not exact:
        return high
    if _delta(mu, high) > delta:  # a delta near the smallest floats, where rounding is all there is
        return high
    low = 0.0
    if _delta(mu, low) <= delta:
        return low
    return bisect(lambda eps: _delta(mu, eps) <= delta, low, high, close=lambda low, high: high - low <= 4e-16 * high)


def subsample(eps: float, delta: float, q: float, formula: str = "corrected") -> PrivacyParams:
    """Return the privacy parameters of a mechanism that runs on a random subset of fixed size, without replacement.

    Parameters
    ----------
    eps, delta : float
        Of the mechanism on the subset; eps at least 0, delta in [0, 1). Neighbours replace one record.
    q : float
        Share of the records in the subset, in [0, 1].
    formula : {"corrected", "paper"}
        ``(ln(1 + q (e^eps - 1)), q delta)``, rounded up [Balle, Barthe, Gaboardi, Theorem 9; PROOFS.md, S2]; or ``(2 q
        eps, q delta)``, which is no guarantee when 2 q eps is below that, for small q from eps = 1.2564 on (defect
        D14).

    Returns
    -------
    PrivacyParams

    Warns
    -----
    UnsoundBoundWarning
        When the published formula is too small.

    Examples
    --------
    >>> round(subsample(5.0, 0.0, 0.01).eps, 12)
    0.905889462138
    """
    eps, delta, q = positive(eps, "eps", zero=True), probability(delta, "delta"), unit(q, "q")
    formula = chosen(formula, "formula", FORMULAS)
    smaller = 0.0 if q == 0 or delta == 0 else min(delta, math.nextafter(q * delta, math.inf))
    exact = amplified(eps, q)
    if formula == "corrected":
        return PrivacyParams(min(eps, up_relative(exact)) if q > 0 else 0.0, smaller)
    sound = 2 * q * eps >= exact
    if not sound:
        message = f"2 q eps = {2 * q * eps:.6g} is below the exact amplification, {exact:.6g}: it is no guarantee"
        warnings.warn(message, UnsoundBoundWarning, stacklevel=2)
    return PrivacyParams(2 * q * eps, q * delta, sound)


def amplified(eps: float, q: float) -> float:
    """Return ``ln(1 + q (e^eps - 1))``, for epsilons of any size.

    Examples
    --------
    >>> amplified(1000.0, 1.0)
    1000.0
    """
    if q == 0 or eps == 0:
        return 0.0
    if eps < 700:
        return math.log1p(q * math.expm1(eps))
    return eps + math.log(q + (1 - q) * math.exp(-eps))
