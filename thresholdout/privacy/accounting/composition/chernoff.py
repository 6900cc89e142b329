"""The Chernoff bound on the privacy loss of equal steps, with the sign that its derivation gives."""

from __future__ import annotations

import math
from fractions import Fraction

from graphs.numerics.rounding import up_relative
from thresholdout.privacy.accounting.binomial_probabilities import deviance, logistic
from thresholdout.privacy.accounting.bound_arguments import count, number, open_unit, positive, steps
from thresholdout.privacy.accounting.composition.adaptive_steps import candidates
from thresholdout.privacy.accounting.parameter_sums import TINY, any_of, tail_slack
from thresholdout.privacy.accounting.results import Composition

__all__ = ["chernoff_delta", "compose_chernoff", "log_tail"]


def log_tail(eps: float, T: int, eps_total: float) -> float:
    """Return the logarithm of the Chernoff bound, ``-T KL(Bernoulli(a) || Bernoulli(e^eps/(1+e^eps)))``.

    Parameters
    ----------
    eps : float
        Of each step, above 0.
    T : int
        At least 1.
    eps_total : float
        From ``T eps tanh(eps/2)`` to ``T eps``; ``a = (T eps + eps_total)/(2 T eps)``.

    Examples
    --------
    >>> round(log_tail(0.1, 100, 5.7561055193), 6)
    -14.87661
    """
    success, failure = logistic(eps)
    share = Fraction(eps_total) / Fraction(eps)  # successes less failures, exact as few losses may be left
    wins, losses = float((T + share) / 2), float((T - share) / 2)
    return -float(deviance(wins, T * success)) - float(deviance(losses, T * failure))


def chernoff_delta(eps: float, T: int, eps_total: float) -> float:
    """Return a bound on the delta of T pure steps at a total epsilon.

    Parameters
    ----------
    eps : float
        Of each step; above 0.
    T : int
        How many steps.
    eps_total : float
        Any finite number.

    Returns
    -------
    float
        In [0, 1], rounded up: 0 from ``T eps`` on, and 1 below ``T eps tanh(eps/2)``, where the bound does not hold.

    Notes
    -----
    [He, Corollary 3] with the sign corrected (defects D2, D3; PROOFS.md, C4). `log_tail` has the closed form.

    Examples
    --------
    >>> chernoff_delta(0.1, 100, 5.756105519335735)
    3.460...e-07
    """
    eps, T, eps_total = positive(eps, "eps"), count(T, "T"), number(eps_total, "eps_total")
    if Fraction(eps_total) >= T * Fraction(eps):
        return 0.0
    if eps_total <= T * eps * math.tanh(eps / 2):
        return 1.0
    return min(1.0, up_relative(math.exp(log_tail(eps, T, eps_total)), tail_slack(T)) + TINY)


def compose_chernoff(eps: float, delta: float, T: int, dt: float) -> Composition:
    """Return the composition of equal steps at the third epsilon of `compose_kov`, with a smaller delta.

    Parameters
    ----------
    eps, delta : float
        Of each step; eps at least 0, delta in [0, 1).
    T : int
        How many steps.
    dt : float
        Slack in (0, 1) that fixes the epsilon.

    Returns
    -------
    Composition
        ``(e3, 1 - (1 - delta)^T (1 - chernoff_delta))``, or basic composition where e3 is not below ``T eps``. The
        delta is at most the one of `compose_kov`.

    Examples
    --------
    >>> found = compose_chernoff(0.1, 1e-6, 100, 1e-6)
    >>> round(found.eps, 10), round(found.delta, 9)
    (5.7561055193, 0.000100341)
    """
    found, dt = steps(eps, delta, count(T, "T")), open_unit(dt, "dt")
    three = candidates(found, dt)
    if three.e3 >= three.e1:
        return Composition(three.e1, any_of(found), "chernoff", True, {"active": "e1", "tail": 0.0})
    tail = min(dt, chernoff_delta(eps, T, three.e3))
    total = any_of(found, tail)
    return Composition(three.e3, total, "chernoff", True, {"active": "e3", "tail": tail})
