"""Privacy of stochastic gradient Langevin dynamics and private federated averaging, and its bounds for new data."""

from __future__ import annotations

import math
import warnings

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.adaptive_steps import (
    FORMULAS,
    candidates,
    compose_chernoff,
    compose_kov,
    gaussian_step,
    subsample,
)
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit, positive, steps
from thresholdout.privacy.accounting.generalization_bounds import best_error, high_probability_bound
from thresholdout.privacy.accounting.optimal_composition import compose_optimal_epsilon
from thresholdout.privacy.accounting.published_bounds import full_steps, paper_log_tail, second_delta
from thresholdout.privacy.accounting.results import Composition, GeneralizationBound, PrivacyParams, UnsoundBoundWarning

__all__ = ["NEIGHBOURS", "federated_privacy", "federated_step", "sgld_generalization", "sgld_privacy", "sgld_step"]

NEIGHBOURS = ("replace", "zero_out")
_METHODS = ("kov", "optimal", "chernoff")


def sgld_step(tau: int, L: float, sigma: float, delta: float, formula: str = "corrected") -> float:
    """Return the epsilon of one step on a minibatch, before sampling is taken into account."""
    tau, L, sigma, delta = count(tau, "tau"), positive(L, "L"), positive(sigma, "sigma"), open_unit(delta, "delta")
    if chosen(formula, "formula", FORMULAS) == "corrected":
        return gaussian_step(up_relative(2 * L / tau), sigma, delta)
    root = math.sqrt(-math.log(delta))
    return (2 * math.sqrt(2) * L * sigma * root / tau + 4 * L * L / (tau * tau)) / (2 * sigma * sigma)


def federated_step(
    tau: int, sigma: float, delta: float, neighbours: str = "replace", formula: str = "corrected"
) -> float:
    """Return the epsilon of one round on a subset of clients, before sampling is taken into account."""
    tau, sigma, delta = count(tau, "tau"), positive(sigma, "sigma"), open_unit(delta, "delta")
    neighbours = chosen(neighbours, "neighbours", NEIGHBOURS)
    if chosen(formula, "formula", FORMULAS) == "corrected":
        return gaussian_step(up_relative((2 if neighbours == "replace" else 1) / tau), sigma, delta)
    return (4 * sigma * math.sqrt(-math.log(delta)) / tau + 1 / (tau * tau)) / (2 * sigma * sigma)


def sgld_privacy(
    N: int,
    tau: int,
    T: int,
    L: float,
    sigma: float,
    delta: float,
    dt: float,
    formula: str = "corrected",
    *,
    method: str = "kov",
) -> Composition:
    """Return the privacy of all iterates of stochastic gradient Langevin dynamics together (PROOFS.md, S4).

    Notes
    -----
    Gradients are clipped to the norm L, and noise of standard deviation sigma is added to the mean of a fresh minibatch
    of tau records, drawn without replacement. `delta` is of one step on its minibatch, `dt` the slack of the
    composition. Step sizes do not matter. ``details`` has ``step_eps``, of a step on its minibatch, and ``eps0``,
    ``delta0``, of a step on all records. The published [He, Theorem 7] is no guarantee (defects D1, D2, D9, D11, D14):
    its delta is NaN if the published tail is not defined, and ``details["delta_with_free_dt"]`` has the formula with dt
    in place of the tail.
    """
    N, tau, T, q = _sizes(N, tau, T)
    formula, method = chosen(formula, "formula", FORMULAS), chosen(method, "method", _METHODS)
    step = sgld_step(tau, L, sigma, delta, formula)
    dt = open_unit(dt, "dt")
    if formula == "paper":
        return _published(step, delta, q, T, dt, "sgld")
    return _composed(step, subsample(step, delta, q), T, dt, method, "sgld")


