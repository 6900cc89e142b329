"""The privacy loss of many unequal randomised responses, on a lattice, with the error of the lattice bounded."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import UNIT, down_relative, up_relative
from thresholdout.privacy.accounting.binomial_probabilities import logistic, window
from thresholdout.privacy.accounting.parameter_sums import TINY, sum_up, tail_slack

__all__ = ["Lattice", "chernoff_epsilon", "saddle"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_LISTED = 2**16  # sums of losses of some groups that are put on the lattice at once
_OUTSIDE = 1e-20  # tilted probability that is left out at each end
_FFT = 14.0 * UNIT  # relative error of a transform for each doubling of its size, twice the textbook bound


def _log_moment(eps: Floats, counts: Counts, tilt: Floats) -> Floats:
    """Return ``log E exp(tilt (loss - A))`` for many tilts, A the largest loss; tilt above -1/2 or below alike."""
    grown = np.multiply.outer(1.0 + 2.0 * tilt, eps)
    found: Floats = ((np.logaddexp(0.0, -grown) - np.log1p(np.exp(-eps))) * counts).sum(axis=-1)
    return found


def saddle(eps: Floats, counts: Counts, e: float) -> float:
    """Return the tilt, at least 0, that makes e the mean loss, or a large one where e is close to the largest loss.

    Examples
    --------
    >>> round(saddle(np.array([1.0]), np.array([4]), 4 * np.tanh(1.5)), 6)
    1.0
    """
    low, high = 0.0, 1.0
    while high * float(eps.min()) < 40.0 and _tilted_mean(eps, counts, high) < e:
        low, high = high, 2.0 * high
    if _tilted_mean(eps, counts, 0.0) >= e:
        return 0.0
    return bisect(lambda tilt: _tilted_mean(eps, counts, tilt) < e, high, low, halvings=40)


def _merged(counts: Counts) -> list[range]:
    """Return ranges of groups, each with few enough sums of losses to list them."""
    found: list[range] = []
    size = math.inf
    for group, trials in enumerate(counts.tolist()):
        size *= trials + 1.0
        if size > _LISTED:
            found.append(range(group, group + 1))
            size = trials + 1.0
        else:
            found[-1] = range(found[-1].start, group + 1)
    return found


def _atoms(eps: Floats, counts: Counts, groups: range, tilt: float) -> tuple[Floats, Floats]:
    """Return all sums of losses of some groups, and their tilted probabilities."""
    loss, mass = np.zeros(1), np.ones(1)
    for group in groups:
        value, trials = float(eps[group]), int(counts[group])
        first, chances, _ = window(trials, *logistic((1.0 + 2.0 * tilt) * value))
        each = (2.0 * (first + np.arange(chances.size)) - trials) * value
        loss = np.add.outer(loss, each).ravel()
        with np.errstate(under="ignore"):
            mass = np.multiply.outer(mass, chances).ravel()
    return loss, mass


def _tilted_mean(eps: Floats, counts: Counts, tilt: float) -> float:
    return float((counts * eps * np.tanh((0.5 + tilt) * eps)).sum())


def chernoff_epsilon(eps: Floats, counts: Counts, delta: float) -> float:
    """Return an epsilon at which the divergence is about delta or less, by a Chernoff bound over some tilts."""
    spread = math.sqrt(float((counts * eps**2).sum()))
    tilt = np.geomspace(1e-3, 1e4, 400) / spread
    found = (_log_moment(eps, counts, tilt) - math.log(delta)) / tilt
    return float(np.clip(found.min() + float((counts * eps).sum()), 0.0, None))


class Lattice:
    """Hockey-stick divergence of groups of equal randomised responses, from one convolution on a lattice.

    Parameters
    ----------
    eps : ndarray, shape (groups,)
        Above 0, all different.
    counts : ndarray of int, shape (groups,)
        Responses in each group.
    e : float
        Where it is to be most accurate; bounds hold everywhere.
    cells : int
        Points of the lattice, a power of two.

    Notes
    -----
    PROOFS.md, C6. Groups are taken together while their sums of losses are few. Each sum is split between two
    neighbouring points of the lattice so that the mean of ``exp(-loss)`` stays; the divergence is convex in that, so it
    can only grow, and by no more than a term of second order, which gives the lower bound. All masses are tilted by
    ``exp(tilt loss)`` with the tilt that makes e the mean, so that errors of the Fourier transform are small where the
    mass is that matters.
    """

    def __init__(self, eps: Floats, counts: Counts, e: float, cells: int) -> None:
        groups = len(_merged(counts))
        self.largest = sum_up(eps.tolist(), counts.tolist())
        tilt = saddle(eps, counts, e)
        low, high = self._reach(eps, counts, tilt)
        step = (high - low) / (cells - 2 * groups - 8)
        while tilt * step * groups > 0.5:
            tilt /= 2.0
            low, high = self._reach(eps, counts, tilt)
            step = (high - low) / (cells - 2 * groups - 8)
        self._tilt, self._step, self._groups = tilt, step, groups
        self._log_scale = float(_log_moment(eps, counts, np.array([tilt]))[0])  # relative to exp(tilt * largest)
        first = math.floor(low / step) - groups - 2
        self._mass, self._error, self._wrapped = self._convolve(eps, counts, cells, first)
        self._points = step * (first + np.arange(cells, dtype=np.float64))
        # Losses of groups, points of the lattice and the exponent of the scale are rounded:
        self._shift = 64.0 * UNIT * self.largest
        self._relative = (
            1e-12
            + 8.0 * UNIT * (1.0 + tilt) * self.largest
            + 8.0 * UNIT * float(counts.sum())
            + math.fsum(tail_slack(trials) for trials in counts.tolist())
        )

    @staticmethod
    def _reach(eps: Floats, counts: Counts, tilt: float) -> tuple[float, float]:
        """Return where the tilted loss lies but for a probability of 1e-20 at each end, by a Chernoff bound."""
        total = float((counts * eps).sum())
        spread = math.sqrt(float((counts * eps**2).sum()))
        more = np.geomspace(1e-3, 1e4, 400) / spread
        here = _log_moment(eps, counts, np.array([tilt]))[0]
        outside = -math.log(_OUTSIDE)
        above = ((_log_moment(eps, counts, tilt + more) - here + outside) / more).min() + total
        below = total - ((_log_moment(eps, counts, tilt - more) - here + outside) / more).min()
        margin = 1e-9 * total
        return max(float(below) - margin, -total * (1 + 1e-9)), min(float(above) + margin, total * (1 + 1e-9))

    def _convolve(self, eps: Floats, counts: Counts, cells: int, first: int) -> tuple[Floats, float, float]:
        """Return tilted masses on the lattice, and bounds on their error in norm and on what was left out."""
        from scipy.fft import irfft, rfft

        step, tilt = self._step, self._tilt
        product = np.ones(cells // 2 + 1, dtype=np.complex128)
        norms, sizes = [], []
        for groups in _merged(counts):
            loss, chances = _atoms(eps, counts, groups, tilt)
            cell = np.floor(loss / step)
            over = np.clip(loss - cell * step, 0.0, step)
            stay = np.expm1(step - over) / math.expm1(step)
            index = cell.astype(np.int64)
            mass = np.bincount(index % cells, chances * stay * np.exp(-tilt * over), cells)
            mass += np.bincount((index + 1) % cells, chances * (1.0 - stay) * np.exp(tilt * (step - over)), cells)
            product *= rfft(mass)
            norms.append(float(np.linalg.norm(mass)))
            sizes.append(max(1.0, float(mass.sum())))
        found: Floats = np.roll(irfft(product, cells), -(first % cells))
        total = 1.01 * math.prod(sizes)
        transform = _FFT * math.log2(cells)
        error = total * (transform * (math.fsum(norms) + min(norms)) + 4.0 * UNIT * len(norms) * min(norms))
        return found, error, 2.0 * _OUTSIDE * math.exp(tilt * step * self._groups) * 1.01

    def _weighted(self, e: float) -> tuple[float, float]:
        """Return the tilted divergence at e, and a bound on its error by transform and window."""
        start = int(np.searchsorted(self._points, e, side="right"))
        gap = self._points[start:] - e
        with np.errstate(under="ignore"):
            weight = np.exp(-self._tilt * gap) * -np.expm1(-gap)
        error = self._error * float(np.linalg.norm(weight)) + self._wrapped
        return float(weight @ self._mass[start:]), error * (1 + 1e-9)

    def _strip(self, e: float) -> float:
        """Return a bound on the tilted mass that is within two group rounds of e, weighted as at e."""
        width = 2.0 * self._groups * self._step + 2.0 * self._shift
        start, stop = np.searchsorted(self._points, [e - width, e + width])
        weight = np.exp(-self._tilt * (self._points[start:stop] - e))
        error = self._error * float(np.linalg.norm(weight)) + self._wrapped * math.exp(self._tilt * width)
        return (max(0.0, float(weight @ self._mass[start:stop])) + error) * (1 + 1e-9)

    def _scale(self, e: float) -> float:
        return math.exp(min(700.0, self._log_scale + self._tilt * (self.largest - e)))

    def upper(self, e: float) -> float:
        """Return an upper bound on the divergence at e."""
        if e >= self.largest:
            return 0.0
        before = e - self._shift
        found, error = self._weighted(before)
        return min(1.0, up_relative(self._scale(before) * (max(0.0, found) + error), self._relative) + TINY)

    def lower(self, e: float) -> float:
        """Return a lower bound on the divergence at e."""
        if e >= self.largest:
            return 0.0
        after = e + self._shift
        found, error = self._weighted(after)
        spread = math.sqrt(math.expm1(self._groups * math.log1p(4.0 * math.sinh(self._step / 4) ** 2)))
        growth = spread * math.exp(self._groups * self._step) * self._strip(after)
        return min(1.0, down_relative(self._scale(after) * max(0.0, found - error - growth), self._relative))
