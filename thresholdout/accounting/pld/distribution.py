"""Privacy-loss distributions: what many steps leak together, with certified bounds on both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thresholdout.accounting.arguments import count as checked_count
from thresholdout.accounting.arguments import open_unit, positive
from thresholdout.accounting.pld.convolution import Composed, log_moment
from thresholdout.accounting.pld.lattice import Lattice, nodes, optimistic, pessimistic
from thresholdout.accounting.pld.loss import DominatingPair, Loss
from thresholdout.errors import InputError

__all__ = ["Interval", "PrivacyLossDistribution", "worst_delta", "worst_epsilon"]

_CELLS = 1 << 21
_LATTICE = 1 << 19  # points of all steps' lattices together, at most
_BUDGET = 6e6  # points of lattices and windows that one search may use up, some seconds
_ROUNDS = 8
_TINY = 1e-280


@dataclass(frozen=True)
class Interval:
    """A number between two proved bounds; unpacks into ``lower, estimate, upper``.

    Parameters
    ----------
    lower, upper : float
        Bounds.
    estimate : float
        A value in between that is usually much closer than they are; no bound.
    proved : bool
        Whether the upper bound is a guarantee for the mechanism, and not only for the pair of distributions, whose
        domination was checked numerically only.

    Examples
    --------
    >>> lower, estimate, upper = Interval(0.5, 0.6, 0.7)
    """

    lower: float
    estimate: float
    upper: float
    proved: bool = True

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower, self.estimate, self.upper))

    @property
    def bound(self) -> str:
        """How the upper end is to be read: "upper", or "estimate" when domination is not proved."""
        return "upper" if self.proved else "estimate"


class _Rough:
    """A saddle-point approximation of the summed loss; it guides the search, and no bound rests on it."""

    def __init__(self, steps: list[tuple[Loss, int]]) -> None:
        self._parts = [(*nodes(loss), times) for loss, times in steps]
        self.largest = max(float(np.abs(losses).max(initial=0.0)) for losses, _, _ in self._parts)

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return the logarithm of the moment, and mean and standard deviation of the tilted loss."""
        logs, means, variances = [], [], []
        for losses, weights, times in self._parts:
            log, mean, variance = log_moment(losses, weights, tilt)
            logs.append(times * log)
            means.append(times * mean)
            variances.append(times * variance)
        return math.fsum(logs), math.fsum(means), math.sqrt(math.fsum(variances))

    def log_delta(self, tilt: float) -> float:
        log, mean, spread = self.moments(tilt)
        if not math.isfinite(log):
            return -math.inf
        return log - tilt * mean - math.log1p(2.5 * spread * tilt * (1.0 + tilt) / (1.0 + spread))

    def _bisect(self, low_enough: float, *, by_mean: bool) -> float:
        """Return the tilt whose mean is the given one, or whose delta has the given logarithm."""
        spread = self.moments(0.0)[2]

        def short(tilt: float) -> bool:
            return self.moments(tilt)[1] < low_enough if by_mean else self.log_delta(tilt) > low_enough

        if spread == 0.0 or not short(0.0):
            return 0.0
        low, high = 0.0, 1e-3 / spread
        while short(high):
            low, high = high, 4.0 * high
            if self.moments(high)[2] * high < 1e-3 or high * self.largest > 1e6:
                return high
        for _ in range(14):
            middle = math.sqrt(low * high) if low > 0 else 0.5 * high
            low, high = (middle, high) if short(middle) else (low, middle)
        return high

    def tilt_of_epsilon(self, epsilon: float) -> float:
        return self._bisect(epsilon, by_mean=True)

    def tilt_of_delta(self, delta: float) -> float:
        return self._bisect(math.log(delta), by_mean=False)


