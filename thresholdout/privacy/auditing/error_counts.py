"""Lower bounds on epsilon and delta from the errors of an attack, one pair or several pairs of them jointly."""

from __future__ import annotations

import heapq
import math
from functools import lru_cache
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from graphs.numerics.bisection import bisect_each_integer, bisect_integers
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.binomial_probabilities import (
    approximate_limits,
    check_successes,
    clopper_pearson_upper,
)
from thresholdout.privacy.accounting.bound_arguments import chosen, open_unit, positive, probability
from thresholdout.privacy.auditing.audit_settings import Goal, check_goal

__all__ = [
    "METHODS",
    "Method",
    "audit_delta",
    "audit_epsilon",
    "bound",
    "check_method",
    "fitted_on",
    "joint_value",
    "method_for",
    "models_needed",
]

Floats = NDArray[np.float64]

Counts = NDArray[np.int64]

_SPLITS = 1000  # most rectangles that the search splits; stopping early only lowers the bound

_TOLERANCE = 5e-4  # loss of the search, in nats or, for delta, relative

_LEFT_OUT = 1e-9  # share of alpha that tails left out of sums may have


@lru_cache(maxsize=16)
def _log_ways(n: int) -> Floats:
    """Return logarithms of binomial coefficients."""
    k = np.arange(n + 1, dtype=np.float64)
    found: Floats = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    found.setflags(write=False)
    return found


class _Extreme:
    """Outcomes at least as extreme as the observed one, ordered by the limits of Clopper and Pearson.

    With ``x`` false positives there may be up to ``frontier[x]`` false negatives; -1 if no outcome is as extreme. The
    frontier never rises.
    """

    def __init__(self, goal: Goal, fp: int, n_fp: int, fn: int, n_fn: int, alpha: float) -> None:
        first, second = approximate_limits(n_fp, alpha / 2.0), approximate_limits(n_fn, alpha / 2.0)
        seen = goal.order(first[[fp]], second[[fn]])[0]
        frontier = bisect_each_integer(
            lambda negatives: goal.order(first, second[negatives]) >= seen,
            np.full(n_fp + 1, n_fn + 1),
            np.full(n_fp + 1, -1),
        )
        self.most = int(np.flatnonzero(frontier >= 0)[-1])
        self.frontier = frontier[: self.most + 1]
        self.n_fp, self.n_fn, self.alpha = n_fp, n_fn, alpha
        self._ways = [_log_ways(n) for n in (n_fp, n_fn)]
        size = max(n_fp, n_fn)
        # Logarithms of binomial masses have sizes up to n ln(n + 1), and errors of some units of that.
        self._slack = 1e-9 + 2.0**-47 * size * math.log(size + 1.0)
        self._reach = math.log(4.0 / (_LEFT_OUT * alpha))  # each of four tails gets a quarter of the share

    def _window(self, which: int, n: int, rate: float) -> tuple[int, Floats]:
        """Return the probabilities of the numbers of events that matter, and the first of these numbers."""
        mean, third = n * rate, self._reach / 3.0
        reach = third + math.sqrt(third**2 + 2.0 * self._reach * mean * (1.0 - rate))  # Bernstein
        first, last = max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach))
        k = np.arange(first, last + 1, dtype=np.float64)
        logs = special.xlogy(k, rate) + special.xlog1py(n - k, -rate)
        with np.errstate(under="ignore"):
            return first, np.exp(self._ways[which][first : last + 1] + logs)

    def masses(self, fp_rate: float) -> tuple[Counts, Floats]:
        """Return the extreme numbers of false negatives by the number of false positives, and its mass."""
        first, masses = self._window(0, self.n_fp, fp_rate)
        frontier = self.frontier[first : first + masses.size]
        return frontier, masses[: frontier.size]

    def probability(self, at: tuple[Counts, Floats], fn_rate: float) -> float:
        """Return an upper bound on the probability of these outcomes."""
        frontier, masses = at
        first, others = self._window(1, self.n_fn, fn_rate)
        below = np.concatenate([[0.0], np.cumsum(others)])
        below[-1] = 1.0  # beyond the window all outcomes count, which is an upper bound
        found = masses @ below[np.clip(frontier - first + 1, 0, others.size)]
        return float(found) * (1.0 + self._slack) + _LEFT_OUT * self.alpha

    def largest_fn_rate(self, fp_rate: float, low: float, high: float) -> float | None:
        """Return a bound on the false-negative rates in the confidence set beside a false-positive rate.

        None if there is none. `low` and `high` are guesses, and `high` is a valid bound.
        """
        at = self.masses(fp_rate)

        def excess(rate: float) -> float:
            return math.log(self.probability(at, rate) / self.alpha)

        if excess(0.0) <= 0.0:
            return None
        if excess(high) > 0.0:
            return high
        start = low if excess(low) > 0.0 else 0.0
        found = float(optimize.brentq(excess, start, high, xtol=1e-300, rtol=1e-4))
        move = 1e-4  # doubled until the excess is not positive: only there the bound is proved
        while found < high and excess(found) > 0.0:
            found = min(high, found * (1.0 + move))
            move *= 2.0
        return found


