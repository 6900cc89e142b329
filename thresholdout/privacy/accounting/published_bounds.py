"""Published composition theorems and bounds, for comparison with the corrected ones."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.adaptive_steps import (
    FORMULAS,
    candidates,
    compose_chernoff,
    compose_kov,
    compose_theorem5,
    is_pure,
    log_tail,
)
from thresholdout.privacy.accounting.bound_arguments import (
    Steps,
    chosen,
    count,
    open_unit,
    positive,
    probability,
    steps,
    unit,
)
from thresholdout.privacy.accounting.optimal_composition import compose_optimal_delta
from thresholdout.privacy.accounting.results import Composition, GeneralizationBound, UnsoundBoundWarning

__all__ = [
    "VARIANTS",
    "compose_he",
    "dwork2015_bound",
    "empirical_variance",
    "first_order_delta",
    "full_steps",
    "nissim_stemmer_bound",
    "oneto_risk_bound",
    "oneto_variance_bound",
    "paper_log_tail",
    "second_delta",
]

VARIANTS = ("I", "II", "III", "IV", "V")

_MOST_VERTICES = 200_000  # vertices that are visited one by one, in Python; beyond, a bound stands for the maximum


def compose_he(
    eps: Any,
    delta: Any,
    dt: float,
    T: int | None = None,
    *,
    variant: str = "I",
    formula: str = "corrected",
    check: bool = False,
) -> Composition:
    """Compose steps by a formula of He, Wang and Tao, as published or corrected.

    Notes
    -----
    Variants I to V are Theorem 4, Corollary 2, Corollary 3, Theorem 5 (pure steps) and Theorem 6; II and III need equal
    steps. Corrected, I and II are `compose_kov`, V is `compose_kov` with its third epsilon, and III is
    `compose_chernoff`. IV, `compose_theorem5`, is right as published. The others are no guarantee (defects D1, D2):
    steps with a delta cost at least ``1 - prod(1 - delta_i)`` together at any epsilon, and these formulas go below it.
    With `check`, ``details["violates"]`` compares the result with the smallest valid delta,
    ``details["optimal_delta"]``.
    """
    found, dt = steps(eps, delta, T), open_unit(dt, "dt")
    variant, formula = chosen(variant, "variant", VARIANTS), chosen(formula, "formula", FORMULAS)
    if variant in ("II", "III") and not found.equal:
        raise InputError("variant", repr(variant), "'I', 'IV' or 'V' for unequal steps")
    if variant == "IV" and not is_pure(found):
        raise InputError("delta", "steps with a delta", "0 for variant 'IV', which is about pure steps")
    result = _published(found, dt, variant) if formula == "paper" else _corrected(found, dt, variant, eps, delta, T)
    if not result.sound:
        warnings.warn(
            f"The published variant {variant} is not a valid bound. Pass formula='corrected' for a valid one.",
            UnsoundBoundWarning,
            stacklevel=2,
        )
    if check:
        best = compose_optimal_delta(eps, delta, result.eps, T)
        # The optimum is rounded up, so a delta that equals it up to rounding is no violation.
        more = {"optimal_delta": best, "violates": result.delta < best * (1 - 1e-9)}
        result = replace(result, details={**result.details, **more})
    return result


def _corrected(found: Steps, dt: float, variant: str, eps: Any, delta: Any, T: int | None) -> Composition:
    if variant == "III":
        result = compose_chernoff(float(found.eps[0]), float(found.delta[0]), found.total, dt)
    elif variant == "IV":
        result = compose_theorem5(eps, dt, T if T is not None else found.total)
    else:
        result = compose_kov(eps, delta, dt, T)
        if variant == "V":
            e3, literal = result.details["e3"], result.details["literal_delta"]
            result = Composition(e3, literal, "kov", True, {**result.details, "active": "e3"})
    return replace(result, details={**result.details, "variant": variant})


def _published(found: Steps, dt: float, variant: str) -> Composition:
    three = candidates(found, dt)
    total = three.e3 if variant in ("III", "IV", "V") else min(three)
    details: dict[str, Any] = {**three._asdict(), "active": three.active, "variant": variant}
    if variant == "IV":
        return Composition(total, dt, variant, True, details)
    enough = total >= three.e1
    sound = enough or (is_pure(found) and variant != "III")
    if variant in ("I", "V"):
        worst, exact = _worst_gain(found, min(total, three.e1))
        value = dt - math.expm1(-worst) + _leak(found)
        details["exact"] = exact
        return Composition(total, min(1.0, value), variant, sound, details)
    eps, delta = float(found.eps[0]), float(found.delta[0])
    m = full_steps(total, eps, found.total)
    slack = dt
    if variant == "III":
        log = paper_log_tail(eps, found.total, total) if eps > 0 and not enough else -math.inf
        details["log_tail"], slack = log, math.exp(log)
    value = second_delta(eps, delta, found.total, m, slack)
    details |= {"m": m, "first_order": first_order_delta(eps, delta, found.total, m, slack)}
    return Composition(total, min(1.0, value), variant, sound, details)


def paper_log_tail(eps: float, T: int, eps_total: float) -> float:
    """Return the logarithm of the published tail, in which ``(eps_total + T eps)/2`` has the wrong sign (defect D2)."""
    return log_tail(eps, T, eps_total) - (eps_total + T * eps)


def full_steps(eps_total: float, eps: float, T: int) -> int:
    """Return ``ceil(eps_total/eps)``, at most T."""
    ratio = eps_total / eps if eps > 0 else math.inf
    # A whole ratio that division has rounded up must not count as one step more.
    return T if ratio >= T else max(0, math.ceil(ratio - 1e-12))


def _shares(eps: float, delta: float) -> tuple[float, float]:
    """Return ``delta/(1+e^eps)`` and ``e^eps delta/(1+e^eps)``."""
    decay = math.exp(-eps)
    return delta * decay / (1 + decay), delta / (1 + decay)


def _partial(eps: float, delta: float, alpha: float) -> float:
    """Return ``e^alpha delta/(1+e^eps)``, alpha at most eps."""
    return delta * math.exp(alpha - eps) / (1 + math.exp(-eps))


def second_delta(eps: float, delta: float, T: int, m: int, slack: float) -> float:
    """Return Corollary 2's ``2 - (1 - e^eps d)^m (1 - d)^(T-m) - (1 - d)^T + slack``, ``d = delta/(1+e^eps)``."""
    small, large = _shares(eps, delta)
    first = m * math.log1p(-large) + (T - m) * math.log1p(-small)
    return -math.expm1(first) - math.expm1(T * math.log1p(-small)) + slack


