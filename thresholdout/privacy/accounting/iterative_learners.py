"""What stochastic gradient Langevin dynamics and private federated averaging leak, and what follows for new data."""

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
    """Return the epsilon of one step on a minibatch, before sampling is taken into account.

    Examples
    --------
    >>> round(sgld_step(10, 1.0, 1.0, 1e-5), 12), round(sgld_step(10, 1.0, 1.0, 1e-5, "paper"), 12)
    (0.979705182438, 0.499852591219)
    """
    tau, L, sigma, delta = count(tau, "tau"), positive(L, "L"), positive(sigma, "sigma"), open_unit(delta, "delta")
    if chosen(formula, "formula", FORMULAS) == "corrected":
        return gaussian_step(up_relative(2 * L / tau), sigma, delta)
    root = math.sqrt(-math.log(delta))
    return (2 * math.sqrt(2) * L * sigma * root / tau + 4 * L * L / (tau * tau)) / (2 * sigma * sigma)


def federated_step(
    tau: int, sigma: float, delta: float, neighbours: str = "replace", formula: str = "corrected"
) -> float:
    """Return the epsilon of one round on a subset of clients, before sampling is taken into account.

    Examples
    --------
    >>> [round(federated_step(10, 1.0, 1e-5, *a), 6) for a in (["replace"], ["zero_out"], ["replace", "paper"])]
    [0.979705, 0.484853, 0.683614]
    """
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
    """Return what all iterates of stochastic gradient Langevin dynamics leak together.

    Parameters
    ----------
    N : int
        Records.
    tau : int
        Records in a minibatch, drawn afresh for each step without replacement; at most N.
    T : int
        Steps.
    L : float
        Bound on the norm of each record's gradient, which is clipped to it; above 0.
    sigma : float
        Standard deviation of the noise that is added to the mean gradient; above 0.
    delta : float
        Of one step on its minibatch, in (0, 1).
    dt : float
        Slack of the composition, in (0, 1).
    formula : {"corrected", "paper"}
        With "paper", [He, Theorem 7] (defects D1, D2, D9, D11, D14), which is no guarantee; its delta is NaN where the
        published tail is not defined, and ``details["delta_with_free_dt"]`` has the formula with dt in place of the
        tail.
    method : {"kov", "optimal", "chernoff"}
        How steps are composed: `compose_kov`; the smallest epsilon at the delta of `compose_kov`; or
        `compose_chernoff`.

    Returns
    -------
    Composition
        For neighbours that replace one record. Step sizes do not matter. ``details`` has ``step_eps``, of a step on its
        minibatch, and ``eps0``, ``delta0``, of a step on all records.

    Examples
    --------
    >>> round(sgld_privacy(60000, 64, 2000, 1.0, 0.5, 1e-6, 1e-6).eps, 4)
    0.083
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
    """Return what all rounds of private federated averaging leak together about one client.

    Parameters
    ----------
    N : int
        Clients.
    tau : int
        Clients in a round, drawn afresh for each round without replacement; at most N.
    T : int
        Rounds.
    sigma : float
        Standard deviation of the noise on the mean increment, in units of the bound that increments are clipped to.
    delta : float
        Of one round on its clients, in (0, 1).
    dt : float
        Slack of the composition, in (0, 1).
    neighbours : {"replace", "zero_out"}
        Whether neighbours replace a client, or replace its contribution by 0.
    formula : {"corrected", "paper"}
        With "paper", [He, Theorem 8] (defects D1, D2, D10, D11, D14), which is no guarantee.
    method : {"kov", "optimal", "chernoff"}
        As in `sgld_privacy`.

    Returns
    -------
    Composition
        ``details`` has ``step_eps``, of a round on its clients, and ``eps0``, ``delta0``, of a round on all clients.

    Notes
    -----
    Sampling a fixed number of clients does *not* amplify the privacy of the round with the sensitivity of "zero_out": a
    client who is drawn keeps out another one, and exchanging these two moves the mean by ``2/tau``. So with sampling
    the round is either the amplified one of "replace", or the one of "zero_out" without amplification, whichever has
    the smaller epsilon (PROOFS.md, S3, with a counterexample).

    Examples
    --------
    >>> found = federated_privacy(1000, 50, 100, 1.0, 1e-6, 1e-6)
    >>> round(found.details["step_eps"], 9), found.sound
    (0.211060871, True)
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
    """Return how far the population risk of a model trained by stochastic gradient Langevin dynamics may be.

    Parameters
    ----------
    N, tau, T, L, sigma, delta, dt, method
        As in `sgld_privacy`.
    failure : float, optional
        In (0, 1): ask for the smallest error at this failure probability (`best_error`). Without it, the error and the
        failure that the learner's epsilon and delta have (`high_probability_bound`).

    Returns
    -------
    GeneralizationBound
        Vacuous, with error 1, where nothing better is known at the wanted failure.

    Examples
    --------
    >>> found = sgld_generalization(60000, 64, 2000, 1.0, 0.5, 1e-6, 1e-6)
    >>> round(found.error, 2), found.vacuous
    (0.75, False)
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
        raise InputError("tau", f"{tau} of {N}", "at most N")
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
        "the published theorem is no guarantee; formula='corrected' gives one", UnsoundBoundWarning, stacklevel=3
    )
    details = {"step_eps": step, "eps0": eps0, "delta0": delta0, "m": m, "tail": tail}
    details["delta_with_free_dt"] = min(1.0, second_delta(eps0, delta0, T, m, dt))
    value = second_delta(eps0, delta0, T, m, tail)
    return Composition(total, value if math.isnan(value) else min(1.0, value), rule, False, details)