class PrivacyLossDistribution:
    """What steps leak together, each given by a dominating pair and how often it is repeated.

    Nothing is put on a lattice before it is asked for; then the lattice's width is chosen, and refined, from the
    accuracy that is wanted. Repeating a step costs nothing.

    Parameters
    ----------
    steps : mapping from DominatingPair to int, or iterable of DominatingPair
        Pairs, and how often each is repeated, at least once.

    Raises
    ------
    InputError, InputTypeError
        For no steps, or a count that is no integer above 0.

    Notes
    -----
    Bounds hold for steps chosen adaptively, as long as each is dominated by its pair whatever came before
    [Zhu, Dong and Wang 2022, Theorem 10; PROOFS.md, D].

    Examples
    --------
    >>> from thresholdout.accounting.pld.pairs import gaussian
    >>> found = PrivacyLossDistribution({gaussian(1.0): 100})
    >>> lower, estimate, upper = found.epsilon(1e-5)
    >>> lower <= estimate <= upper and upper - lower < 0.02
    True
    >>> both = found.compose(PrivacyLossDistribution([gaussian(0.5)]))
    >>> both.count
    101
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

    @property
    def proved(self) -> bool:
        """Whether every pair is proved to dominate its step."""
        return all(pair.proved for pair in self._steps)

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

    def epsilon(self, delta: float, accuracy: float = 1e-4) -> Interval:
        """Return bounds on the smallest epsilon at a delta.

        Parameters
        ----------
        delta : float
            In [1e-250, 1).
        accuracy : float
            Wanted relative distance of the bounds, in (0, 1). They may stay further apart for steps whose lattice
            would need more than 500,000 points, or sums that would need more than 2 million; the work of a
            search is bounded by some seconds.

        Returns
        -------
        Interval
            In nats; the upper bound is infinite when delta is below the probability of an infinite loss.

        Raises
        ------
        InputError, InputTypeError
            For values out of range.

        Examples
        --------
        >>> from thresholdout.accounting.pld.pairs import randomised_response
        >>> round(PrivacyLossDistribution([randomised_response(1.0)]).epsilon(1e-9).upper, 6)
        1.0
        """
        return self._epsilon(_delta(delta), open_unit(accuracy, "accuracy"), 0.0)

    def _epsilon(self, target: float, wanted: float, floor: float) -> Interval:
        """Return bounds; they need not be close when the upper one is at most `floor`."""
        search = _Search(self._steps, max(_TINY, min(1e-6, 0.01 * wanted) * target / self.count))
        tilt = search.rough.tilt_of_delta(target)
        guess = search.rough.moments(tilt)[1]
        step = search.step(math.sqrt(8.0 * wanted * max(guess, floor, 1e-300) / (self.count * (1.0 + tilt))), tilt)
        best = (0.0, math.inf)
        for _ in range(_ROUNDS):
            for _ in range(3):
                upper, lower = search.composed(step, tilt)
                high, low = _smallest(upper, target, guess), _largest(lower, target, guess)
                best = max(best[0], low), min(best[1], high)
                if best[1] == math.inf:
                    again = 2.0 * tilt
                else:
                    again = search.rough.tilt_of_epsilon(best[1])
                if not upper.strays(again):
                    break
                tilt, guess = again, (best[1] if best[1] < math.inf else guess)
            gap = best[1] - best[0]
            if gap <= wanted * best[1] or search.sharp or best[1] == math.inf or best[1] <= floor:
                break
            guess = best[1]
            finer = search.step(step / min(max(1.15 * math.sqrt(gap / (wanted * best[1])), 1.3), 12.0), tilt)
            if finer >= step * 0.95 or not search.affords(finer):
                break
            step = finer
        return _interval(best[0], best[1], self.proved)

    def delta(self, epsilon: float, accuracy: float = 1e-3) -> Interval:
        """Return bounds on the smallest delta at an epsilon.

        Parameters
        ----------
        epsilon : float
            At least 0, in nats.
        accuracy : float
            Wanted relative distance of the bounds, in (0, 1); see `epsilon`.

        Returns
        -------
        Interval
            In [0, 1].

        Raises
        ------
        InputError, InputTypeError
            For values out of range.

        Examples
        --------
        >>> from thresholdout.accounting.pld.pairs import Laplace
        >>> lower, _, upper = PrivacyLossDistribution([Laplace(1.0)]).delta(0.5)
        >>> lower <= 0.22119921692859512 <= upper
        True
        """
        return self._delta(positive(epsilon, "epsilon", zero=True), open_unit(accuracy, "accuracy"), 0.0)

    def _delta(self, target: float, wanted: float, floor: float) -> Interval:
        """Return bounds; they need not be close when the upper one is at most `floor`."""
        search = _Search(self._steps, 1e-30 / self.count)
        tilt = search.rough.tilt_of_epsilon(target)
        likely = search.rough.log_delta(tilt)
        tail = math.exp(max(min(likely, 0.0) - 14.0 - math.log(self.count) + math.log(wanted), math.log(_TINY)))
        search = _Search(self._steps, tail)
        tilt = search.rough.tilt_of_epsilon(target)
        spread = max(search.rough.moments(tilt)[2], 1e-300)
        slope = max(tilt, 1.0 / spread)
        step = search.step(math.sqrt(8.0 * wanted / (self.count * slope * (1.0 + slope))), tilt)
        best = (0.0, 1.0)
        for _ in range(_ROUNDS):
            upper, lower = search.composed(step, tilt)
            best = max(best[0], lower.delta(target)[0]), min(best[1], upper.delta(target)[1])
            gap = best[1] - best[0]
            if gap <= wanted * best[1] or search.sharp or best[1] < 1e-290 or best[1] <= floor:
                break
            finer = search.step(step / min(max(1.15 * math.sqrt(gap / (wanted * best[1])), 1.3), 12.0), tilt)
            if finer >= step * 0.95 or not search.affords(finer):
                break
            step = finer
        return _interval(best[0], best[1], self.proved)


class _Search:
    """The losses of steps, and their lattices."""

    def __init__(self, steps: Mapping[DominatingPair, int], tail: float) -> None:
        self._losses = [(pair.loss(tail), times) for pair, times in steps.items()]
        self.rough = _Rough(self._losses)
        anchors = [pair.anchor for pair in steps if pair.anchor is not None]
        self._anchor = min(anchors) if anchors else None
        self._length = 0.0
        for loss, _ in self._losses:
            terms = max((piece.terms for piece in loss.pieces), default=1)
            self._length += terms * _span(loss)
        self._built, self._spent, self._last = 0.0, 0.0, 0.0
        self._high: list[tuple[Lattice, int]] = []
        self._low: list[tuple[Lattice, int]] = []
        self.sharp = self._anchor is not None and all(
            not loss.pieces and all(_divides(self._anchor, atom[0]) for atom in loss.atoms) for loss, _ in self._losses
        )

    def step(self, wanted: float, tilt: float) -> float:
        """Return a width of the lattice near the wanted one that is not too fine, and that atoms lie on."""
        if self.sharp and self._anchor is not None:
            return self._anchor
        widest = 20.0 * self.rough.moments(tilt)[2]
        least = max(widest / (0.9 * _CELLS), self._length / _LATTICE)
        if self.rough.largest > 0:
            wanted = min(wanted, 0.5 * self.rough.largest)
        found = max(wanted, least, 1e-300)
        if self._anchor is not None and found < self._anchor:
            found = self._anchor / math.ceil(self._anchor / found)
        return found

    def composed(self, step: float, tilt: float) -> tuple[Composed, Composed]:
        """Return the sums of losses on a lattice with larger, and with smaller divergences."""
        if step != self._built:
            self._high, self._low = [], []
            for loss, times in self._losses:
                upper = pessimistic(loss, step)
                self._high.append((upper, times))
                self._low.append((optimistic(loss, upper), times))
            self._built = step
            self._spent += 2.0 * self._length / step
        found = Composed(self._high, tilt, _CELLS), Composed(self._low, tilt, _CELLS)
        self._last = self._length / step + sum(0.0 if each.empty else each.size for each in found)
        self._spent += self._last
        return found

    def affords(self, finer: float) -> bool:
        """Whether there is work left for a finer lattice."""
        return self._spent + self._last * self._built / finer <= _BUDGET


def _span(loss: Loss) -> float:
    """Return the length of the range of all losses of a step's pieces together."""
    ends = [piece.loss(np.array([piece.low, piece.high])) for piece in loss.pieces]
    return float(sum(end[1] - end[0] for end in ends)) + 2.0 * max((abs(atom[0]) for atom in loss.atoms), default=0.0)