def first_order_delta(eps: float, delta: float, T: int, m: int, slack: float) -> float:
    """Return ``2 (T-m) delta/(1+e^eps) + m delta + slack``, the first order of `second_delta` in delta."""
    return 2 * (T - m) * _shares(eps, delta)[0] + m * delta + slack


def _leak(found: Steps) -> float:
    """Return ``1 - prod(1 - d_i)``."""
    logs = [c * math.log1p(-_shares(e, d)[0]) for e, d, c in zip(found.eps, found.delta, found.counts, strict=True)]
    return -math.expm1(math.fsum(logs))


def _worst_gain(found: Steps, total: float) -> tuple[float, bool]:
    """Return the largest ``-sum log(1 - e^alpha_i d_i)`` over ``sum alpha_i = total``, and whether it is exact.

    Every ``alpha_i`` is in ``[0, eps_i]``, a condition that the paper's theorem lacks (defect D6). The sum is convex,
    so its maximum is at a vertex: all alphas but one are at an end. If there are too many vertices, the fractional
    knapsack bounds the maximum.
    """
    eps, counts = found.eps, found.counts
    small, large = np.array([_shares(e, d) for e, d in zip(eps, found.delta, strict=True)]).T
    idle, gain = -np.log1p(-small), np.log1p(-small) - np.log1p(-large)
    base = float((counts * idle).sum())
    active = np.flatnonzero(eps > 0)
    if not active.size:
        return base, True
    if math.fsum(np.log1p(counts[active]).tolist()) > math.log(_MOST_VERTICES):
        left, worst = total, base
        for g in sorted(active, key=lambda g: -gain[g] / eps[g]):
            taken = min(left, float(eps[g] * counts[g]))
            worst, left = worst + float(gain[g]) * taken / float(eps[g]), left - taken
        return worst, False
    worst = base
    for full in product(*[range(int(counts[g]) + 1) for g in active]):
        rest = total - math.fsum(n * float(eps[g]) for n, g in zip(full, active, strict=True))
        if rest < -1e-12 * total:  # the rounding error of the sum, and more
            continue
        value = base + math.fsum(n * float(gain[g]) for n, g in zip(full, active, strict=True))
        if rest <= 1e-12 * total:
            worst = max(worst, value)
            continue
        for n, g in zip(full, active, strict=True):
            if n < counts[g] and rest <= eps[g]:
                part = -math.log1p(-_partial(float(eps[g]), float(found.delta[g]), rest)) - float(idle[g])
                worst = max(worst, value + part)
    return worst, True


