"""Generalisation bounds that follow from (eps, delta)-differential privacy alone, and the lemmas they stand on.

The loss is any [0, 1]-valued function of a hypothesis and a record, records are independent and identically
distributed, neighbours replace one record. R is the population risk, Rhat the empirical one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import down_relative, up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import (
    TINY,
    chosen,
    count,
    number,
    open_unit,
    positive,
    probability,
    unit,
)
from thresholdout.privacy.accounting.results import GeneralizationBound, SampleSizeError

__all__ = [
    "AzumaTail",
    "MultidatabaseBound",
    "PacPlan",
    "assumed_training_error",
    "azuma_tail",
    "best_error",
    "high_probability_bound",
    "kl_bound",
    "multidatabase_bound",
    "on_average_bound",
    "pac_guarantee",
    "pac_plan",
    "sample_size_required",
    "smallest_delta",
    "smallest_eps",
    "tv_bound",
]

_NINTH = 1 / 9 * (1 - 1e-15)  # errors from 1 on say nothing, rounding included


def on_average_bound(eps: float, delta: float, k: int = 1, rule: str = "theorem2") -> float:
    """Return a bound on ``|E Rhat_{S_i}(h) - E R(h)|`` of a learner that sees k databases and returns (h, i).

    Parameters
    ----------
    eps, delta : float
        Of the learner; eps at least 0, delta in [0, 1).
    k : int
        Databases; 1 is an ordinary learner.
    rule : {"theorem2", "corollary1", "nissim_stemmer", "tight"}
        ``e^-eps k delta + 1 - e^-eps``; ``e^-eps k delta + eps``; ``k delta + 2 eps``, as quoted by [He]; and ``(e^eps
        - 1 + 2 k delta)/(e^eps + 1)``, the smallest where ``k delta <= 1`` (PROOFS.md, G1).

    Returns
    -------
    float
        Rounded up; says nothing from 1 on.

    Examples
    --------
    >>> round(on_average_bound(0.5, 1e-5, 10), 12), round(on_average_bound(0.5, 1e-5, 10, "tight"), 12)
    (0.393529993353, 0.244994170537)
    """
    eps, delta, k = positive(eps, "eps", zero=True), probability(delta, "delta"), count(k, "k")
    rule = chosen(rule, "rule", ("theorem2", "corollary1", "nissim_stemmer", "tight"))
    decay, slack = math.exp(-eps), k * delta
    if rule == "theorem2":
        return up_relative(decay * slack - math.expm1(-eps))
    if rule == "corollary1":
        return up_relative(decay * slack + eps)
    if rule == "nissim_stemmer":
        return up_relative(slack + 2 * eps)
    return up_relative(math.tanh(eps / 2) + 2 * slack * decay / (1 + decay))


class MultidatabaseBound(NamedTuple):
    """An excess, and the probability that the empirical risk is within it."""

    excess: float
    probability: float
    probability_sharp: float


def multidatabase_bound(eps: float, delta: float, k: int) -> MultidatabaseBound:
    """Return the excess a of [He, Theorem 3]: ``P[Rhat_{S_i}(h) <= R(h) + a] >= eps``; a step of a proof.

    Parameters
    ----------
    eps : float
        In (0, 1].
    delta : float
        In [0, 1).
    k : int
        Databases.

    Returns
    -------
    MultidatabaseBound
        ``a = k e^-eps delta + 3 eps``, eps, and what the argument gives: 1 if ``a >= 1``, else ``2 eps/(1 + a)``
        (PROOFS.md, G2).

    Examples
    --------
    >>> multidatabase_bound(0.1, 0.0, 1).probability_sharp
    0.1538...
    """
    eps, delta, k = positive(eps, "eps"), probability(delta, "delta"), count(k, "k")
    if eps > 1:
        raise InputError("eps", repr(eps), "a number in (0, 1]")
    excess = up_relative(k * math.exp(-eps) * delta + 3 * eps)
    return MultidatabaseBound(excess, eps, 1.0 if excess >= 1 else down_relative(2 * eps / (1 + excess)))


def sample_size_required(eps: float, delta: float) -> int:
    """Return how many records `high_probability_bound` needs.

    Parameters
    ----------
    eps : float
        Above 0.
    delta : float
        In (0, 1).

    Returns
    -------
    int
        ``(2/eps^2) (ln 16 + eps + ln(1/delta))``, rounded up.

    Examples
    --------
    >>> sample_size_required(0.05, 1e-6)
    13311
    """
    eps, delta = positive(eps, "eps"), open_unit(delta, "delta")
    exact = Fraction(up_relative(math.log(16) + eps - math.log(delta))) * 2 / Fraction(eps) ** 2
    return math.ceil(exact)


def smallest_delta(eps: float, n: int) -> float:
    """Return the smallest delta for which n records are enough: ``16 exp(eps - n eps^2/2)``.

    Parameters
    ----------
    eps : float
        Above 0.
    n : int
        Records.

    Returns
    -------
    float
        Above 0, rounded up; says nothing from 1 on.

    Examples
    --------
    >>> smallest_delta(0.05, 20000)
    2.33599903573...e-10
    """
    eps, n = positive(eps, "eps"), count(n, "n")
    exponent = eps - n * eps * eps / 2
    return up_relative(16 * math.exp(exponent), 1e-12) if exponent < 700 else math.inf


def smallest_eps(delta: float, n: int) -> float:
    """Return the smallest epsilon for which n records are enough at a delta.

    Parameters
    ----------
    delta : float
        In (0, 1).
    n : int
        Records.

    Returns
    -------
    float
        The root of ``n eps^2/2 - eps = ln(16/delta)``, rounded up.

    Examples
    --------
    >>> round(smallest_eps(1e-6, 10000), 12)
    0.057698870267
    """
    delta, n = open_unit(delta, "delta"), count(n, "n")
    return up_relative((1 + math.sqrt(1 + 2 * n * (math.log(16) - math.log(delta)))) / n)


def _failure(eps: float, delta: float) -> float:
    """Return ``(e^-eps delta/eps) ln(2/eps)``, rounded up, clipped to [0, 1]."""
    return min(1.0, max(0.0, up_relative(math.exp(-eps) * delta / eps * math.log(2 / eps))))


def high_probability_bound(
    eps: float, delta: float, n: int, *, on_small_n: str = "raise", conservative: bool = False
) -> GeneralizationBound:
    """Return [He, Theorem 1]: ``|Rhat - R| < 9 eps`` but for a probability.

    Parameters
    ----------
    eps : float
        Of the learner; above 0.
    delta : float
        Of the learner; in [0, 1).
    n : int
        Records.
    on_small_n : {"raise", "inflate"}
        What to do when n is below `sample_size_required`, or delta is 0: refuse, or use that the learner is also
        private with a larger delta, for which n is enough.
    conservative : bool
        Whether to double the failure probability, as the paper's introduction states it (defect D4). The proof does
        not need it.

    Returns
    -------
    GeneralizationBound
        Error ``9 eps`` and failure ``(e^-eps delta/eps) ln(2/eps)``. Vacuous from ``eps = 1/9`` on, without an error.

    Raises
    ------
    SampleSizeError
        When there are too few records and `on_small_n` is "raise".

    Notes
    -----
    PROOFS.md, G3, has a proof with explicit constants for eps < 1/9, both directions and the undoubled failure.

    Examples
    --------
    >>> found = high_probability_bound(0.05, 1e-6, 20000)
    >>> round(found.error, 12), round(found.failure, 14), found.n_required
    (0.45, 7.01794136e-05, 13311)
    """
    eps, delta, n = positive(eps, "eps"), probability(delta, "delta"), count(n, "n")
    on_small_n = chosen(on_small_n, "on_small_n", ("raise", "inflate"))
    error = math.nextafter(9 * eps, math.inf)
    required = sample_size_required(eps, delta) if delta > 0 else None
    enough = required is not None and n >= required
    doubled = 2.0 if conservative else 1.0
    if eps >= _NINTH:
        failure = min(1.0, doubled * _failure(eps, delta))
        return GeneralizationBound(error, failure, 1 - failure, required, enough, True, "theorem1")
    if not enough:
        if on_small_n == "raise":
            raise SampleSizeError(n, required)
        delta = max(delta, smallest_delta(eps, n), TINY)
    applicable = delta < 1
    failure = min(1.0, doubled * _failure(eps, delta)) if applicable else 1.0
    vacuous = failure >= 1
    return GeneralizationBound(error, failure, 1 - failure, required, applicable, vacuous, "theorem1")


def best_error(eps: float, delta: float, n: int, failure: float) -> float | None:
    """Return the smallest error of Theorem 1 at a failure probability, with epsilon and delta inflated as needed.

    Parameters
    ----------
    eps : float
        Of the learner; above 0.
    delta : float
        Of the learner; in [0, 1).
    n : int
        Records.
    failure : float
        In (0, 1).

    Returns
    -------
    float or None
        The smallest ``9 e`` over ``e >= eps`` with ``d = max(delta, smallest_delta(e, n))`` and a failure of at most
        the given one; None when no ``e < 1/9`` has it.

    Examples
    --------
    >>> round(best_error(0.01, 0.0, 10000, 0.05), 6)
    0.406464
    >>> best_error(0.01, 0.0, 1400, 0.05) is None
    True
    """
    eps, delta, n = positive(eps, "eps"), probability(delta, "delta"), count(n, "n")
    failure = open_unit(failure, "failure")

    def reached(e: float) -> bool:
        d = max(delta, smallest_delta(e, n), TINY)
        return d < 1 and _failure(e, d) <= failure

    low, high = eps, math.nextafter(_NINTH, 0.0)
    if eps >= _NINTH or not reached(high):
        return None
    if reached(low):
        return math.nextafter(9 * low, math.inf)
    smallest = bisect(reached, low, high, close=lambda low, high: high - low <= 4e-16 * high)
    return math.nextafter(9 * smallest, math.inf)


def pac_guarantee(emp_risk: float, eps: float, delta: float, n: int) -> GeneralizationBound:
    """Return a bound on the population risk, ``R < emp_risk + 9 eps``.

    Parameters
    ----------
    emp_risk : float
        In [0, 1].
    eps, delta, n
        As in `high_probability_bound`.

    Returns
    -------
    GeneralizationBound
        Its error is the bound on the risk itself.

    Raises
    ------
    SampleSizeError
        When there are too few records.

    Examples
    --------
    >>> round(pac_guarantee(0.1, 0.05, 1e-6, 20000).error, 12)
    0.55
    """
    emp_risk = unit(emp_risk, "emp_risk")
    found = high_probability_bound(eps, delta, n)
    error = math.nextafter(emp_risk + found.error, math.inf)
    vacuous = found.vacuous or error >= 1
    return GeneralizationBound(
        error, found.failure, found.confidence, found.n_required, found.applicable, vacuous, "pac"
    )


@dataclass(frozen=True)
class PacPlan:
    """What makes the population risk small.

    Parameters
    ----------
    training_error : float
        Largest empirical risk.
    eps, delta : float
        Of the learner.
    n : int
        Fewest records.
    """

    training_error: float
    eps: float
    delta: float
    n: int


def pac_plan(s: float, t: float, split: float = 0.5) -> PacPlan:
    """Return what makes the population risk smaller than s with probability above ``1 - t``.

    Parameters
    ----------
    s, t : float
        In (0, 1).
    split : float
        Share of s for the training error, in [0, 1).

    Returns
    -------
    PacPlan
        Training error ``split s``, ``eps = (1 - split) s/9``, ``delta = t eps e^eps/ln(2/eps)``, and as many records as
        that needs (PROOFS.md, G4).

    Examples
    --------
    >>> found = pac_plan(0.5, 0.05)
    >>> round(found.eps, 12), round(found.delta, 12), found.n
    (0.027777777778, 0.000333907284, 28007)
    """
    s, t = open_unit(s, "s"), open_unit(t, "t")
    split = probability(split, "split")
    training = down_relative(split * s)
    eps = down_relative((1 - split) * s / 9)
    if not eps > 0:
        raise InputError("split", repr(split), "a number further below 1")
    delta = down_relative(t * eps * math.exp(eps) / math.log(2 / eps), 1e-13)
    return PacPlan(training, eps, delta, sample_size_required(eps, delta))


def assumed_training_error(T: float, K1: float, K2: float) -> float:
    """Return ``exp(-K1 T + K2)``, at most 1: the training error that [He, Assumption 1] assumes.

    Parameters
    ----------
    T : float
        Steps, at least 0.
    K1 : float
        Above 0.
    K2 : float
        Any finite number.

    Returns
    -------
    float
        It is an assumption, which nothing here checks; with noise that stays constant it is implausible (defect D15).

    Examples
    --------
    >>> round(assumed_training_error(100, 0.1, 1.0), 9)
    0.00012341
    """
    T, K1, K2 = positive(T, "T", zero=True), positive(K1, "K1"), number(K2, "K2")
    return math.exp(min(0.0, K2 - K1 * T))


def kl_bound(eps: float, rule: str = "he") -> float:
    """Return a bound on the Kullback-Leibler divergence of the outputs of an eps-private mechanism on neighbours.

    Parameters
    ----------
    eps : float
        At least 0.
    rule : {"he", "dwork_rothblum", "dwork_rothblum_vadhan"}
        ``eps tanh(eps/2)``, which randomised response attains [He, Lemma 5; PROOFS.md, V2]; ``eps (e^eps - 1)/2``;
        ``eps (e^eps - 1)``.

    Returns
    -------
    float
        In nats, rounded up; infinite where it is above the largest float.

    Examples
    --------
    >>> round(kl_bound(1.0), 12), round(kl_bound(1.0, "dwork_rothblum"), 12)
    (0.46211715726, 0.85914091423)
    """
    eps = positive(eps, "eps", zero=True)
    rule = chosen(rule, "rule", ("he", "dwork_rothblum", "dwork_rothblum_vadhan"))
    if eps == 0:
        return 0.0
    if rule == "he":
        return up_relative(eps * math.tanh(eps / 2))
    if math.log(eps) + eps > 709.0:
        return math.inf
    return up_relative(eps * math.expm1(eps) * (0.5 if rule == "dwork_rothblum" else 1.0))


def tv_bound(eps: float, delta: float) -> float:
    """Return the largest total variation distance of an (eps, delta)-indistinguishable pair.

    Parameters
    ----------
    eps : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        ``(e^eps - 1 + 2 delta)/(e^eps + 1)``, rounded up, at most 1 (PROOFS.md, V3).

    Examples
    --------
    >>> round(tv_bound(0.5, 1e-6), 10)
    0.2449194175
    """
    eps, delta = positive(eps, "eps", zero=True), probability(delta, "delta")
    if eps == 0:
        return delta
    decay = math.exp(-eps)
    return min(1.0, up_relative(math.tanh(eps / 2) + 2 * delta * decay / (1 + decay)))


class AzumaTail(NamedTuple):
    """A deviation and the probability of exceeding it."""

    deviation: float
    probability: float


def azuma_tail(a: Any, t: float) -> AzumaTail:
    """Return how far a sum of bounded differences exceeds the sum of its conditional means, and how probably.

    Parameters
    ----------
    a : array_like, shape (terms,)
        Each ``Y_i`` lies in ``[-a_i, a_i]``; at least 0.
    t : float
        At least 0.

    Returns
    -------
    AzumaTail
        ``t sqrt(sum a_i^2)`` and ``exp(-t^2/2)``, both rounded up.

    Examples
    --------
    >>> azuma_tail([3.0, 4.0], 2.0)
    AzumaTail(deviation=10.0000..., probability=0.1353352832...)
    """
    array = np.asarray(a)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf":
        raise InputError("a", f"an array of {array.dtype}, shape {array.shape}", "one bound for each term")
    found = array.astype(np.float64)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError("a", "a bound that is negative or not finite", "numbers, 0 or more")
    t = positive(t, "t", zero=True)
    return AzumaTail(up_relative(t * math.hypot(*found.tolist())), min(1.0, up_relative(math.exp(-t * t / 2), 1e-12)))
