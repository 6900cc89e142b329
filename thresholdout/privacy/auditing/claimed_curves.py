"""A claimed trade-off curve: finitely many of its points (epsilon, delta), and their consequences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.accountants.calibration import all_accountants, composed_accountants
from thresholdout.privacy.accounting.bound_arguments import positive, probability
from thresholdout.privacy.accounting.events.composed_events import Composed
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event

__all__ = ["Claim", "ClaimedCurve", "CurvePoint", "claimed_curve"]

Floats = NDArray[np.float64]
_LARGEST = 700.0  # exp overflows beyond
# An audit detects no delta below 1e-6 (it would take a million outputs), so the curve is read down to 1e-7.
_LEAST_DELTA = 1e-7
_POINTS = 24  # points of an event's curve, each of which takes an accountant up to 0.1 s
_GRID = np.concatenate([[0.0], np.geomspace(0.02, 40.0, 60)])  # epsilons at which a function is read
# Outward rounding of the claim: more than all rounding errors of the envelope, which are some 1e-15.
_WIDER = 1e-12


class CurvePoint(NamedTuple):
    """A point of a claimed curve: at most `delta` at `epsilon`."""

    epsilon: float
    delta: float


Claim = Event | Iterable[Event] | Callable[[float], float] | tuple[float, float]


@dataclass(frozen=True)
class ClaimedCurve:
    """The privacy that some points (epsilon, delta) claim together, in both orders of the data sets.

    A mechanism that keeps the claim has all points; nothing is assumed between them.
    """

    points: tuple[CurvePoint, ...]

    @cached_property
    def epsilons(self) -> Floats:
        """Epsilons of the points."""
        return np.array([point.epsilon for point in self.points])

    @cached_property
    def deltas(self) -> Floats:
        """Deltas of the points."""
        return np.array([point.delta for point in self.points])

    @cached_property
    def _lines(self) -> tuple[Floats, Floats]:
        """Slopes and intercepts of ``F``, the largest power at a false-positive rate, as a minimum of lines."""
        factors, deltas = np.exp(self.epsilons) * (1.0 + _WIDER), self.deltas * (1.0 + _WIDER) + _WIDER * 1e-3
        # Each point gives a line for both orders of the data sets; no power is above 1.
        slopes = np.concatenate([factors, 1.0 / factors, [0.0]])
        return slopes, np.concatenate([deltas, 1.0 - (1.0 - deltas) / factors, [1.0]])

    def least_rate(self, power: float) -> float:
        """Return the smallest false-positive rate of an event with some power."""
        slopes, intercepts = self._lines
        rising = slopes > 0.0
        return max(0.0, float(((power - intercepts[rising]) / slopes[rising]).max()))

    @cached_property
    def pair(self) -> tuple[Floats, Floats, Floats]:
        """Two laws on finitely many outcomes whose trade-off is the claimed one, and ``ln(q/p)`` of each outcome.

        Every pair of laws that keeps the claim is an image of these two under one random map [Dong, Roth and Su 2022,
        Theorem 2.10, by Blackwell].
        """
        slopes, intercepts = self._lines
        corners = {0.0, 1.0}
        order = np.argsort(-slopes)
        hull: list[int] = []
        for k in order.tolist():  # the lower envelope of lines, from the steepest on
            while hull:
                last = hull[-1]
                if slopes[k] == slopes[last]:
                    if intercepts[k] >= intercepts[last]:
                        break
                    hull.pop()
                    continue
                crossing = (intercepts[k] - intercepts[last]) / (slopes[last] - slopes[k])
                before = 0.0
                if len(hull) > 1:
                    above = hull[-2]
                    before = (intercepts[last] - intercepts[above]) / (slopes[above] - slopes[last])
                if crossing <= before:
                    hull.pop()
                    continue
                hull.append(k)
                break
            else:
                hull.append(k)
        for first, second in itertools.pairwise(hull):
            corner = (intercepts[second] - intercepts[first]) / (slopes[first] - slopes[second])
            if 0.0 < corner < 1.0:
                corners.add(float(corner))
        rates = np.array(sorted(corners))
        powers = np.minimum.accumulate((slopes[:, None] * rates + intercepts[:, None]).min(axis=0)[::-1])[::-1]
        powers[-1] = 1.0
        p = np.concatenate([[0.0], np.diff(rates)])
        q = np.concatenate([[powers[0]], np.diff(powers)])
        kept = (p > 0.0) | (q > 0.0)
        p, q = p[kept], q[kept]
        with np.errstate(divide="ignore"):
            return p / p.sum(), q / q.sum(), np.log(q) - np.log(p)


def claimed_curve(claim: object, adjacency: Adjacency) -> ClaimedCurve:
    """Return the points of a claim: of an event's curve, of a function ``delta(epsilon)``, or the one of a pair."""
    if isinstance(claim, tuple) and len(claim) == 2 and not any(isinstance(part, Event) for part in claim):
        epsilon = positive(claim[0], "claim", zero=True)
        if epsilon > _LARGEST:
            raise InputError("claim", f"epsilon {epsilon!r}", f"an epsilon of at most {_LARGEST:g} nats")
        return ClaimedCurve((CurvePoint(epsilon, probability(claim[1], "claim")),))
    if isinstance(claim, Event):
        return _curve_of_event(claim, adjacency)
    if isinstance(claim, Iterable):
        return _curve_of_event(Composed(claim), adjacency)
    if not callable(claim):
        expected = "an event, a function delta(epsilon), or a pair (epsilon, delta)"
        raise InputTypeError("claim", f"a {type(claim).__name__}", expected)
    found = []
    for epsilon in _GRID.tolist():
        found.append(CurvePoint(epsilon, _delta_of(claim, epsilon)))
        if found[-1].delta <= _LEAST_DELTA:
            break
    return ClaimedCurve(tuple(found))


def _delta_of(claim: Callable[[float], Any], epsilon: float) -> float:
    value = claim(epsilon)
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0.0 <= found <= 1.0:
        raise InputError("claim", f"{value!r} at epsilon {epsilon:g}", "a function whose deltas are from 0 to 1")
    return found


@lru_cache(maxsize=16)
def _curve_of_event(claim: Event, adjacency: Adjacency) -> ClaimedCurve:
    taken, refused = composed_accountants(claim, adjacency, all_accountants())
    if not taken:
        reasons = " ".join(f"The {name} accountant refuses it because {reason}." for name, reason in refused.items())
        raise InputError("claim", "one that none supports", "an event that some accountant supports", reasons)
    # The closest accountant comes last. The others bound the range where it has no finite epsilon.
    accountants = taken[::-1]
    top = min(_LARGEST, min(accountant.epsilon(_LEAST_DELTA) for accountant in accountants))
    if not math.isfinite(top):
        raise InputError("claim", "one without", "an event with a finite epsilon")
    epsilons = [0.0, *np.linspace(top / 60.0, top, _POINTS).tolist()] if top > 0.0 else [0.0]
    closest = accountants[0]
    return ClaimedCurve(tuple(CurvePoint(e, min(1.0, closest.delta(e))) for e in epsilons))