def _divides(anchor: float, value: float) -> bool:
    return abs(value - round(value / anchor) * anchor) <= 1e-14 * abs(value)


def _delta(delta: object) -> float:
    found = open_unit(delta, "delta")
    if found < 1e-250:
        raise InputError("delta", repr(found), "at least 1e-250")
    return found


def _interval(low: float, high: float, proved: bool) -> Interval:
    """Return the interval; errors of second order of both ends cancel a third of the way (PROOFS.md, L5)."""
    if not math.isfinite(high):
        return Interval(low, high, high, proved)
    low = min(low, high)
    return Interval(low, low + (high - low) / 3.0, high, proved)


def _smallest(composed: Composed, delta: float, guess: float) -> float:
    """Return an epsilon whose upper delta is at most the given one, about the smallest."""
    return _root(lambda epsilon: _log(composed.delta(epsilon)[1]) - math.log(delta), composed, guess)[1]


def _largest(composed: Composed, delta: float, guess: float) -> float:
    """Return an epsilon whose lower delta is at least the given one, about the largest, or 0."""
    return _root(lambda epsilon: _log(composed.delta(epsilon)[0]) - math.log(delta), composed, guess)[0]


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -750.0


def _root(excess: Callable[[float], float], composed: Composed, guess: float) -> tuple[float, float]:
    """Return (low, high) close together with a positive excess at low (or low = 0), and none above 0 at high."""
    if composed.empty:
        return (0.0, 0.0) if excess(0.0) <= 0 else (0.0, math.inf)
    move = 0.02 * composed.spread + composed.step
    value = excess(guess)
    low, high, at_low, at_high = guess, guess, value, value
    if value > 0:
        for _ in range(64):
            low, at_low = high, at_high
            high, move = high + move, 3.0 * move
            at_high = excess(high)
            if at_high <= 0:
                break
        else:
            return low, math.inf
    else:
        while at_low <= 0:
            if low <= 0.0:
                return 0.0, 0.0
            high, at_high = low, at_low
            low, move = max(0.0, low - move), 3.0 * move
            at_low = excess(low)
    close = 1e-7 * composed.spread + 1e-13 * high
    side = 0
    for trial in range(60):
        if high - low <= close:
            break
        share = min(max(at_low / (at_low - at_high), 0.02), 0.98) if trial < 30 else 0.5
        middle = low + (high - low) * share
        value = excess(middle)
        if value > 0:
            low, at_low = middle, value
            at_high, side = (at_high / 2 if side == 1 else at_high), 1
        else:
            high, at_high = middle, value
            at_low, side = (at_low / 2 if side == -1 else at_low), -1
    return low, high


