"""Privacy-loss distributions: the leakage of many steps together, with certified bounds on both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count as checked_count
from thresholdout.privacy.accounting.bound_arguments import open_unit, positive
from thresholdout.privacy.accounting.pld.convolution import Composed
from thresholdout.privacy.accounting.pld.loss import DominatingPair
from thresholdout.privacy.accounting.pld.loss_estimates import Search, largest, smallest

__all__ = [
    "Interval",
    "PrivacyLossDistribution",
    "closest_interval",
    "guaranteed_delta",
    "guaranteed_epsilon",
    "worst_delta",
    "worst_epsilon",
]

_ROUNDS = 8  # of finer lattices, at most
_TILTS = 5  # tilts that are tried for each lattice
_TINY = 1e-280  # smallest probability that is left out of a step's tails: well above underflow
_SHARE = 2.0 / 3.0  # of the distance of both bounds, the upper one's from the exact value (PROOFS.md, L5)


@dataclass(frozen=True)
class Interval:
    """A number between two proved bounds; unpacks into ``lower, estimate, upper``.

    The estimate is usually much closer than the bounds. It is no bound, and if there is a `reason` it may be as far
    away as they are. The reason says why the bounds are further apart than requested; it is empty if they are not.
    """

    lower: float
    estimate: float
    upper: float
    reason: str = ""

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower, self.estimate, self.upper))


class PrivacyLossDistribution:
    """The leakage of steps together, each given by a dominating pair and its number of repetitions.

    Nothing is put on a lattice before a query; then the lattice's width is chosen, and refined, from the wanted
    accuracy. Repeating a step costs nothing.

    Notes
    -----
    Bounds hold for steps chosen adaptively, if each is dominated by its pair for every past [Zhu, Dong and Wang 2022,
    Theorem 10; PROOFS.md, D].
    """

    def __init__(self, steps: Mapping[DominatingPair, int] | Iterable[DominatingPair]) -> None:
        found: dict[DominatingPair, int] = {}
        pairs = steps.items() if isinstance(steps, Mapping) else ((pair, 1) for pair in steps)
        for pair, times in pairs:
            found[pair] = found.get(pair, 0) + checked_count(times, "steps")
        if not found:
            raise InputError("steps", "none", "at least one step")
        self._steps = found

    @property
    def steps(self) -> dict[DominatingPair, int]:
        """Pairs, and how often each is repeated."""
        return dict(self._steps)

    @property
    def count(self) -> int:
        """Number of steps."""
        return sum(self._steps.values())

    def __repr__(self) -> str:
        return f"PrivacyLossDistribution({len(self._steps)} different steps, {self.count} in all)"

    def compose(self, other: PrivacyLossDistribution) -> PrivacyLossDistribution:
        """Return the steps of both."""
        found = dict(self._steps)
        for pair, times in other._steps.items():
            found[pair] = found.get(pair, 0) + times
        return PrivacyLossDistribution(found)

    def self_compose(self, count: int) -> PrivacyLossDistribution:
        """Return all steps repeated."""
        times = checked_count(count, "count")
        return PrivacyLossDistribution({pair: times * each for pair, each in self._steps.items()})

    def epsilon(self, delta: float, accuracy: float = 1e-5) -> Interval:
        """Return bounds on the smallest epsilon at a delta."""
        return self._epsilon(_delta(delta), open_unit(accuracy, "accuracy"), 0.0, True)

    def guaranteed_epsilon(self, delta: float, accuracy: float = 1e-5) -> float:
        """Return the upper bound of `epsilon` alone, in about half the time."""
        return self._epsilon(_delta(delta), open_unit(accuracy, "accuracy"), 0.0, False).upper

    def _epsilon(self, target: float, wanted: float, floor: float, both: bool) -> Interval:
        """Return bounds, or an upper bound; they need not be close if that is at most `floor`."""
        return closest_interval(lambda accuracy: self._search_epsilon(target, accuracy, floor, both), wanted)

    def _search_epsilon(self, target: float, wanted: float, floor: float, both: bool) -> Interval:
        """Search with the lattices that an accuracy requires."""
        search = Search(self._steps, max(_TINY, min(1e-6, 0.01 * wanted) * target / self.count), wanted)
        if search.below(floor, target):
            return Interval(0.0, 0.0, floor)
        guess, slope = search.first(target)
        allowed = max(_SHARE * wanted * max(guess, 1e-300), min(0.25 * (floor - guess), 0.1 * guess))
        tilt = search.tilt(slope, guess, target)
        step = search.width(allowed, slope, tilt)
        fewer = search.fewer(step, allowed, slope)
        if fewer is not search:
            search, step = fewer, fewer.width(allowed, slope, tilt)
        asked, both, finest = both, both or not search.predictable(step), False
        low, high, sums = 0.0, math.inf, []
        for _ in range(_ROUNDS):
            for _ in range(_TILTS):
                sums = [search.upper(step, tilt)]
                high = min(high, smallest(sums[0], target, guess))
                if high <= floor:
                    break
                slope = 2.0 * slope if high == math.inf else search.rough.tilt_of_epsilon(high)
                again = search.again(sums[0], min(high, 2.0 * guess), slope, target)
                if again is None:
                    break
                step, tilt = again
                guess = high if high < math.inf else guess
            if both and high > floor and (asked or not finest):  # after the finest, a lower bound guides no other
                sums.append(search.lower(sums[0].step, tilt))
                low = max(low, largest(sums[1], target, min(high, max(guess, 0.0))))
            gap = high - low if both else search.excess(step, slope) / _SHARE
            if gap <= wanted * high or search.sharp or high == math.inf or high <= floor:
                break
            guess = high
            aim = step / _finer(gap / (wanted * high))
            finer = search.step(aim, tilt)
            finest = finer > aim
            # The finest lattice costs more than all others: it is built only if it at least halves the width.
            if finer >= step * (0.5 if finest else 0.95) or not search.affords(finer):
                break
            step = finer
        gap = gap if both or not search.sharp else 0.0
        return _interval(low, high, _why(gap, high, wanted, sums, search.sharp) if high > floor else "")

    def delta(self, epsilon: float, accuracy: float = 1e-3) -> Interval:
        """Return bounds on the smallest delta at an epsilon."""
        return self._delta(positive(epsilon, "epsilon", zero=True), open_unit(accuracy, "accuracy"), 0.0, True)

    def guaranteed_delta(self, epsilon: float, accuracy: float = 1e-3) -> float:
        """Return the upper bound of `delta` alone, in about half the time; see `guaranteed_epsilon`."""
        return self._delta(positive(epsilon, "epsilon", zero=True), open_unit(accuracy, "accuracy"), 0.0, False).upper

    def _delta(self, target: float, wanted: float, floor: float, both: bool) -> Interval:
        """Return bounds, or an upper bound; they need not be close if that is at most `floor`."""
        return closest_interval(lambda accuracy: self._search_delta(target, accuracy, floor, both), wanted)

    def _search_delta(self, target: float, wanted: float, floor: float, both: bool) -> Interval:
        """Search with the lattices that an accuracy requires."""
        search = Search(self._steps, 1e-30 / self.count, wanted)
        tilt = search.rough.tilt_of_epsilon(target)
        likely = search.rough.log_delta(tilt)
        # Tails are charged in full, so they have to be small beside delta: e^-14 of it, over all steps.
        tail = math.exp(max(min(likely, 0.0) - 14.0 - math.log(self.count) + math.log(wanted), math.log(_TINY)))
        slope = max(tilt, 1.0 / max(search.rough.moments(tilt)[2], 1e-300))
        search = Search(self._steps, tail, min(wanted / (slope * max(target, 1.0 / slope)), wanted))
        peak = search.rough.tilt_of_epsilon(target)
        slope = max(peak, 1.0 / max(search.rough.moments(peak)[2], 1e-300))
        tilt = search.tilt(peak, target, math.exp(max(min(likely, 0.0), -700.0)))
        step = search.width(_SHARE * wanted / slope, slope, tilt)
        both = both or not search.predictable(step)
        low, high = 0.0, 1.0
        for _ in range(_ROUNDS):
            sums = [search.upper(step, tilt)]
            high = min(high, sums[0].delta(target)[1])
            if both and high > floor:
                sums.append(search.lower(step, tilt))
                low = max(low, sums[1].delta(target)[0])
            gap = high - low if both else high * slope * search.excess(step, slope) / _SHARE
            if gap <= wanted * high or search.sharp or high < 1e-290 or high <= floor:
                break
            finer = search.step(step / _finer(gap / (wanted * high)), tilt)
            if finer >= step * 0.95 or not search.affords(finer):
                break
            step = finer
        gap = gap if both or not search.sharp else 0.0
        return _interval(low, high, _why(gap, high, wanted, sums, search.sharp) if high > floor else "")


def closest_interval(search: Callable[[float], Interval], wanted: float) -> Interval:
    """Return the result of a search, or, if its lattice would be too large, the best of coarser ones."""
    found = search(wanted)
    for coarser in (10.0 * wanted, 100.0 * wanted):
        if not found.reason or not found.upper - found.lower > coarser * found.upper or found.upper == math.inf:
            break
        other = search(coarser)
        found = _interval(max(found.lower, other.lower), min(found.upper, other.upper), found.reason)
        if not other.reason:
            break
    return found


def _finer(ratio: float) -> float:
    """Return the factor by which a lattice has to be finer for bounds that are closer by a ratio."""
    return min(max(1.15 * math.sqrt(ratio), 1.3), 12.0)  # errors go with the square of the width; a little finer yet


def _why(gap: float, high: float, wanted: float, sums: list[Composed], sharp: bool) -> str:
    """Return why bounds are further apart than wanted, or are predicted to be.

    A sharp lattice is exact up to rounding.
    """
    if high == math.inf:
        return "losses that count as infinite are more likely than delta"
    if gap <= wanted * high or high < 1e-290:
        return ""
    if any(each.wide for each in sums if not each.empty):
        return "the sum of all losses reaches too far for the largest lattice"
    if sharp or any(each.rounding > 0.01 * wanted for each in sums if not each.empty):
        return "rounding errors of so many steps may add up to more"
    return "a lattice that is fine enough would take too long"


def _delta(delta: object) -> float:
    found = open_unit(delta, "delta")
    if found < 1e-250:
        raise InputError("delta", repr(found), "at least 1e-250")
    return found


def _interval(low: float, high: float, reason: str) -> Interval:
    """Return the interval; errors of second order of both ends cancel a third of the way (PROOFS.md, L5)."""
    if not math.isfinite(high):
        return Interval(low, high, high, reason)
    low = min(low, high)
    return Interval(low, low + (high - low) / 3.0, high, reason)


def worst_epsilon(distributions: Iterable[PrivacyLossDistribution], delta: float, accuracy: float = 1e-5) -> Interval:
    """Return bounds on the largest epsilon of several distributions, such as both directions of add/remove."""
    calls = [each._epsilon for each in distributions]
    return _worst(calls, _delta(delta), open_unit(accuracy, "accuracy"), True)


def guaranteed_epsilon(distributions: Iterable[PrivacyLossDistribution], delta: float, accuracy: float = 1e-5) -> float:
    """Return the upper bound of `worst_epsilon` alone, in about half the time."""
    calls = [each._epsilon for each in distributions]
    return _worst(calls, _delta(delta), open_unit(accuracy, "accuracy"), False).upper


def worst_delta(distributions: Iterable[PrivacyLossDistribution], epsilon: float, accuracy: float = 1e-3) -> Interval:
    """Return bounds on the largest delta of several distributions; see `worst_epsilon`."""
    calls = [each._delta for each in distributions]
    return _worst(calls, positive(epsilon, "epsilon", zero=True), open_unit(accuracy, "accuracy"), True)


def guaranteed_delta(distributions: Iterable[PrivacyLossDistribution], epsilon: float, accuracy: float = 1e-3) -> float:
    """Return the upper bound of `worst_delta` alone, in about half the time."""
    calls = [each._delta for each in distributions]
    return _worst(calls, positive(epsilon, "epsilon", zero=True), open_unit(accuracy, "accuracy"), False).upper


Call = Callable[[float, float, float, bool], Interval]


def _worst(calls: Sequence[Call], value: float, accuracy: float, both: bool) -> Interval:
    """Return the largest interval; the others are found only closely enough to show that they are smaller."""
    if not calls:
        raise InputError("distributions", "none", "at least one distribution")
    found: list[Interval] = []
    for call in calls:
        floor = max((each.lower if both else each.upper for each in found), default=0.0)
        found.append(call(value, accuracy, floor, both))
    low, high = max(each.lower for each in found), max(each.upper for each in found)
    certain = [each.estimate for each in found if each.upper > low] or [low]
    reason = next((each.reason for each in found if each.upper == high), "")
    return Interval(low, min(max(*certain, low), high), high, reason)