def joint_value(goal: Goal, fp: int, n_fp: int, fn: int, n_fn: int, alpha: float) -> float:
    """Return the smallest value of a goal in the joint confidence set of level ``1 - alpha``, rounded down.

    Notes
    -----
    The set holds the pairs of rates under which an outcome at least as extreme as the observed one has a probability
    above alpha. Outcomes are ordered by the bound that Clopper and Pearson's limits give. So this bound is never below
    that one, and no other bound that respects the order is above it [Buehler, JASA 52 (1957); PROOFS.md, L3]. The
    border of the set is searched by rectangles, each valued at its smallest corner.
    """
    ends = [approximate_limits(n, alpha / 2.0)[k] for k, n in ((fp, n_fp), (fn, n_fn))]
    if goal.order(np.array([ends[0]]), np.array([ends[1]]))[0] <= 0.0:
        return 0.0
    extreme = _Extreme(goal, fp, n_fp, fn, n_fn, alpha)

    def value(fp_rate: float, fn_rate: float) -> float:
        return goal.value(float(goal.order(np.array([fp_rate]), np.array([fn_rate]))[0]))

    # A rectangle: false-positive rates from `left` to `right`, and the largest false-negative rates at these ends.
    top = extreme.largest_fn_rate(0.0, 0.0, 1.0) or 0.0
    bottom = extreme.largest_fn_rate(1.0, 0.0, top) or 0.0
    waiting = [(value(1.0, top), 0.0, 1.0, top, bottom)]
    best = math.inf
    for _ in range(_SPLITS):
        lowest, left, right, top, bottom = waiting[0]
        if lowest >= best - _TOLERANCE * (1.0 if goal.measured == "epsilon" else best):
            break
        middle = _between(left, right, n_fp)
        found = extreme.largest_fn_rate(middle, bottom, top)
        heapq.heapreplace(waiting, (value(middle, top), left, middle, top, found or 0.0))
        if found is not None:
            best = min(best, value(middle, found))
            heapq.heappush(waiting, (value(right, found), middle, right, found, bottom))
    return waiting[0][0]


def _between(left: float, right: float, n: int) -> float:
    """Return the point of a split: between the ends by ratio, and by difference close to 0 and 1."""
    least = 0.01 / n
    if right > 0.5:
        return 1.0 - _between(1.0 - right, 1.0 - left, n) if left >= 0.5 else 0.5
    return math.sqrt(max(left, least) * right) if right > 2.0 * least else 0.5 * (left + right)


Method = Literal["clopper-pearson", "joint"]

METHODS = ("clopper-pearson", "joint")

_JOINT_UP_TO = 20_000  # outputs on one data set: the joint set gains little beyond, and takes longer

_SEARCH = 6e-4  # more than the search of the joint set loses, in nats

_LARGEST = 30.0  # it takes 1e13 models, more than any audit has


def check_method(method: object) -> Method:
    """Check the name of a way to bound both error rates."""
    return cast(Method, chosen(method, "method", METHODS))


def method_for(n_fp: int, n_fn: int) -> Method:
    """Return the default way to bound both error rates."""
    return "joint" if max(n_fp, n_fn) <= _JOINT_UP_TO else "clopper-pearson"


def fitted_on(outputs: int, share: float) -> int:
    """Return the number of outputs on one data set on which an attack is chosen."""
    return round(outputs * share)


def bound(goal: Goal, fp: int, n_fp: int, fn: int, n_fn: int, alpha: float, method: Method) -> float:
    """Return the bound on a goal; see `audit_epsilon`."""
    if method == "joint":
        return joint_value(goal, fp, n_fp, fn, n_fn, alpha)
    limits = [clopper_pearson_upper(k, n, alpha / 2.0) for k, n in ((fp, n_fp), (fn, n_fn))]
    return goal.value(float(goal.order(np.array([limits[0]]), np.array([limits[1]]))[0]))