def worst_epsilon(distributions: Iterable[PrivacyLossDistribution], delta: float, accuracy: float = 1e-4) -> Interval:
    """Return bounds on the largest epsilon of several distributions, such as both directions of add/remove.

    Parameters
    ----------
    distributions : iterable of PrivacyLossDistribution
        At least one.
    delta, accuracy : float
        As in `PrivacyLossDistribution.epsilon`.

    Returns
    -------
    Interval
        Of the largest one.

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Examples
    --------
    >>> from thresholdout.accounting.pld.pairs import gaussian
    >>> worst_epsilon([PrivacyLossDistribution([gaussian(s)]) for s in (0.5, 1.0)], 1e-5).upper < 4.4
    True
    """
    calls = [each._epsilon for each in distributions]
    return _worst(calls, _delta(delta), open_unit(accuracy, "accuracy"))


def worst_delta(distributions: Iterable[PrivacyLossDistribution], epsilon: float, accuracy: float = 1e-3) -> Interval:
    """Return bounds on the largest delta of several distributions; see `worst_epsilon`.

    Examples
    --------
    >>> from thresholdout.accounting.pld.pairs import gaussian
    >>> worst_delta([PrivacyLossDistribution([gaussian(s)]) for s in (0.5, 1.0)], 1.0).upper < 0.128
    True
    """
    calls = [each._delta for each in distributions]
    return _worst(calls, positive(epsilon, "epsilon", zero=True), open_unit(accuracy, "accuracy"))


def _worst(calls: Sequence[Callable[[float, float, float], Interval]], value: float, accuracy: float) -> Interval:
    """Return the largest interval; the others are found only as well as it takes to see that they are smaller."""
    if not calls:
        raise InputError("distributions", "none", "at least one")
    found: list[Interval] = []
    for call in calls:
        found.append(call(value, accuracy, max((each.lower for each in found), default=0.0)))
    low, high = max(each.lower for each in found), max(each.upper for each in found)
    certain = [each.estimate for each in found if each.upper > low] or [low]
    return Interval(low, min(max(*certain, low), high), high, all(each.proved for each in found))
