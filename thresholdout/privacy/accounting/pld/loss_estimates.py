"""Estimates that guide the computation of privacy losses: rough moments, widths of lattices, epsilons at a delta."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from graphs.numerics.bisection import bisect
from thresholdout.privacy.accounting.pld.convolution import OUTSIDE, Composed, log_sum, mixed_moments
from thresholdout.privacy.accounting.pld.levels import Mixtures, dominated, dominating
from thresholdout.privacy.accounting.pld.loss import DominatingPair, Floats, Loss
from thresholdout.privacy.accounting.pld.loss_lattice import Lattice, nodes, optimistic, pessimistic
from thresholdout.privacy.accounting.pld.rare_losses import Cut, WithRare

__all__ = ["Rough", "Search", "largest", "smallest"]

# No bound rests on the numbers below: they trade time and memory for closeness.
_CELLS = 1 << 22  # most points of a window: 32 MB
_FEW = 4  # losses whose coarse lattices cost next to nothing
_COARSE = 1 << 13  # points of a coarse lattice
_LATTICE = 1 << 19  # most points of all steps' lattices together
_AVERAGED = 50  # steps from which on the places of atoms between points of a lattice average out
_FURTHER = np.multiply.outer((-1.0, 1.0), 7.0 * 2.0 ** np.arange(-5, 6)).ravel()  # further tilts, in inverse spreads
_AT_ONCE = 1_000_000  # exponents at a time
_CUTS = (0.8, 0.5, 0.33, 0.25, 0.17, 0.125, 0.08, 0.06, 0.04, 0.03)  # of epsilon, where rare losses may begin
_TILTS = np.geomspace(0.1, 2000.0, 60)  # in units of 1 / epsilon
_BUDGET = 1.2e7  # points of lattices and windows that one search may use up, some seconds


class Rough:
    """A saddle-point approximation of the summed loss; it guides the search, and no bound rests on it."""

    def __init__(self, losses: list[Loss], mixtures: Mixtures) -> None:
        found = [nodes(loss) for loss in losses]
        self._losses = np.concatenate([np.append(values, 0.0) for values, _ in found])
        self._logs = np.concatenate([np.append(_logarithms(weights), -math.inf) for _, weights in found])
        sizes = [values.size + 1 for values, _ in found]
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._owners = np.repeat(np.arange(len(sizes)), sizes)
        self._mixtures = mixtures
        self.largest = float(np.abs(self._losses).max())

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return the logarithm of the moment, and mean and standard deviation of the tilted loss."""
        exponents = tilt * self._losses + self._logs
        tops, tilted, totals = self._weighed(exponents)
        safe = np.where(totals > 0, totals, 1.0)
        with np.errstate(under="ignore", divide="ignore"):
            logs = tops + np.log(totals)
            means = np.add.reduceat(tilted * self._losses, self._starts) / safe
            squares = tilted * (self._losses - means[self._owners]) ** 2
        columns, counts = self._mixtures.columns, self._mixtures.counts
        variances = np.add.reduceat(squares, self._starts) / safe
        mixed = mixed_moments(self._mixtures.weights, logs[columns], means[columns], variances[columns])
        return float(counts @ mixed[0]), float(counts @ mixed[2]), math.sqrt(float(counts @ mixed[3]))

    def _weighed(self, exponents: Floats) -> tuple[Floats, Floats, Floats]:
        """Return largest exponents of each loss, masses relative to these, and their sums, along the last axis."""
        tops = np.maximum.reduceat(exponents, self._starts, axis=-1)
        tops = np.where(np.isfinite(tops), tops, 0.0)
        with np.errstate(under="ignore"):
            tilted = np.exp(exponents - tops[..., self._owners])
        return tops, tilted, np.add.reduceat(tilted, self._starts, axis=-1)

    def logarithms(self, tilts: Floats) -> Floats:
        """Return the logarithms of the moments at several tilts."""
        parts = np.array_split(tilts, 1 + tilts.size * self._losses.size // _AT_ONCE)
        return np.concatenate([self._of_steps(part, self._logs) @ self._mixtures.counts for part in parts])

    def _of_steps(self, tilts: Floats, weights: Floats) -> Floats:
        """Return the logarithms of the moments of each step, given those of its masses; shape (tilts, steps)."""
        tops, _, totals = self._weighed(np.multiply.outer(tilts, self._losses) + weights)
        with np.errstate(divide="ignore"):
            return log_sum(self._mixtures.weights, (tops + np.log(totals))[:, self._mixtures.columns])

    def cut(self, epsilon: float, least: float) -> tuple[Cut, float] | None:
        """Return where the rare losses that decide delta at an epsilon begin, and a tilt of sums that have one.

        Sums of other losses have a share of at most exp(least) of delta's bound there. None if there is no such loss.
        """
        tilts, usual = _TILTS / epsilon, self._logs
        for share in _CUTS:
            usual = np.where(self._losses <= share * epsilon, self._logs, -math.inf)
            bounds = self._of_steps(tilts, usual) @ self._mixtures.counts - tilts * epsilon - np.log1p(tilts)
            best = int(np.argmin(bounds))
            if bounds[best] <= least:
                break
        else:
            return None
        calm = np.concatenate(([0.0], tilts))
        whole = self._of_steps(calm, self._logs)
        few = self._of_steps(calm, np.where(np.isneginf(usual), self._logs, -math.inf))
        shares = np.exp(few - whole)
        with np.errstate(divide="ignore"):
            any_rare = np.log(-np.expm1(np.log1p(-np.minimum(shares, 0.9)) @ self._mixtures.counts))
        chernoff = whole @ self._mixtures.counts + any_rare - calm * epsilon
        chernoff = np.where((shares < 0.25).all(axis=1) & np.isfinite(chernoff), chernoff, math.inf)
        if not math.isfinite(float(chernoff.min())):
            return None
        found = float(calm[np.flatnonzero(chernoff <= chernoff.min() + 1.5)[0]])
        return Cut(share * epsilon, float(tilts[best])), found

    def reach(self, tilt: float) -> float:
        """Return about the length of the range that the tilted loss leaves at either end with probability exp(-26)."""
        log, mean, spread = self.moments(tilt)
        if spread == 0.0 or not math.isfinite(log):
            return 0.0
        further = _FURTHER / spread
        bounds = (self.logarithms(tilt + further) - log + OUTSIDE) / np.abs(further) - np.sign(further) * mean
        return float(np.maximum(bounds.reshape(2, -1).min(axis=1), 0.0).sum())

    def calmer(self, tilt: float, room: float) -> float:
        """Return a smaller tilt, whose Chernoff bound is larger by a factor exp(room), if the sum's range is shorter.

        Rare large losses can make the range of the tilted sum many times that of the usual one.
        """
        if room <= 0.0 or tilt == 0.0:
            return tilt
        mean = self.moments(tilt)[1]

        def close(trial: float) -> bool:
            return self.chernoff(trial, mean) - self.chernoff(tilt, mean) <= room

        least = 0.0 if close(0.0) else bisect(close, 0.0, tilt, halvings=8)
        return least if self.reach(least) < 0.7 * self.reach(tilt) else tilt

    def chernoff(self, tilt: float, epsilon: float) -> float:
        """Return about the logarithm of Chernoff's bound on delta at an epsilon."""
        return self.moments(tilt)[0] - tilt * epsilon - math.log1p(tilt)

    def squares(self, step: float, tilt: float) -> float:
        """Return about the sum over steps of the variances that a lattice adds to the tilted losses.

        A loss between two points of the lattice gains the product of its distances from both: a sixth of the square of
        the width on average, and less if losses are near its points.
        """
        tops, tilted, totals = self._weighed(tilt * self._losses + self._logs)
        places = self._losses / step
        parts = places - np.floor(places)
        added = parts * (1.0 - parts) * step**2
        with np.errstate(under="ignore", divide="ignore"):
            each = np.add.reduceat(tilted * added, self._starts) / np.where(totals > 0, totals, 1.0)
            logs = tops + np.log(totals)
        columns = self._mixtures.columns
        shares = mixed_moments(self._mixtures.weights, logs[columns], each[columns], each[columns])[1]
        return float(self._mixtures.counts @ (shares * each[columns]).sum(axis=1))

    def log_delta(self, tilt: float) -> float:
        """Return about the logarithm of delta at the epsilon which is the tilted loss's mean."""
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
        return bisect(lambda tilt: not short(tilt), low, high, halvings=10, geometric=True)

    def tilt_of_epsilon(self, epsilon: float) -> float:
        """Return the tilt whose mean is an epsilon."""
        return self._bisect(epsilon, by_mean=True)

    def tilt_of_delta(self, delta: float) -> float:
        """Return about the tilt that makes bounds at a delta closest."""
        return self._bisect(math.log(delta), by_mean=False)


class Search:
    """The losses of steps, and their lattices, for a wanted relative accuracy of epsilon and of levels of noise.

    `tail` is the probability that may be left out at each end of a step's loss.
    """

    def __init__(
        self, steps: Mapping[DominatingPair, int], tail: float, wanted: float, levels: float | None = None
    ) -> None:
        self._given, self._tail, self._wanted = steps, tail, wanted
        self._levels = wanted if levels is None else levels
        self._above = dominating(steps, self._levels)
        self._losses = [pair.loss(tail) for pair in self._above.pairs]
        self.rough = Rough(self._losses, self._above)
        self.count = sum(steps.values())
        anchors = [pair.anchor for pair in steps if pair.anchor is not None]
        self._anchor = min(anchors) if anchors else None
        self._length = 0.0
        for loss in self._losses:
            terms = max((piece.terms for piece in loss.pieces), default=1)
            self._length += terms * _span(loss)
        self._built, self._spent, self._last = 0.0, 0.0, 0.0
        self._cut: Cut | None = None
        self._high: list[Lattice] = []
        self._below: Mixtures | None = None
        self._lower_losses: list[Loss] = []
        self.sharp = self._anchor is not None and all(
            not loss.pieces and all(_divides(self._anchor, atom[0]) for atom in loss.atoms) for loss in self._losses
        )

    def predictable(self, step: float) -> bool:
        """Return whether `excess` is reliable: few atoms between points of a lattice do not average out."""
        values = [atom[0] for loss in self._losses for atom in loss.atoms]
        return self.count > _AVERAGED or all(_divides(step, value) for value in values)

    def step(self, wanted: float, tilt: float) -> float:
        """Return a width of the lattice near the wanted one that is not too fine, and that atoms lie on."""
        if self.sharp and self._anchor is not None:
            return self._anchor
        # The relative error of losses is about 1e-14, and all losses may be the same.
        least = max(1.05 * self.rough.reach(tilt) / _CELLS, self._length / _LATTICE, 1e-13 * self.rough.largest)
        if self.rough.largest > 0:
            wanted = min(wanted, 0.5 * self.rough.largest)
        found = max(wanted, least, 1e-300)
        if self._anchor is not None and found < self._anchor:
            found = self._anchor / math.ceil(self._anchor / found)
        return found

    def excess(self, step: float, slope: float) -> float:
        """Return about the error of a lattice's upper epsilon; the lower one's is half of it (PROOFS.md, L5)."""
        return 0.0 if self.sharp else (1.0 + slope) * self.rough.squares(step, slope) / 2.0

    def width(self, excess: float, slope: float, tilt: float) -> float:
        """Return the width of the lattice, or the nearest possible one, for an excess of the upper epsilon."""
        spare = 0.65 if len(self._above.pairs) < len(self._given) else 0.8  # mixtures of levels take their part
        found = max(math.sqrt(12.0 * spare * excess / (self.count * (1.0 + slope))), 1e-300)
        most = 2.0 * self.rough.largest
        if found < most and self.excess(2.0 * found, slope) < 2.0 * spare * excess:  # most losses are much smaller
            found = bisect(
                lambda step: self.excess(step, slope) <= spare * excess, most, found, halvings=12, geometric=True
            )
        return self.step(found, tilt)

    def fewer(self, step: float, excess: float, slope: float) -> Search:
        """Return a search with fewer levels of noise, if those leave too few points to each lattice, or this one.

        With m levels, errors of levels are of order 1 / m^2, and those of lattices that share points of order m^2.
        """
        ratio = self.excess(step, slope) / excess
        if ratio <= 2.0 or len(self._above.pairs) == len(self._given):
            return self
        return Search(self._given, self._tail, self._wanted, self._levels * math.sqrt(ratio))

    def tilt(self, slope: float, epsilon: float, delta: float) -> float:
        """Return a tilt for compositions at which errors stay small beside the wanted accuracy, and ranges short."""
        # The share of delta that errors may have; the product may underflow.
        room = math.log(max(0.02 * self._wanted * min(1.0, slope * epsilon + 1e-300), 5e-324))
        errors = math.log(5e-12 + 2e-15 * self.count)  # about the rounding errors of a composition
        beyond = max(self.rough.chernoff(slope, epsilon) - math.log(delta), 0.0)
        return self.rough.calmer(slope, room - errors - 2.0 - beyond)

    def below(self, floor: float, delta: float) -> bool:
        """Return whether a coarse lattice shows that no epsilon above a floor is needed at a delta."""
        if not 0.0 < floor < math.inf or len(self._losses) > _FEW:
            return False
        slope = min(self.rough.tilt_of_epsilon(floor), 1.5 * self.rough.tilt_of_delta(delta))
        return self._coarse(slope, floor, delta).delta(floor)[1] <= delta

    def _coarse(self, slope: float, epsilon: float, delta: float) -> Composed:
        tilt = self.tilt(slope, epsilon, delta)
        return self.upper(self.step((self.rough.reach(tilt) + self._length) / _COARSE, tilt), tilt)

    def first(self, delta: float) -> tuple[float, float]:
        """Return about epsilon at a delta, from a coarse lattice, and the tilt whose mean that is."""
        slope = self.rough.tilt_of_delta(delta)
        epsilon = self.rough.moments(slope)[1]
        if self.sharp or len(self._losses) > _FEW or epsilon <= 0.0:
            return epsilon, slope
        found = smallest(self._coarse(slope, epsilon, delta), delta, epsilon)
        return (found, self.rough.tilt_of_epsilon(found)) if 0.0 < found < math.inf else (epsilon, slope)

    def again(self, composed: Composed, epsilon: float, slope: float, delta: float) -> tuple[float, float] | None:
        """Return the width and tilt of a better composition, or None if the present one cannot be improved."""
        if composed.empty:
            return None
        tilt, spread = composed.tilt, composed.spread
        low, high = composed.delta(epsilon)
        close = high - low <= 0.1 * self._wanted * slope * epsilon * high
        if composed.wide or not close:
            found = self._rare(epsilon, slope, delta)
            if found is not None:
                return composed.step, found
        if composed.wide:
            calm = self.tilt(slope, epsilon, delta)
            if abs(calm - tilt) * spread > 0.1 and self.rough.reach(calm) < 0.9 * self.rough.reach(tilt):
                return self.step(composed.step, calm), calm
            return self.step(2.0 * composed.step, tilt), tilt
        if close or self._cut is not None:
            return None
        closer = slope
        if high - low > 0.5 * high:  # such bounds say nothing about epsilon
            closer = self.rough.tilt_of_delta(delta)
        if abs(closer - tilt) * spread < 0.2:
            return None
        if abs(closer - tilt) * spread > 4.0:
            closer = 0.5 * (closer + tilt)
        return self.step(composed.step, closer), closer

    def _rare(self, epsilon: float, slope: float, delta: float) -> float | None:
        """Split off rare losses from now on, if others than before, and return the tilt of sums that have one."""
        if epsilon <= 0.0 or len(self._losses) > _FEW or self._above.weights[:, 1].any():
            return None
        least = math.log(delta) + math.log(0.02 * self._wanted * min(1.0, slope * epsilon + 1e-300))
        found, before = self.rough.cut(epsilon, least), self._cut
        if found is None or (before is not None and abs(found[0].loss - before.loss) <= 0.1 * before.loss):
            return None
        self._cut, tilt = found
        return tilt

    def upper(self, step: float, tilt: float) -> Composed:
        """Return the sum of losses on a lattice with larger divergences."""
        if step != self._built:
            self._high = [pessimistic(loss, step) for loss in self._losses]
            self._built = step
            self._spent += self._length / step
        return self._composed(self._high, self._above, tilt)

    def lower(self, step: float, tilt: float) -> Composed:
        """Return the sum of losses on a lattice with smaller divergences; `upper` was called with this step before."""
        if self._below is None:
            self._below = dominated(self._given)
            same = dict(zip(self._above.pairs, self._losses, strict=True))
            self._lower_losses = [same.get(pair) or pair.loss(self._tail) for pair in self._below.pairs]
        guides = dict(zip(self._above.pairs, self._high, strict=True))
        for pair, (_, second) in zip(self._given, self._above.columns.tolist(), strict=True):
            guides.setdefault(pair, self._high[second])  # of the next level, so that it reaches as far
        lattices = []
        for pair, loss in zip(self._below.pairs, self._lower_losses, strict=True):
            lattices.append(optimistic(loss, guides.get(pair) or pessimistic(loss, step)))
        self._spent += self._length / step
        return self._composed(lattices, self._below, tilt)

    def _composed(self, lattices: list[Lattice], mixtures: Mixtures, tilt: float) -> Composed:
        if self._cut is None:
            found = Composed(lattices, mixtures, tilt, _CELLS)
        else:
            found = WithRare(lattices, mixtures, tilt, _CELLS, self._cut)
        self._last = self._length / found.step + (0.0 if found.empty else found.size)
        self._spent += self._last
        return found

    def affords(self, finer: float) -> bool:
        """Return whether enough work is left for a finer lattice."""
        return self._spent + 2.0 * self._last * self._built / finer <= _BUDGET


def _logarithms(weights: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        found: Floats = np.log(weights)
    return found


def _span(loss: Loss) -> float:
    """Return the length of the range of all losses of a step's pieces together."""
    ends = [piece.loss(np.array([piece.low, piece.high])) for piece in loss.pieces]
    return float(sum(end[1] - end[0] for end in ends)) + 2.0 * max((abs(atom[0]) for atom in loss.atoms), default=0.0)


def _divides(anchor: float, value: float) -> bool:
    return abs(value - round(value / anchor) * anchor) <= 4e-14 * abs(value)


def smallest(composed: Composed, delta: float, guess: float) -> float:
    """Return about the smallest epsilon whose upper delta is at most the given one."""
    return _root(lambda epsilon: _excess(composed.delta(epsilon)[1], delta), composed, guess)[1]


def largest(composed: Composed, delta: float, guess: float) -> float:
    """Return about the largest epsilon whose lower delta is at least the given one, or 0."""
    return _root(lambda epsilon: _excess(composed.delta(epsilon)[0], delta), composed, guess)[0]


def _excess(value: float, delta: float) -> float:
    """Return ``log(value / delta)``, above 0 exactly if the value is larger."""
    found = (math.log(value) if value > 0 else -750.0) - math.log(delta)
    return max(found, 1e-300) if value > delta else min(found, 0.0)


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
    close = 1e-7 * composed.spread + 1e-13 * high  # far below the width of any lattice
    side = 0
    for trial in range(60):
        if high - low <= close:
            break
        # False position that halves the value at an end kept twice (Illinois), and halving if that is slow.
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
