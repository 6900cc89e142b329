"""Renyi divergences of single events, at any order."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting.events.event_types import Adjacency, Event, GaussianAnswer, LaplaceAnswer
from thresholdout.privacy.accounting.events.learning_steps import (
    PoissonGaussianStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)
from thresholdout.privacy.accounting.events.stated_parameters import adjacency_refusal, parameters_of, shift_of
from thresholdout.privacy.accounting.minibatches.poisson import rdp_poisson
from thresholdout.privacy.accounting.minibatches.with_replacement import rdp_fswr
from thresholdout.privacy.accounting.minibatches.without_replacement import rdp_fswor

__all__ = ["curve", "curve_bound", "curve_refusal", "laplace_divergence", "pure_divergence"]

Floats = NDArray[np.float64]
_UP = 1.0 + 1e-13


def curve_refusal(event: Event, adjacency: Adjacency) -> str:
    """Return why there is no Renyi divergence for an event; empty when there is one."""
    if isinstance(event, WithReplacementGaussianStep) and adjacency == "replace_one":
        return "no Renyi bound is known for batches with replacement and replaced records"
    if isinstance(event, (PoissonGaussianStep, WithoutReplacementGaussianStep, WithReplacementGaussianStep)):
        return ""
    refusal = adjacency_refusal(event, adjacency)
    if refusal or isinstance(event, GaussianAnswer):
        return refusal
    found = parameters_of(event, adjacency)
    return "" if found is not None and found[1] == 0 else "a delta without a curve says nothing about Renyi divergences"


def curve_bound(event: Event, adjacency: Adjacency) -> str:
    """Return "exact" where some mechanism that the event describes has this divergence, else "upper"."""
    subsampled = isinstance(event, (PoissonGaussianStep, WithoutReplacementGaussianStep))
    doubled = getattr(event, "adjacency", adjacency) != adjacency
    return "upper" if (subsampled and adjacency == "replace_one") or doubled else "exact"


def curve(event: Event, adjacency: Adjacency, orders: Floats) -> Floats:
    """Return an event's Renyi divergence at some orders.

    Parameters
    ----------
    event : Event
        Primitive, and not refused by `curve_refusal`.
    adjacency : {"replace_one", "add_remove"}
    orders : ndarray of shape (k,)
        Above 1.

    Returns
    -------
    ndarray of shape (k,)
        In nats, rounded up.

    Examples
    --------
    >>> curve(GaussianAnswer(2.0), "replace_one", np.array([2.0, 8.0])).round(12)
    array([0.25, 1.  ])
    """
    if isinstance(event, PoissonGaussianStep):
        return cast(Floats, rdp_poisson(orders, event.noise_multiplier, event.rate, adjacency=adjacency))
    if isinstance(event, WithoutReplacementGaussianStep):
        small, large = event.batch_size, event.records
        found = rdp_fswor(orders, event.noise_multiplier, batch_size=small, dataset_size=large, adjacency=adjacency)
        return cast(Floats, found)
    if isinstance(event, WithReplacementGaussianStep):
        return cast(Floats, rdp_fswr(orders, event.noise_multiplier, event.batch_size, event.records))
    if isinstance(event, GaussianAnswer):
        return orders * (shift_of(event, adjacency) ** 2 / 2 * _UP)
    parameters = parameters_of(event, adjacency)
    assert parameters is not None
    if isinstance(event, LaplaceAnswer):
        return np.minimum(laplace_divergence(orders, parameters[0]), pure_divergence(orders, parameters[0]))
    return pure_divergence(orders, parameters[0])


def pure_divergence(orders: Floats, epsilon: float) -> Floats:
    """Return the largest Renyi divergence of an epsilon-private mechanism: that of randomised response.

    Parameters
    ----------
    orders : ndarray of shape (k,)
        Above 1.
    epsilon : float
        0 or more.

    Returns
    -------
    ndarray of shape (k,)
        ``log((e^(a eps) + e^((1-a) eps))/(1 + e^eps))/(a - 1)`` at order a, rounded up, at most epsilon: a pair of
        epsilon-private outputs is a processed randomised response [Kairouz, Oh, Viswanath, Theorem 2.5].

    Examples
    --------
    >>> pure_divergence(np.array([2.0, 1000.0]), 0.5).round(6)
    array([0.227336, 0.499525])
    """
    if epsilon == 0.0:
        return np.zeros_like(orders)
    log_excess = _log_expm1(orders * epsilon) + np.log(-np.expm1(-(orders - 1) * epsilon)) - np.logaddexp(0.0, epsilon)
    found: Floats = np.minimum(np.logaddexp(0.0, log_excess) / (orders - 1) * _UP, epsilon)
    return found


def laplace_divergence(orders: Floats, shift: float) -> Floats:
    """Return the Renyi divergence of two Laplace distributions whose means differ by a number of scales.

    Parameters
    ----------
    orders : ndarray of shape (k,)
        Above 1.
    shift : float
        Above 0.

    Returns
    -------
    ndarray of shape (k,)
        ``log(a/(2a-1) e^((a-1) s) + (a-1)/(2a-1) e^(-a s))/(a-1)`` at order a [Mironov 2017, Table II], rounded up.

    Examples
    --------
    >>> laplace_divergence(np.array([2.0]), 1.0).round(9)
    array([0.61912363])
    """
    log_excess = np.logaddexp(
        np.log(orders) + _log_remainder((orders - 1) * shift), np.log(orders - 1) + _log_remainder(-orders * shift)
    ) - np.log(2 * orders - 1)
    found: Floats = np.logaddexp(0.0, log_excess) / (orders - 1) * _UP
    return found


def _log_expm1(x: Floats) -> Floats:
    """Return ``log(e^x - 1)`` for x above 0."""
    found: Floats = np.where(x > 40.0, x, np.log(np.expm1(np.minimum(x, 40.0))))
    return found


def _log_remainder(x: Floats) -> Floats:
    """Return ``log(e^x - 1 - x)``, without cancellation near 0."""
    small = np.clip(x, -0.5, 0.5)
    series = np.zeros_like(x)
    for k in range(22, 1, -1):
        series = (series * small + 1.0) / k if k > 2 else (series * small + 1.0) / 2.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        direct = np.where(x > 40.0, x, np.log(np.expm1(np.minimum(x, 40.0)) - np.minimum(x, 40.0)))
        found: Floats = np.where(np.abs(x) <= 0.5, 2 * np.log(np.abs(small)) + np.log(series), direct)
    return found


LEAST_ORDERS = tuple(1.0 + step / 100 for step in (1, 2, 4, 7))
"""Below the usual ones, for large epsilons."""

MOST_ORDERS = tuple(512.0 * math.sqrt(2.0) ** k for k in range(1, 10))
"""Above the usual ones, for small epsilons."""
