"""Basic and advanced composition of adaptive steps, each a valid guarantee."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import UNIT, up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.binomial_probabilities import deviance, logistic
from thresholdout.privacy.accounting.bound_arguments import (
    TINY,
    Steps,
    any_of,
    chosen,
    count,
    number,
    open_unit,
    positive,
    probability,
    steps,
    sum_up,
    tail_slack,
    unit,
)
from thresholdout.privacy.accounting.results import Composition, PrivacyParams, UnsoundBoundWarning

__all__ = [
    "FORMULAS",
    "Candidates",
    "amplified",
    "candidates",
    "chernoff_delta",
    "compose_basic",
    "compose_chernoff",
    "compose_dwork_roth",
    "compose_kov",
    "compose_theorem5",
    "gaussian_delta",
    "gaussian_step",
    "is_pure",
    "log_tail",
    "subsample",
]


class Candidates(NamedTuple):
    """The three epsilons of Kairouz, Oh and Viswanath; each is valid."""

    e1: float
    e2: float
    e3: float

    @property
    def active(self) -> str:
        """Name of the smallest; the first of equals."""
        return self._fields[self.index(min(self))]


def candidates(found: Steps, dt: float) -> Candidates:
    """Return the three epsilons of a composition with slack dt, rounded up (PROOFS.md, C3)."""
    groups, counts = found.eps.tolist(), found.counts.tolist()
    drift = math.fsum(c * e * math.tanh(e / 2) for e, c in zip(groups, counts, strict=True))
    squares = math.fsum(c * e * e for e, c in zip(groups, counts, strict=True))
    e1 = sum_up(groups, counts)
    e2 = up_relative(drift + math.sqrt(2.0 * squares * math.log(math.e + math.sqrt(squares) / dt)))
    e3 = up_relative(drift + math.sqrt(-2.0 * squares * math.log(dt)))
    return Candidates(e1, e2, e3)


def compose_basic(eps: Any, delta: Any = 0.0, T: int | None = None, *, union: bool = False) -> Composition:
    """Compose steps by the sum of their epsilons, with the deltas as independent events or, with `union`, added up."""
    found = steps(eps, delta, T)
    total = sum_up(found.eps.tolist(), found.counts.tolist())
    added = min(1.0, sum_up(found.delta.tolist(), found.counts.tolist()))
    return Composition(total, added if union else any_of(found), "basic", True, {"steps": found.total})


def compose_dwork_roth(eps: Any, delta: Any, dt: float, T: int | None = None) -> Composition:
    """Compose steps by the advanced composition of Dwork and Roth.

    It is ``(sum eps_i (e^eps_i - 1) + sqrt(2 Q ln(1/dt)), dt + sum delta_i)``, Q the sum of the squared epsilons;
    epsilon is infinite if that exceeds the largest float.
    """
    found, dt = steps(eps, delta, T), open_unit(dt, "dt")
    pairs = list(zip(found.eps.tolist(), found.counts.tolist(), strict=True))
    # Each term of the drift, and their sum, stay below the largest float, about e^709.78.
    fits = all(e == 0 or e + math.log(e) + math.log(found.total) < 708.0 for e, _ in pairs)
    drift = math.fsum(c * e * math.expm1(e) for e, c in pairs) if fits else math.inf
    squares = math.fsum(c * e * e for e, c in pairs)
    total = up_relative(drift + math.sqrt(-2.0 * squares * math.log(dt)))
    added = sum_up([*found.delta.tolist(), dt], [*found.counts.tolist(), 1])
    return Composition(total, min(1.0, added), "dwork_roth", True, {"steps": found.total})


def compose_kov(eps: Any, delta: Any, dt: float, T: int | None = None) -> Composition:
    """Compose steps by Kairouz, Oh and Viswanath: ``(min(e1, e2, e3), 1 - (1 - dt) prod(1 - delta_i))``.

    Notes
    -----
    With A, Q the sums of the epsilons and their squares and B the sum of ``eps_i tanh(eps_i/2)``: ``e1 = A``, ``e2 = B
    + sqrt(2 Q ln(e + sqrt(Q)/dt))``, ``e3 = B + sqrt(2 Q ln(1/dt))`` [Kairouz, Oh, Viswanath, Theorem 3.5; PROOFS.md,
    C3]. If e1 is the smallest, dt is not needed and left out of delta; ``details["literal_delta"]`` has it.
    """
    found, dt = steps(eps, delta, T), open_unit(dt, "dt")
    three = candidates(found, dt)
    literal = any_of(found, dt)
    delta_total = any_of(found) if three.active == "e1" else literal  # basic composition needs no dt
    details = {**three._asdict(), "active": three.active, "literal_delta": literal, "steps": found.total}
    return Composition(min(three), delta_total, "kov", True, details)


def compose_theorem5(eps: Any, dt: float, T: int | None = None) -> Composition:
    """Compose pure steps with the third epsilon of `compose_kov` and delta dt [He, Theorem 5, "IV"; PROOFS.md, C3]."""
    found, dt = steps(eps, 0.0, T), open_unit(dt, "dt")
    return Composition(candidates(found, dt).e3, dt, "IV", True, {"steps": found.total})


def is_pure(found: Steps) -> bool:
    """Whether no step has a delta."""
    return not np.any(found.delta)


def log_tail(eps: float, T: int, eps_total: float) -> float:
    """Return the logarithm of the Chernoff bound, ``-T KL(Bernoulli(a) || Bernoulli(e^eps/(1+e^eps)))``."""
    success, failure = logistic(eps)
    share = Fraction(eps_total) / Fraction(eps)  # successes less failures: exact, since few failures may be left
    wins, losses = float((T + share) / 2), float((T - share) / 2)
    return -float(deviance(wins, T * success)) - float(deviance(losses, T * failure))


def chernoff_delta(eps: float, T: int, eps_total: float) -> float:
    """Bound the delta of T pure steps at a total epsilon: 0 from ``T eps`` on, and 1 below ``T eps tanh(eps/2)``.

    Notes
    -----
    [He, Corollary 3] with the sign corrected (defects D2, D3; PROOFS.md, C4). The bound does not hold below ``T eps
    tanh(eps/2)``. `log_tail` has the closed form.
    """
    eps, T, eps_total = positive(eps, "eps"), count(T, "T"), number(eps_total, "eps_total")
    if Fraction(eps_total) >= T * Fraction(eps):
        return 0.0
    if eps_total <= T * eps * math.tanh(eps / 2):
        return 1.0
    return min(1.0, up_relative(math.exp(log_tail(eps, T, eps_total)), tail_slack(T)) + TINY)


def compose_chernoff(eps: float, delta: float, T: int, dt: float) -> Composition:
    """Compose equal steps at the third epsilon of `compose_kov`, with a delta that is at most the one of `compose_kov`.

    It is ``(e3, 1 - (1 - delta)^T (1 - chernoff_delta))``, or basic composition if e3 is not below ``T eps``.
    """
    found, dt = steps(eps, delta, count(T, "T")), open_unit(dt, "dt")
    three = candidates(found, dt)
    if three.e3 >= three.e1:
        return Composition(three.e1, any_of(found), "chernoff", True, {"active": "e1", "tail": 0.0})
    tail = min(
        dt, chernoff_delta(eps, T, three.e3)
    )  # Hoeffding, which gives e3, is weaker: the minimum is for rounding
    total = any_of(found, tail)
    return Composition(three.e3, total, "chernoff", True, {"active": "e3", "tail": tail})


FORMULAS = ("corrected", "paper")


def gaussian_delta(sensitivity: float, noise_std: float, eps: float) -> float:
    """Return the smallest delta of a Gaussian step at an epsilon, rounded up.

    Notes
    -----
    ``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)``, mu = sensitivity/noise_std [Balle, Wang, 2018, Theorem 8].
    """
    mu = positive(sensitivity, "sensitivity") / positive(noise_std, "noise_std")
    return _delta(mu, positive(eps, "eps", zero=True))


def _delta(mu: float, eps: float) -> float:
    from scipy.special import erfcx, ndtr

    if mu == 0.0:  # the ratio is below the smallest float
        return TINY
    near = eps / mu - mu / 2
    if near < -40.0:  # the normal law has less than the smallest float there; squares of a larger mu would overflow
        return 1.0
    if near == math.inf:
        return TINY
    far = near + mu
    # e^eps times the tail at `far` is the density at `near` times a Mills ratio. `near` itself is rounded, and the
    # derivative of the difference by it is at most three times the density (PROOFS.md, S1).
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
    """Return an epsilon of a Gaussian step at a delta: the closed form, or with `exact` the smallest one.

    The closed form is ``mu^2/2 + mu sqrt(2 ln(1/delta))``, mu = sensitivity/noise_std, rounded up (PROOFS.md, S1).
    """
    mu = positive(sensitivity, "sensitivity") / positive(noise_std, "noise_std")
    delta = open_unit(delta, "delta")
    high = up_relative(mu * mu / 2 + mu * math.sqrt(-2.0 * math.log(delta)))
    if not math.isfinite(high):
        raise InputError("sensitivity", f"{mu:g} times the noise", "less than 1e150 times the noise")
    if not exact:
        return high
    if _delta(mu, high) > delta:  # a delta near the smallest floats, where rounding is all there is
        return high
    low = 0.0
    if _delta(mu, low) <= delta:
        return low
    return bisect(lambda eps: _delta(mu, eps) <= delta, low, high, close=lambda low, high: high - low <= 4e-16 * high)


def subsample(eps: float, delta: float, q: float, formula: str = "corrected") -> PrivacyParams:
    """Return the privacy of a mechanism on a random subset of a share q of the records, without replacement.

    Notes
    -----
    Neighbours replace one record. Corrected, it is ``(ln(1 + q (e^eps - 1)), q delta)``, rounded up [Balle, Barthe,
    Gaboardi, Theorem 9; PROOFS.md, S2]. The published ``(2 q eps, q delta)`` is no guarantee if 2 q eps is below that,
    for small q from eps = 1.2564 on (defect D14).
    """
    eps, delta, q = positive(eps, "eps", zero=True), probability(delta, "delta"), unit(q, "q")
    formula = chosen(formula, "formula", FORMULAS)
    # q delta is rounded up, and never above delta itself.
    smaller = 0.0 if q == 0 or delta == 0 else min(delta, math.nextafter(q * delta, math.inf))
    exact = amplified(eps, q)
    if formula == "corrected":
        return PrivacyParams(min(eps, up_relative(exact)) if q > 0 else 0.0, smaller)
    sound = 2 * q * eps >= exact
    if not sound:
        message = (
            f"2 q eps = {2 * q * eps:.6g} is below the exact amplification, {exact:.6g}, so it is not a valid bound."
        )
        warnings.warn(message, UnsoundBoundWarning, stacklevel=2)
    return PrivacyParams(2 * q * eps, q * delta, sound)


def amplified(eps: float, q: float) -> float:
    """Return ``ln(1 + q (e^eps - 1))``, for epsilons of any size."""
    if q == 0 or eps == 0:
        return 0.0
    if eps < 700:  # e^eps is finite
        return math.log1p(q * math.expm1(eps))
    return eps + math.log(q + (1 - q) * math.exp(-eps))
