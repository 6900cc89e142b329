"""The accountant of Renyi differential privacy: divergences add up at every order."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting.accountants.accountant import Accountant, Stated
from thresholdout.privacy.accounting.accountants.renyi_conversion import (
    EdgeOrderWarning,
    NoFiniteOrderWarning,
    default_orders,
    rdp_to_delta,
    rdp_to_epsilon,
)
from thresholdout.privacy.accounting.bound_arguments import chosen
from thresholdout.privacy.accounting.events.event_types import (
    Adjacency,
    Event,
    GaussianAnswer,
    LaplaceAnswer,
    adjacency_refusal,
    parameters_of,
    shift_of,
)
from thresholdout.privacy.accounting.events.learning_steps import (
    PoissonGaussianStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import orders as check_orders
from thresholdout.privacy.accounting.minibatches.poisson import rdp_poisson
from thresholdout.privacy.accounting.minibatches.with_replacement import rdp_fswr
from thresholdout.privacy.accounting.minibatches.without_replacement import rdp_fswor
from thresholdout.suppressed_warnings import suppress_warnings

__all__ = ["RenyiAccountant", "curve", "curve_bound", "curve_refusal", "laplace_divergence", "pure_divergence"]

Floats = NDArray[np.float64]

_UP = 1.0 + 1e-13  # more than the relative rounding errors of the closed forms below


def curve_refusal(event: Event, adjacency: Adjacency) -> str:
    """Return why an event has no Renyi divergence; empty if it has one."""
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
    """Return "exact" if some mechanism that the event describes has this divergence, else "upper"."""
    subsampled = isinstance(event, (PoissonGaussianStep, WithoutReplacementGaussianStep))
    doubled = getattr(event, "adjacency", adjacency) != adjacency
    return "upper" if (subsampled and adjacency == "replace_one") or doubled else "exact"


def curve(event: Event, adjacency: Adjacency, orders: Floats) -> Floats:
    """Return an event's Renyi divergence at some orders."""
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
    """Return the largest Renyi divergence of an epsilon-private mechanism, that of randomised response.

    Notes
    -----
    ``log((e^(a eps) + e^((1-a) eps))/(1 + e^eps))/(a - 1)`` at order a, rounded up, at most epsilon: a pair of
    epsilon-private outputs is a processed randomised response [Kairouz, Oh, Viswanath, Theorem 2.5].
    """
    if epsilon == 0.0:
        return np.zeros_like(orders)
    log_excess = _log_expm1(orders * epsilon) + np.log(-np.expm1(-(orders - 1) * epsilon)) - np.logaddexp(0.0, epsilon)
    found: Floats = np.minimum(np.logaddexp(0.0, log_excess) / (orders - 1) * _UP, epsilon)
    return found