def _checked(goal: Goal, fp: int, n_fp: int, fn: int, n_fn: int, confidence: float, method: object) -> float:
    first, second = check_successes(fp, n_fp, "fp", "n_fp"), check_successes(fn, n_fn, "fn", "n_fn")
    alpha = 1.0 - open_unit(confidence, "confidence")
    return bound(goal, *first, *second, alpha, check_method(method))


def audit_epsilon(
    fp: int,
    n_fp: int,
    fn: int,
    n_fn: int,
    delta: float,
    confidence: float = 0.9,
    *,
    method: Method = "clopper-pearson",
) -> float:
    """Compute a lower bound on epsilon from the errors of an attack.

    An attack receives an output of a mechanism and says on which of two neighbouring data sets it was computed. An
    (epsilon, delta)-private mechanism forces every attack to make errors, so few errors prove a large epsilon. Use this
    function if you have counted the errors yourself. `audit_outputs` also fits the attack and counts its errors.

    Parameters
    ----------
    fp : int
        Number of outputs on the first data set that the attack assigned to the second one.
    n_fp : int
        Number of outputs on the first data set that the attack was tried on, at least 1.
    fn : int
        Number of outputs on the second data set that the attack assigned to the first one.
    n_fn : int
        Number of outputs on the second data set that the attack was tried on, at least 1.
    delta : float
        Delta at which epsilon is bounded, in [0, 1).
    confidence : float, default 0.9
        Probability with which the bound holds, in (0, 1).
    method : {"clopper-pearson", "joint"}, default "clopper-pearson"
        How the two error rates are bounded.

        * "clopper-pearson" uses one limit for each rate, each at an error rate of ``(1 - confidence)/2``, as published.
        * "joint" uses a joint confidence set for both rates, which gives a larger bound at the same confidence. It
          requires that the outputs on the two data sets are independent of each other. Its search may lose up to 0.0005
          nats, or 0.05 % of a delta.

    Returns
    -------
    float
        The bound in nats, rounded down. With probability `confidence` or more, no mechanism that is (epsilon,
        delta)-private for this pair of data sets has a smaller epsilon. It is 0 if the attack shows nothing.

    Raises
    ------
    InputError, InputTypeError
        If a count is not an integer, is negative or exceeds its number of trials, or if another argument is out of
        range.

    Notes
    -----
    [HF, eq. 10-12]: a private mechanism satisfies ``FP + e^epsilon FN >= 1 - delta`` for any attack, and the same with
    both rates exchanged. Both limits hold at once, so the maximum of the two quotients needs no further share of the
    error rate. The bound is valid only if the attack, its threshold and its features were fixed before these outputs
    were seen. Bounds for several stages of one training hold individually, not simultaneously.

    The paper says that 500 test models limit its bound to 4.89. By its own rule the limit is 4.418 with 250 models on
    each data set and 5.114 with 500 on each. A limit of 4.89 takes 400 models on each data set.

    References
    ----------
    [HF] Heller, Fetaya, Can Stochastic Gradient Langevin Dynamics Provide Differential Privacy for Deep Learning?

    Examples
    --------
    >>> round(audit_epsilon(5, 250, 12, 250, 1e-5), 9)
    3.100183761
    >>> round(audit_epsilon(5, 250, 12, 250, 1e-5, method="joint"), 2)
    3.17

    The largest bound that this many outputs can show, by an attack without errors; ``AuditResult.largest`` of an audit:

    >>> [round(audit_epsilon(0, n, 0, n, 1e-5), 4) for n in (250, 400, 500)]
    [4.4183, 4.8905, 5.1144]
    """
    return _checked(check_goal(delta, None), fp, n_fp, fn, n_fn, confidence, method)