def _bound(error: float, failure: float, rule: str) -> GeneralizationBound:
    error, failure = up_relative(error), min(1.0, max(0.0, up_relative(failure)))
    return GeneralizationBound(error, failure, 1 - failure, None, True, error >= 1 or failure >= 1, rule)


def dwork2015_bound(eps: float, delta: float) -> GeneralizationBound:
    """Return ``(4 eps, 8 delta^eps)``, for (eps, delta)-private learners, as quoted."""
    eps, delta = positive(eps, "eps"), probability(delta, "delta")
    return _bound(4 * eps, 8 * delta**eps, "dwork2015")


def nissim_stemmer_bound(eps: float, delta: float) -> GeneralizationBound:
    """Return ``(13 eps, (2 delta/eps) ln(2/eps))``, for (eps, delta)-private classification, as quoted."""
    eps, delta = positive(eps, "eps"), probability(delta, "delta")
    return _bound(13 * eps, 2 * delta / eps * math.log(2 / eps), "nissim_stemmer")


def oneto_risk_bound(eps: float, n: int, emp_risk: float) -> GeneralizationBound:
    """Return Oneto, Ridella and Anguita's bound by the empirical risk, for eps-private learners, as quoted.

    It is ``(sqrt(6 Rhat)(eps + n^-1/2) + 6(eps^2 + 1/n), 3 exp(-n eps^2))``.
    """
    eps, n, emp_risk = positive(eps, "eps", zero=True), count(n, "n"), unit(emp_risk, "emp_risk")
    error = math.sqrt(6 * emp_risk) * (eps + 1 / math.sqrt(n)) + 6 * (eps * eps + 1 / n)
    return _bound(error, 3 * math.exp(-n * eps * eps), "oneto_risk")


def oneto_variance_bound(eps: float, n: int, emp_var: float) -> GeneralizationBound:
    """Return Oneto, Ridella and Anguita's bound by the empirical variance, for eps-private learners, as quoted.

    It is ``(sqrt(4 V)(eps + n^-1/2) + 5n/(n-1) (eps^2 + 1/n), 3 exp(-n eps^2))``, V of `empirical_variance`.
    """
    eps, n, emp_var = positive(eps, "eps", zero=True), count(n, "n", least=2), positive(emp_var, "emp_var", zero=True)
    error = math.sqrt(4 * emp_var) * (eps + 1 / math.sqrt(n)) + 5 * n / (n - 1) * (eps * eps + 1 / n)
    return _bound(error, 3 * math.exp(-n * eps * eps), "oneto_variance")


def empirical_variance(losses: Any) -> float:
    """Return the mean of ``(l_i - l_j)^2/2`` over ordered pairs of different records, the sample variance."""
    array = np.asarray(losses)
    if array.dtype.kind not in "iuf":
        raise InputTypeError("losses", f"an array of {array.dtype}", "numbers in [0, 1]")
    if array.ndim != 1 or array.size < 2:
        raise InputError("losses", f"an array of shape {array.shape}", "at least two losses")
    found = array.astype(np.float64)
    if not ((found >= 0) & (found <= 1)).all():
        raise InputError("losses", "a value outside of [0, 1]", "numbers in [0, 1]")
    return float(found.var(ddof=1))