def federated_privacy(
    N: int,
    tau: int,
    T: int,
    sigma: float,
    delta: float,
    dt: float,
    neighbours: str = "replace",
    formula: str = "corrected",
    *,
    method: str = "kov",
) -> Composition:
    """Return the privacy of one client in all rounds of private federated averaging together.

    Notes
    -----
    sigma is the standard deviation of the noise on the mean increment, in units of the clipping bound. Neighbours
    replace a client, or with "zero_out" its contribution by 0. The published [He, Theorem 8] is no guarantee (defects
    D1, D2, D10, D11, D14).

    Sampling a fixed number of clients does *not* amplify the privacy of a round with the sensitivity of "zero_out": a
    client who is drawn keeps out another one, and exchanging these two moves the mean by ``2/tau``. So the round is
    either the amplified one of "replace", or the one of "zero_out" without amplification, whichever has the smaller
    epsilon (PROOFS.md, S3, with a counterexample).
    """
    N, tau, T, q = _sizes(N, tau, T)
    neighbours = chosen(neighbours, "neighbours", NEIGHBOURS)
    formula, method = chosen(formula, "formula", FORMULAS), chosen(method, "method", _METHODS)
    step = federated_step(tau, sigma, delta, neighbours, formula)
    dt = open_unit(dt, "dt")
    if formula == "paper":
        return _published(step, delta, q, T, dt, "federated")
    if neighbours == "replace":
        return _composed(step, subsample(step, delta, q), T, dt, method, "federated")
    # Both are valid for "zero_out": "replace" with amplification, and no amplification of epsilon (PROOFS.md, S3).
    params = subsample(federated_step(tau, sigma, delta), delta, q)
    if params.eps >= step:
        params = PrivacyParams(step, params.delta)
    return _composed(step, params, T, dt, method, "federated")


def sgld_generalization(
    N: int,
    tau: int,
    T: int,
    L: float,
    sigma: float,
    delta: float,
    dt: float,
    failure: float | None = None,
    *,
    method: str = "kov",
) -> GeneralizationBound:
    """Bound the distance of population and empirical risk of a model trained as in `sgld_privacy`.

    With a `failure`, the error is the smallest at that probability (`best_error`; vacuous, with error 1, if there is
    none). Without it, error and failure are those of `high_probability_bound`.
    """
    eps, total = sgld_privacy(N, tau, T, L, sigma, delta, dt, method=method)
    if failure is None:
        return high_probability_bound(eps, total, N, on_small_n="inflate")
    failure = open_unit(failure, "failure")
    error = best_error(eps, total, N, failure)
    known = error is not None
    return GeneralizationBound(
        error if error is not None else 1.0, failure, 1 - failure, None, known, not known, "theorem1, best error"
    )


def _sizes(N: int, tau: int, T: int) -> tuple[int, int, int, float]:
    N, tau, T = count(N, "N"), count(tau, "tau"), count(T, "T")
    if tau > N:
        raise InputError("tau", str(tau), f"at most N = {N}")
    return N, tau, T, 1.0 if tau == N else math.nextafter(tau / N, 1.0)


def _composed(step: float, params: PrivacyParams, T: int, dt: float, method: str, rule: str) -> Composition:
    if method == "chernoff":
        found = compose_chernoff(params.eps, params.delta, T, dt)
    else:
        found = compose_kov(params.eps, params.delta, dt, T)
    eps = found.eps
    if method == "optimal" and found.delta < 1:
        eps = min(eps, compose_optimal_epsilon(params.eps, params.delta, found.delta, T))
    more = {"step_eps": step, "eps0": params.eps, "delta0": params.delta, "method": method}
    return Composition(eps, found.delta, rule, True, {**found.details, **more})


def _published(step: float, delta: float, q: float, T: int, dt: float, rule: str) -> Composition:
    eps0, delta0 = 2 * q * step, q * delta
    total = candidates(steps(eps0, delta0, T), dt).e3
    m = full_steps(total, eps0, T)
    tail = math.nan
    if total < T * q * step:
        tail = math.exp(paper_log_tail(q * step, T, total))
    warnings.warn(
        "The published theorem is not a valid bound. Pass formula='corrected' for a valid one.",
        UnsoundBoundWarning,
        stacklevel=3,
    )
    details = {"step_eps": step, "eps0": eps0, "delta0": delta0, "m": m, "tail": tail}
    details["delta_with_free_dt"] = min(1.0, second_delta(eps0, delta0, T, m, dt))
    value = second_delta(eps0, delta0, T, m, tail)
    return Composition(total, value if math.isnan(value) else min(1.0, value), rule, False, details)
