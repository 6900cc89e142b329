"""Renyi differential privacy: divergences add up, whatever their order."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

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
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event
from thresholdout.privacy.accounting.events.renyi_curves import (
    LEAST_ORDERS,
    MOST_ORDERS,
    curve,
    curve_bound,
    curve_refusal,
)
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import orders as check_orders
from thresholdout.silence import silence

__all__ = ["RenyiAccountant"]

Floats = NDArray[np.float64]
Counted = Sequence[tuple[Event, float]]
_NUMBER = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?)")
_TINY = 5e-324  # a delta below the smallest float is not 0
_FEW = 12  # different events whose curves are computed at every order
_PROBES = 16  # of more than these, so many are picked to find where the best order is
_APART = 1.5  # ratio of neighbouring orders, less 1, from which their search starts
_HALVINGS, _MORE_HALVINGS = 4, 8
_ROUNDS = 3
_WORTH = 1e-4  # relative gain for which all events are looked at again


def _words_and_numbers(event: Event) -> list[str | float]:
    """Return what an event is, such that events of a kind are in the order of their parameters."""
    parts = _NUMBER.split(repr(event))
    return [float(part) if k % 2 else part for k, part in enumerate(parts)]


def _spread(counted: Counted, size: int) -> Counted:
    """Return some events, from the first to the last, as often as all happen together."""
    found = [counted[k] for k in sorted(set(np.linspace(0, len(counted) - 1, size).round().astype(int).tolist()))]
    share = sum(float(times) for _, times in counted) / sum(float(times) for _, times in found)
    return [(event, times * share) for event, times in found]


class RenyiAccountant(Accountant):
    """Adds up Renyi divergences, and converts the sum at the best order.

    Parameters
    ----------
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is.
    orders : array_like, optional
        Orders above 1 to start from; `default_orders` when left out. Between them the best order is searched for,
        and beyond them where it is the last one, unless they are given.
    conversion : {"balle", "mironov"}
        From divergences to epsilon; see `rdp_to_epsilon`.

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
        self._orders = np.unique(check_orders(orders)) if self._given else default_orders()
        self._conversion = chosen(conversion, "conversion", ("balle", "mironov"))
        self._known: dict[Event, dict[float, float]] = {}

    @property
    def orders(self) -> Floats:
        """The orders from which searches start."""
        return self._orders.copy()

    def with_conversion(self, conversion: str) -> RenyiAccountant:
        """Return an accountant of the same events that converts in another way; it has all curves at hand."""
        other = RenyiAccountant(self.adjacency, orders=self._orders if self._given else None, conversion=conversion)
        other._counts, other._known = dict(self._counts), self._known
        return other

    def _why_not(self, leaf: Event) -> str:
        return curve_refusal(leaf, self.adjacency)

    def rdp(self, orders: Any = None) -> Floats:
        """Return the Renyi divergence of everything so far at some orders, in nats, rounded up.

        Parameters
        ----------
        orders : array_like, optional
            Above 1; `orders` when left out.

        Returns
        -------
        ndarray of shape (k,)
        """
        return self._sum(self._orders if orders is None else check_orders(orders), list(self.counts.items()))

    def _sum(self, orders: Floats, counted: Counted) -> Floats:
        """Add up divergences, each order exactly and then rounded up: in any order of the events the same."""
        if not counted:
            return np.zeros(orders.size)
        with np.errstate(over="ignore"):
            rows = np.stack([self._curve(event, orders) * float(times) for event, times in counted])
        totals = np.array([math.fsum(column) if np.isfinite(column).all() else math.inf for column in rows.T])
        return totals * (1 + 1e-15)

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

        Any order gives a guarantee, so that nothing depends on how it was found.
        """
        counted = sorted(self.counts.items(), key=lambda pair: _words_and_numbers(pair[0]))
        with silence(EdgeOrderWarning, NoFiniteOrderWarning):
            if len(counted) <= _FEW:
                value, order = self._searched(convert, counted, self._orders)
            else:
                value, order = self._sampled(convert, counted)
        if not np.isfinite(value):
            warnings.warn("no order has a finite divergence; nothing is guaranteed", NoFiniteOrderWarning, stacklevel=4)
        return value, order

    def _sampled(
        self, convert: Callable[[Floats, Floats], tuple[float, float]], counted: Counted
    ) -> tuple[float, float]:
        """With many different events, search with some that stand for all, picked by what they cost near the best."""
        probes, start = _spread(counted, _PROBES), self._thinned()
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
        """Pick some events that stand for all: each for neighbours that cost as much together, at one order.

        The costliest stands for itself: often the best order is the largest at which it does not count for most yet.
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

    def _thinned(self) -> Floats:
        """Return some of the orders that a search starts from."""
        found = [float(self._orders[0])]
        for order in self._orders.tolist():
            if order - 1 >= _APART * (found[-1] - 1):
                found.append(order)
        return np.unique(np.append(found, self._orders[-1]))

    def _searched(
        self,
        convert: Callable[[Floats, Floats], tuple[float, float]],
        counted: Counted,
        start: Floats,
        halvings: int = _HALVINGS,
    ) -> tuple[float, float]:
        """Refine around the best order: first outwards from the ends, then by halving intervals."""
        value, order = convert(start, self._sum(start, counted))
        if not self._given and order in (start[0], start[-1]):
            further = np.array(LEAST_ORDERS if order == start[0] else MOST_ORDERS)
            start = np.unique(np.concatenate([start, further]))
            value, order = convert(start, self._sum(start, counted))
        for _ in range(halvings):
            at = int(np.searchsorted(start, order))
            inside = [(start[k] + start[k + 1]) / 2 for k in (at - 1, at) if 0 <= k < start.size - 1]
            start = np.unique(np.concatenate([start, inside]))[max(0, at - 2) : at + 5]
            value, order = min((value, order), convert(start, self._sum(start, counted)))
        return value, order