def laplace_divergence(orders: Floats, shift: float) -> Floats:
    """Return the Renyi divergence of two Laplace distributions whose means differ by a number of scales.

    Notes
    -----
    ``log(a/(2a-1) e^((a-1) s) + (a-1)/(2a-1) e^(-a s))/(a-1)`` at order a [Mironov 2017, Table II], rounded up.
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
    for k in range(22, 1, -1):  # |x| <= 1/2: the next term is below 1e-23 of the first
        series = (series * small + 1.0) / k if k > 2 else (series * small + 1.0) / 2.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        direct = np.where(x > 40.0, x, np.log(np.expm1(np.minimum(x, 40.0)) - np.minimum(x, 40.0)))
        found: Floats = np.where(np.abs(x) <= 0.5, 2 * np.log(np.abs(small)) + np.log(series), direct)
    return found


LEAST_ORDERS = tuple(1.0 + step / 100 for step in (1, 2, 4, 7))  # below the usual ones, for large epsilons
MOST_ORDERS = tuple(512.0 * math.sqrt(2.0) ** k for k in range(1, 10))  # above the usual ones, for small epsilons


Counted = Sequence[tuple[Event, float]]

_NUMBER = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?)")

_TINY = 5e-324  # a delta below the smallest float is not 0

# Any order gives a guarantee, so none of the numbers below is part of a proof: they trade time for closeness.
_FEW = 12  # different events whose curves are computed at every order
_PROBES = 16  # events that stand for all others in the search for the best order, if there are more than a few
_APART = 1.5  # ratio of neighbouring orders, less 1, from which that search starts
_HALVINGS, _MORE_HALVINGS = 4, 8  # of the interval around the best order; more where the start is coarser
_ROUNDS = 3  # in which events are picked again at the best order so far
_WORTH = 1e-4  # relative gain that is worth another round over all events


def _words_and_numbers(event: Event) -> list[str | float]:
    """Return a sort key: events of a kind are ordered by their parameters."""
    parts = _NUMBER.split(repr(event))
    return [float(part) if k % 2 else part for k, part in enumerate(parts)]


def _thinned(orders: Floats) -> Floats:
    """Return some of the orders, the first and the last among them."""
    found = [float(orders[0])]
    for order in orders.tolist():
        if order - 1 >= _APART * (found[-1] - 1):
            found.append(order)
    return np.unique(np.append(found, orders[-1]))


def _spread(counted: Counted, size: int) -> Counted:
    """Return some of the events, from the first to the last, weighted as all of them together."""
    found = [counted[k] for k in sorted(set(np.linspace(0, len(counted) - 1, size).round().astype(int).tolist()))]
    share = sum(float(times) for _, times in counted) / sum(float(times) for _, times in found)
    return [(event, times * share) for event, times in found]


class RenyiAccountant(Accountant):
    """Accountant that adds up Renyi divergences and converts the sum to epsilon at the best order.

    It is fast for long trainings. `DistributionAccountant` is often closer to the smallest epsilon.

    Parameters
    ----------
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours: one record is replaced by another one, or one record is added or removed.
    orders : array_like, optional
        Orders above 1 from which the search for the best order starts. The search stays between them. If None, orders
        from 1.1 to 512, and the search may go beyond them.
    conversion : {"balle", "mironov"}, default "balle"
        How divergences are converted to epsilon.

        * "balle": the conversion of Balle et al. (2020), Theorem 21.
        * "mironov": the conversion of Mironov (2017), Proposition 3, which is never smaller.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.learning_steps import WithoutReplacementGaussianStep
    >>> accountant = RenyiAccountant("add_remove").compose(WithoutReplacementGaussianStep(6, 120, 50_000), 104_000)
    >>> round(accountant.epsilon(1e-5), 3)
    1.083
    """

    name = "renyi"

    def __init__(self, adjacency: Adjacency = "replace_one", *, orders: Any = None, conversion: str = "balle") -> None:
        super().__init__(adjacency)
        self._given = orders is not None
        self._orders = np.unique(check_orders(orders, "orders")) if self._given else default_orders()
        self._conversion = chosen(conversion, "conversion", ("balle", "mironov"))
        self._known: dict[Event, dict[float, float]] = {}

    @property
    def orders(self) -> Floats:
        """Orders from which searches for the best order start."""
        return self._orders.copy()

    def with_conversion(self, conversion: str) -> RenyiAccountant:
        """Return an accountant of the same events with another conversion.

        Parameters
        ----------
        conversion : {"balle", "mironov"}
            How divergences are converted to epsilon, see the class.

        Returns
        -------
        RenyiAccountant
            A new accountant. It shares all computed divergences with this one, so it is fast.
        """
        other = RenyiAccountant(self.adjacency, orders=self._orders if self._given else None, conversion=conversion)
        other._counts, other._known = dict(self._counts), self._known
        return other

    def _why_not(self, leaf: Event) -> str:
        return curve_refusal(leaf, self.adjacency)

    def rdp(self, orders: Any = None) -> Floats:
        """Return the Renyi divergence of all composed events.

        Parameters
        ----------
        orders : array_like, optional
            Orders above 1. If None, the attribute `orders`.

        Returns
        -------
        ndarray, shape (k,)
            The divergence at each order, in nats, rounded up.
        """
        return self._sum(self._orders if orders is None else check_orders(orders, "orders"), list(self.counts.items()))

    def _sum(self, orders: Floats, counted: Counted) -> Floats:
        """Add up divergences, each order exactly and then rounded up: the order of events does not matter."""
        if not counted:
            return np.zeros(orders.size)
        with np.errstate(over="ignore"):
            rows = np.stack([self._curve(event, orders) * float(times) for event, times in counted])
        totals = np.array([math.fsum(column) if np.isfinite(column).all() else math.inf for column in rows.T])
        return totals * (1 + 1e-15)  # the products and the sum are rounded once each

    def _curve(self, event: Event, orders: Floats) -> Floats:
        """Return one event's divergences, each computed once."""
        known = self._known.setdefault(event, {})
        missing = [order for order in orders.tolist() if order not in known]
        if missing:
            with np.errstate(over="ignore"):
                found = curve(event, self.adjacency, np.array(missing))
            known.update(zip(missing, np.maximum(found, 0.0).tolist(), strict=True))
        return np.array([known[order] for order in orders.tolist()])

    def _epsilon(self, delta: float) -> list[Stated]:
        if delta == 0.0:
            return [Stated(math.inf, "upper", "Renyi divergences say nothing at delta = 0")]

        def convert(orders: Floats, rdp: Floats) -> tuple[float, float]:
            found = rdp_to_epsilon(orders, rdp, delta, conversion=self._conversion)
            return found.epsilon, found.order

        value, order = self._best(convert)
        return [self._stated(value, order)]

    def _delta(self, epsilon: float) -> list[Stated]:
        def convert(orders: Floats, rdp: Floats) -> tuple[float, float]:
            found = rdp_to_delta(orders, rdp, epsilon)
            return max(found.delta, _TINY), found.order

        value, order = self._best(convert)
        return [self._stated(value, order)]

    def _stated(self, value: float, order: float) -> Stated:
        kinds = {curve_bound(event, self.adjacency) for event in self.counts}
        what = "exact" if kinds == {"exact"} else "upper bounds of"
        return Stated(value, "upper", f"{what} Renyi divergences, order {order:.6g}")

    def _best(self, convert: Callable[[Floats, Floats], tuple[float, float]]) -> tuple[float, float]:
        """Return the smallest value over the orders, and its order.

        Any order gives a guarantee, so the search needs no proof.
        """
        counted = sorted(self.counts.items(), key=lambda pair: _words_and_numbers(pair[0]))
        with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
            if len(counted) <= _FEW:
                value, order = self._searched(convert, counted, self._orders)
            else:
                value, order = self._sampled(convert, counted)
        if not np.isfinite(value):
            message = "No order has a finite divergence, so nothing is guaranteed."
            warnings.warn(message, NoFiniteOrderWarning, stacklevel=4)
        return value, order

    def _sampled(
        self, convert: Callable[[Floats, Floats], tuple[float, float]], counted: Counted
    ) -> tuple[float, float]:
        """Search with some events that stand for all, picked by their cost near the best order."""
        probes, start = _spread(counted, _PROBES), _thinned(self._orders)
        value, best = math.inf, math.nan
        for _ in range(_ROUNDS):
            expected, order = self._searched(convert, probes, start, _MORE_HALVINGS)
            if expected > value * (1 - _WORTH):
                break
            found = convert(np.array([order]), self._sum(np.array([order]), counted))[0]
            if found < value:
                value, best = found, order
            probes = self._probes(counted, order)
        if not math.isfinite(value):
            return self._searched(convert, counted, self._orders)
        return value, best

    def _probes(self, counted: Counted, order: float) -> Counted:
        """Pick events that stand for all: each for neighbours of the same total cost at one order.

        The costliest stands for itself: the best order is often the largest at which it does not dominate the sum yet.
        """
        at_order = np.array([order])
        costs = np.array([float(self._curve(event, at_order)[0]) * float(times) for event, times in counted])
        *others, last = np.argsort(costs, kind="stable").tolist()
        before = np.cumsum(costs[others])
        share = float(before[-1]) / _PROBES
        if not (0 < share < math.inf):
            return counted[:_PROBES]
        at = np.minimum(np.searchsorted(before, (np.arange(_PROBES) + 0.5) * share), len(others) - 1)
        found = [counted[last]]
        for k in at.tolist():
            event, times = counted[others[k]]
            found.append((event, times * (share / float(costs[others[k]]))))
        return found

    def _around_best(
        self, convert: Callable[[Floats, Floats], tuple[float, float]], counted: Counted, start: Floats
    ) -> Floats:
        """Return the orders near the best one, found from below with few evaluations.

        Divergences of batches with replacement are huge at high orders and slow there. Values rise past the best order,
        so two rises end the search.
        """
        few = _thinned(start)
        best, at, risen = math.inf, 0, 0
        for k, order in enumerate(few.tolist()):
            value = convert(np.array([order]), self._sum(np.array([order]), counted))[0]
            risen = risen + 1 if value > best else 0
            best, at = (value, k) if value < best else (best, at)
            if risen == 2:
                break
        near: Floats = start[(start >= few[max(at - 1, 0)]) & (start <= few[min(at + 1, few.size - 1)])]
        return near

    def _searched(
        self,
        convert: Callable[[Floats, Floats], tuple[float, float]],
        counted: Counted,
        start: Floats,
        halvings: int = _HALVINGS,
    ) -> tuple[float, float]:
        """Refine around the best order: first outwards from the ends, then by halving intervals."""
        first, last = float(start[0]), float(start[-1])
        if any(isinstance(event, WithReplacementGaussianStep) for event, _ in counted):
            start = self._around_best(convert, counted, start)
        value, order = convert(start, self._sum(start, counted))
        if not self._given and order in (first, last):
            further = np.array(LEAST_ORDERS if order == first else MOST_ORDERS)
            start = np.unique(np.concatenate([start, further]))
            value, order = convert(start, self._sum(start, counted))
        for _ in range(halvings):
            at = int(np.searchsorted(start, order))
            inside = [(start[k] + start[k + 1]) / 2 for k in (at - 1, at) if 0 <= k < start.size - 1]
            start = np.unique(np.concatenate([start, inside]))[max(0, at - 2) : at + 5]
            value, order = min((value, order), convert(start, self._sum(start, counted)))
        return value, order
