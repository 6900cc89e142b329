"""Generalisation bounds that follow from (eps, delta)-differential privacy alone, and their lemmas.

The loss is any [0, 1]-valued function of a hypothesis and a record. Records are independent and identically
distributed, and neighbours replace one record. R is the population risk, Rhat the empirical one.
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

_NINTH = 1 / 9 * (1 - 1e-15)  # below it 9 eps is below 1 also after rounding; an error of 1 says nothing


def on_average_bound(eps: float, delta: float, k: int = 1, rule: str = "theorem2") -> float:
    """Bound ``|E Rhat_{S_i}(h) - E R(h)|`` of an (eps, delta)-private learner that maps k databases to (h, i).

    Notes
    -----
    The rules are "theorem2", ``e^-eps k delta + 1 - e^-eps``; "corollary1", ``e^-eps k delta + eps``; "nissim_stemmer",
    ``k delta + 2 eps``, as quoted by [He]; and "tight", ``(e^eps - 1 + 2 k delta)/(e^eps + 1)``, the smallest if ``k
    delta <= 1`` (PROOFS.md, G1).
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

    Notes
    -----
    ``a = k e^-eps delta + 3 eps``. The sharp probability is 1 if ``a >= 1``, else ``2 eps/(1 + a)`` (PROOFS.md, G2).
    """
    eps, delta, k = positive(eps, "eps"), probability(delta, "delta"), count(k, "k")
    if eps > 1:
        raise InputError("eps", repr(eps), "a number in (0, 1]")
    excess = up_relative(k * math.exp(-eps) * delta + 3 * eps)
    return MultidatabaseBound(excess, eps, 1.0 if excess >= 1 else down_relative(2 * eps / (1 + excess)))


def sample_size_required(eps: float, delta: float) -> int:
    """Return the records that `high_probability_bound` needs: ``(2/eps^2) (ln 16 + eps + ln(1/delta))``, rounded up."""
    eps, delta = positive(eps, "eps"), open_unit(delta, "delta")
    exact = Fraction(up_relative(math.log(16) + eps - math.log(delta))) * 2 / Fraction(eps) ** 2
    return math.ceil(exact)


def smallest_delta(eps: float, n: int) -> float:
    """Return the smallest delta for which n records are enough, ``16 exp(eps - n eps^2/2)``, rounded up."""
    eps, n = positive(eps, "eps"), count(n, "n")
    exponent = eps - n * eps * eps / 2
    return up_relative(16 * math.exp(exponent), 1e-12) if exponent < 700 else math.inf


def smallest_eps(delta: float, n: int) -> float:
    """Return the smallest epsilon for which n records are enough: the root of ``n eps^2/2 - eps = ln(16/delta)``."""
    delta, n = open_unit(delta, "delta"), count(n, "n")
    return up_relative((1 + math.sqrt(1 + 2 * n * (math.log(16) - math.log(delta)))) / n)


def _failure(eps: float, delta: float) -> float:
    """Return ``(e^-eps delta/eps) ln(2/eps)``, rounded up, clipped to [0, 1]."""
    return min(1.0, max(0.0, up_relative(math.exp(-eps) * delta / eps * math.log(2 / eps))))


def high_probability_bound(
    eps: float, delta: float, n: int, *, on_small_n: str = "raise", conservative: bool = False
) -> GeneralizationBound:
    """Return [He, Theorem 1] for an (eps, delta)-private learner: ``|Rhat - R| < 9 eps`` but for a probability.

    Notes
    -----
    The failure probability is ``(e^-eps delta/eps) ln(2/eps)``; PROOFS.md, G3, proves it with explicit constants for
    eps < 1/9 and in both directions. `conservative` doubles it, as the paper's introduction does (defect D4); the proof
    does not need that. If n is below `sample_size_required`, or delta is 0, "inflate" uses that the learner is also
    private with a larger delta, for which n is enough.
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
        delta = max(delta, smallest_delta(eps, n), TINY)  # a learner is also private with any larger delta
    applicable = delta < 1
    failure = min(1.0, doubled * _failure(eps, delta)) if applicable else 1.0
    vacuous = failure >= 1
    return GeneralizationBound(error, failure, 1 - failure, required, applicable, vacuous, "theorem1")