def audit_delta(
    fp: int,
    n_fp: int,
    fn: int,
    n_fn: int,
    epsilon: float,
    confidence: float = 0.9,
    *,
    method: Method = "clopper-pearson",
) -> float:
    """Compute a lower bound on delta, at a given epsilon, from the errors of an attack.

    This is the counterpart of `audit_epsilon`, which bounds epsilon at a given delta.

    Parameters
    ----------
    fp : int
        Number of outputs on the first data set that the attack assigned to the second one.
    n_fp : int
        Number of outputs on the first data set that the attack was tried on, at least 1.
    fn : int
        Number of outputs on the second data set that the attack assigned to the first one.
    n_fn : int
        Number of outputs on the second data set that the attack was tried on, at least 1.
    epsilon : float
        Epsilon at which delta is bounded, in nats, from 0 to 700.
    confidence : float, default 0.9
        Probability with which the bound holds, in (0, 1).
    method : {"clopper-pearson", "joint"}, default "clopper-pearson"
        How the two error rates are bounded: one limit for each rate, or a joint confidence set, which gives a larger
        bound and requires independent outputs on the two data sets. See `audit_epsilon`.

    Returns
    -------
    float
        The bound, rounded down. With probability `confidence` or more, no mechanism that is (epsilon, delta)-private
        for this pair of data sets has a smaller delta. At epsilon 0 it bounds the total variation distance.

    Raises
    ------
    InputError, InputTypeError
        If a count is not an integer, is negative or exceeds its number of trials, or if another argument is out of
        range.

    Notes
    -----
    The result bounds the hockey-stick divergence ``sup P(S) - e^epsilon Q(S)`` of the two output distributions, in one
    order or the other.

    Examples
    --------
    >>> round(audit_delta(0, 1000, 400, 1000, 1.0), 3)
    0.566
    """
    return _checked(check_goal(None, epsilon), fp, n_fp, fn, n_fn, confidence, method)


def models_needed(epsilon: float, delta: float, confidence: float = 0.9, *, fit_share: float = 0.5) -> int:
    """Compute the smallest number of models per data set with which `audit_learner` can show a given epsilon.

    Call it before an expensive audit: with fewer models, no attack can refute a claim of this epsilon.

    Parameters
    ----------
    epsilon : float
        The epsilon to show, such as the claimed one, in nats. Above 0 and at most 30.
    delta : float
        Delta of the audit, in [0, 1).
    confidence : float, default 0.9
        Confidence of the audit, in (0, 1).
    fit_share : float, default 0.5
        Share of the models on which the attack is chosen, in (0, 1). The bound comes from the others.

    Returns
    -------
    int
        Number of models on each of the two data sets. It may be too large by 0.1 %, which covers the loss of the search
        of the joint confidence set.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range or of the wrong type.

    Notes
    -----
    An attack without errors shows epsilon if both error rates are bounded by ``x = (1 - delta)/(1 + e^epsilon)``. That
    takes ``n = ln(alpha)/(2 ln(1 - x))`` counted outputs, where alpha is one minus the confidence: about
    ``1.15 e^epsilon`` at a confidence of 0.9. If that number is above 20,000, each rate has a limit of its own, and it
    takes ``ln(alpha/2)/ln(1 - x)`` (PROOFS.md, L2 and L3).

    If the claim is true, every attack makes errors. The table lists the numbers of models with which an audit shows a
    part of the true epsilon. It is about a learner that is protected by one Gaussian answer and nothing else, on its
    worst pair of data sets, at a share of 0.5 and with the best threshold:

    ===========  =======  =======  =======  ==========
    delta        epsilon  a third  a half   two thirds
    ===========  =======  =======  =======  ==========
    1e-5         1        8,800    47,000   340,000
    1e-5         2        3,300    22,000   200,000
    1e-5         4        1,600    14,000   200,000
    1e-5         8        1,400    24,000   760,000
    0.01         1        670      1,600    4,900
    0.01         2        310      890      3,100
    0.01         4        200      740      3,600
    0.01         8        260      1,900    17,000
    ===========  =======  =======  =======  ==========

    It is therefore best to test a claim at a large delta, at which its epsilon is smaller. `best_epsilon` of the
    learner's event returns that epsilon.

    Examples
    --------
    >>> [models_needed(epsilon, 1e-5) for epsilon in (1, 3, 8)]
    [8, 48, 6869]
    >>> round(audit_epsilon(0, 24, 0, 24, 1e-5, method="joint"), 2)
    3.01
    """
    most, alpha = positive(epsilon, "epsilon"), 1.0 - open_unit(confidence, "confidence")
    if most > _LARGEST:
        raise InputError("epsilon", repr(most), f"at most {_LARGEST:g}")
    share, delta = open_unit(fit_share, "fit_share"), probability(delta, "delta")
    rate = (1.0 - delta) / (1.0 + math.exp(most + _SEARCH))
    counted = math.ceil(math.log(alpha) / (2.0 * math.log1p(-rate)))
    if counted > _JOINT_UP_TO:
        counted = math.ceil(math.log(alpha / 2.0) / math.log1p(-rate))
    enough = math.ceil(max((counted + 0.5) / (1.0 - share), 2.5 / share)) + 1
    fails = max(3, counted)  # `audit_learner` takes 4 or more
    return bisect_integers(lambda models: 2 <= fitted_on(models, share) <= models - counted, fails, enough)