def best_error(eps: float, delta: float, n: int, failure: float) -> float | None:
    """Return the smallest error of Theorem 1 at a failure probability, or None if no epsilon below 1/9 reaches it.

    It is the smallest ``9 e`` over ``e >= eps`` with ``d = max(delta, smallest_delta(e, n))`` and at most that failure.
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
    """Bound the population risk itself, ``R < emp_risk + 9 eps``, by `high_probability_bound`."""
    emp_risk = unit(emp_risk, "emp_risk")
    found = high_probability_bound(eps, delta, n)
    error = math.nextafter(emp_risk + found.error, math.inf)
    vacuous = found.vacuous or error >= 1
    return GeneralizationBound(
        error, found.failure, found.confidence, found.n_required, found.applicable, vacuous, "pac"
    )


@dataclass(frozen=True)
class PacPlan:
    """The largest training error, the privacy and the fewest records that make the population risk small."""

    training_error: float
    eps: float
    delta: float
    n: int


def pac_plan(s: float, t: float, split: float = 0.5) -> PacPlan:
    """Plan a population risk below s with probability above ``1 - t`` (PROOFS.md, G4).

    The training error is ``split s``, ``eps = (1 - split) s/9``, ``delta = t eps e^eps/ln(2/eps)``.
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

    Nothing here checks this assumption; it is implausible with noise that stays constant (defect D15).
    """
    T, K1, K2 = positive(T, "T", zero=True), positive(K1, "K1"), number(K2, "K2")
    return math.exp(min(0.0, K2 - K1 * T))


def kl_bound(eps: float, rule: str = "he") -> float:
    """Bound the Kullback-Leibler divergence, in nats, of the outputs of an eps-private mechanism on neighbours.

    Notes
    -----
    The rules are "he", ``eps tanh(eps/2)``, which randomised response attains [He, Lemma 5; PROOFS.md, V2];
    "dwork_rothblum", ``eps (e^eps - 1)/2``; and "dwork_rothblum_vadhan", ``eps (e^eps - 1)``.
    """
    eps = positive(eps, "eps", zero=True)
    rule = chosen(rule, "rule", ("he", "dwork_rothblum", "dwork_rothblum_vadhan"))
    if eps == 0:
        return 0.0
    if rule == "he":
        return up_relative(eps * math.tanh(eps / 2))
    if math.log(eps) + eps > 709.0:  # eps e^eps would exceed the largest float, about e^709.78
        return math.inf
    return up_relative(eps * math.expm1(eps) * (0.5 if rule == "dwork_rothblum" else 1.0))


def tv_bound(eps: float, delta: float) -> float:
    """Bound the total variation distance of an (eps, delta)-indistinguishable pair.

    It is ``(e^eps - 1 + 2 delta)/(e^eps + 1)``, rounded up, at most 1, and attained (PROOFS.md, V3).
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
    """Bound how far a sum of differences in ``[-a_i, a_i]`` exceeds its conditional means, and how probably.

    The deviation is ``t sqrt(sum a_i^2)``, its probability at most ``exp(-t^2/2)``; both are rounded up.
    """
    array = np.asarray(a)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf":
        raise InputError("a", f"an array of {array.dtype}, shape {array.shape}", "an array of one bound for each term")
    found = array.astype(np.float64)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError("a", "a bound that is negative or not finite", "finite numbers, 0 or more")
    t = positive(t, "t", zero=True)
    return AzumaTail(up_relative(t * math.hypot(*found.tolist())), min(1.0, up_relative(math.exp(-t * t / 2), 1e-12)))
