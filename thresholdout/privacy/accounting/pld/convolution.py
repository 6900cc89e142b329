"""Sums of losses on a lattice: many steps, tilted so that small probabilities stay accurate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from graphs.numerics.rounding import UNIT
from thresholdout.privacy.accounting.pld.levels import Mixtures
from thresholdout.privacy.accounting.pld.loss import Floats
from thresholdout.privacy.accounting.pld.loss_lattice import Lattice
from thresholdout.privacy.accounting.pld.spectrum import FFT, Spectrum, low_frequencies, powers, transformed

__all__ = ["OUTSIDE", "Composed", "last_needed", "log_moment", "log_sum", "mixed_moments", "tilted_moments"]

OUTSIDE = 26.0  # the tilted probability outside of the window is exp(-26) at each end
_NEGLIGIBLE = -46.0  # logarithm of a spectrum's value that is left out
_SAMPLED = 64  # most different lattices whose whole spectra are kept
_WORK = 1e9  # most multiplications that are spent on low frequencies
_DOUBT = 5e-12  # share of Chernoff's bound that errors of whole spectra may have where a direct sum is possible
_SERIES = 4096  # frequencies above which masses are summed, not series
_CHEAP = 200.0  # multiplications that take as long as to raise one point of a whole spectrum to powers


def log_moment(losses: Floats, weights: Floats, tilt: float) -> float:
    """Return ``log sum w exp(tilt loss)``."""
    exponents = tilt * losses
    top = float(exponents[weights > 0].max(initial=-math.inf))
    if top == -math.inf:
        return top
    with np.errstate(under="ignore"):
        return top + math.log(float((weights * np.exp(np.minimum(exponents - top, 0.0))).sum()))


def tilted_moments(losses: Floats, weights: Floats, tilt: float) -> tuple[float, float, float]:
    """Return ``log sum w exp(tilt loss)``, and mean and variance of the tilted loss."""
    log = log_moment(losses, weights, tilt)
    if log == -math.inf:
        return log, 0.0, 0.0
    with np.errstate(under="ignore", over="ignore"):
        tilted = np.where(weights > 0, weights * np.exp(np.minimum(tilt * losses - log, 700.0)), 0.0)
    tilted = np.where(np.isfinite(tilted), tilted, 0.0)
    mean = float(tilted @ losses)
    return log, mean, float(tilted @ (losses - mean) ** 2)


class Composed:
    """The sum of the losses of independent steps, near one value.

    Masses are weighted by ``exp(tilt loss)``, so that those that matter are large. The window has at most `cells`
    points; if it would have to be larger, the sum is `wide`: bounds hold, but say little. `rounding` bounds the share
    of all tilted mass that rounding errors move.

    Notes
    -----
    PROOFS.md, C1 to C4. The spectrum of a lattice is found by one transform. If its power would blow up the rounding
    errors, it is found by a direct sum at the few low frequencies whose power is not negligible. Sums of losses above
    an epsilon are geometric series at each frequency, so no transform leads back.
    """

    def __init__(self, lattices: Sequence[Lattice], mixtures: Mixtures, tilt: float, cells: int) -> None:
        self.tilt = tilt
        self.step = lattices[0].step
        columns, weights, counts = mixtures.columns, mixtures.weights, mixtures.counts
        shifts = counts * np.array([lattice.offset for lattice in lattices])[columns[:, 0]]
        self.offset = math.fsum(shifts.tolist())
        self._offsets = float(np.abs(shifts).sum())
        infinite = np.array([lattice.infinite for lattice in lattices])
        self.infinite = _any((weights * infinite[columns]).sum(axis=1), counts)
        self._lattices, self._columns, self._weights, self._counts = list(lattices), columns, weights, counts
        logs, means, variances = self._moments(tilt)
        steps, self._shares, centres, exact = mixed_moments(weights, logs[columns], means[columns], variances[columns])
        self.empty = bool((steps == -math.inf).any())
        if self.empty:
            return
        self._logs, self._steps, self._variances = logs, steps, variances.tolist()
        self.log_scale = math.fsum((counts * steps).tolist())
        self._log_scales = float(np.abs(counts * steps).sum())
        self.centre = math.fsum((counts * centres).tolist())
        self.spread = math.sqrt(float(counts @ exact))
        if not self._tilted():
            return
        below, above = self._reach(-1.0), self._reach(1.0)
        self._base = math.floor((self.centre - below) / self.step) - 2
        size = 16
        while size < (below + above) / self.step + 6 and size < cells:
            size *= 2
        self.wide = size < (below + above) / self.step + 6
        self.size = size
        self._convolve()

    def _moments(self, tilt: float) -> tuple[Floats, Floats, Floats]:
        found = np.array([tilted_moments(lattice.losses, lattice.mass, tilt) for lattice in self._lattices])
        return found[:, 0], found[:, 1], found[:, 2]

    def _reach(self, sign: float) -> float:
        """Return the distance from the centre that the tilted loss exceeds with probability exp(-26), by Chernoff."""
        if self.spread == 0.0:
            return 0.0
        best = self._chernoff(sign * 7.0 / self.spread)
        for factor in (0.5, 2.0):
            more, improved = 7.0 * factor, True
            while improved and 0.05 < more < 500.0:
                found = self._chernoff(sign * more / self.spread)
                improved, best, more = found < 0.99 * best, min(best, found), more * factor
            if more < 3.0:
                break
        return max(best, 0.0) + 1e-9 * self.spread

    def _chernoff(self, eta: float) -> float:
        """Return a bound on that distance from the moment at a further tilt, to the right or to the left."""
        tilt = self.tilt + eta
        moments = [log_moment(lattice.losses, lattice.mass, tilt) for lattice in self._lattices]
        logs = log_sum(self._weights, np.array(moments)[self._columns])
        return self._distance(float(self._counts @ (logs - self._steps)), float(self._counts @ np.abs(logs)), eta)

    def _distance(self, total: float, sizes: float, eta: float) -> float:
        """Return that distance from a moment's logarithm, and the sum of the sizes of those of all steps."""
        # The rounding of the two moments, whose sums have some units for each step (PROOFS.md, C2).
        doubt = 4.0 * self._growth + (64.0 * float(self._counts.sum()) + 8.0 * sizes) * UNIT
        return (total + doubt + OUTSIDE) / abs(eta) - math.copysign(1.0, eta) * self.centre

    def _tilted(self) -> bool:
        """Find tilted masses, and a bound on the relative size of all rounding errors; return whether mass is left."""
        self._masses: list[Floats] = []
        self._units: list[Floats] = []  # bounds on the rounding error of each mass
        for lattice, log in zip(self._lattices, self._logs.tolist(), strict=True):
            if log == -math.inf:
                self._masses.append(np.zeros(1))
                self._units.append(np.zeros(1))
                continue
            exponents = self.tilt * lattice.losses - log
            with np.errstate(under="ignore", over="ignore", invalid="ignore"):
                half = np.exp(0.5 * exponents)
                mass = np.where(lattice.mass > 0, lattice.mass * half * half, 0.0)
            roundoff = 6.0 + 4.0 * np.abs(exponents) + 4.0 * abs(log)
            self._masses.append(mass)
            self._units.append(UNIT * np.where(mass > 0, mass * roundoff, 0.0))
        logs = np.where(self._weights > 0, self._logs[self._columns], 0.0)
        mixed = 16.0 + 4.0 * (self._shares * np.abs(logs)).sum(axis=1) + 4.0 * np.abs(self._steps)
        mixed = np.where(self._weights[:, 1] > 0, mixed, 0.0)
        errors = np.array([float(units.sum()) for units in self._units])
        each = (self._shares * errors[self._columns]).sum(axis=1)
        self._growth = 1.01 * float(self._counts @ (each + UNIT * mixed))
        # A bound on the sum of each step's masses, normalised with rounding.
        self._total = math.exp(min(2.0 * self._growth + 128.0 * UNIT * float(self._counts.sum()), 50.0))
        self.rounding = math.expm1(min(self._growth, 50.0)) * self._total
        return True

    def _convolve(self) -> None:
        n, masses, firsts = self.size, self._masses, [lattice.first for lattice in self._lattices]
        bound, found = self._bound()
        kept = last_needed(bound) + 1
        work = 4.0 * kept * sum(mass.size for mass in masses)
        direct = not found or work < _CHEAP * n
        if not direct:
            whole = np.array([row[0] for row in found]), np.array([[row[1]] for row in found])
            product, errors, alone = powers(*whole, self._columns, self._shares, self._counts)
            self._norm = self._mean_error([row[1:] for row in found]) + 1.5 * math.sqrt(float(alone @ alone) / n)
            direct = work < _WORK and self._doubt(float(errors.sum())) > _DOUBT
        if direct:
            low = low_frequencies(masses, firsts, n, kept)
            product, errors, _ = powers(*low, self._columns, self._shares, self._counts)
            self._norm = math.inf
        with np.errstate(under="ignore"):
            self._rest = 2.02 * float(np.exp(np.minimum(bound[errors.size :], 700.0)).sum())
        self._mass: Floats | None = None
        if errors.size > _SERIES:
            self._rest += 2.02 * float(errors.sum())
            self._back(product)
            return
        # Frequencies come in conjugate pairs, but for 0 and n/2.
        twice = np.where((np.arange(errors.size) % (n // 2)) == 0, 1.0, 2.0)
        self._product, self._errors = product * twice, errors * twice
        self._roots = np.exp(2j * math.pi / n * np.arange(n))
        self._below = [self._ratios(rate, errors.size) for rate in (self.tilt, self.tilt + 1.0)]

    def _back(self, product: Spectrum) -> None:
        """Find the masses of the window from the product of spectra."""
        circle = np.fft.irfft(product, self.size)
        self._mass = np.roll(circle, -(self._base % self.size))
        # The error of a transform is relative to the 2-norm, and enters by Cauchy-Schwarz (C3).
        norm = math.sqrt(float((circle * circle).sum())) * (1.0 + 1e-12) + 1e-300
        self._transform = FFT * math.log2(self.size) * norm

    def _doubt(self, errors: float) -> float:
        """Return about the share that errors of the spectrum have in Chernoff's bound on delta."""
        most = 1.0 / (1.0 + self.tilt)
        room = min(self.size * most, 1.0 / -math.expm1(-max(self.tilt * self.step, 1e-300)))
        return min(errors * room / self.size, self._norm * math.sqrt(room * most)) / most

    def _mean_error(self, errors: list[tuple[float, float]]) -> float:
        """Return a bound on the root mean square of the product's errors that come from those of the spectra.

        `errors` are the largest and the root of the mean square of each lattice's spectrum.
        """
        most = np.array(
            [float(mass.sum()) * (1.0 + 1e-12) + row[0] for mass, row in zip(self._masses, errors, strict=True)]
        )
        means = np.array([row[1] for row in errors])
        sizes = np.log(np.maximum((self._shares * most[self._columns]).sum(axis=1), 1.0)) + 4.0 * UNIT
        each = (self._shares * means[self._columns]).sum(axis=1)
        return 1.01 * float(self._counts @ each) * math.exp(min(float(self._counts @ sizes), 700.0))

    def _bound(self) -> tuple[Floats, list[tuple[Spectrum, float, float]]]:
        """Return a bound on the logarithm of the product's size at each frequency, and, of few lattices, their spectra.

        A step's spectrum is no larger than the largest of its lattices'. Steps are left out once few frequencies
        clearly matter.
        """
        firsts, length = [lattice.first for lattice in self._lattices], sum(mass.size for mass in self._masses)
        found = []
        if len(self._masses) <= _SAMPLED:
            found = [transformed(mass, first, self.size) for mass, first in zip(self._masses, firsts, strict=True)]
        groups: dict[tuple[int, ...], float] = {}
        for row, second, count in zip(self._columns.tolist(), self._weights[:, 1], self._counts.tolist(), strict=True):
            members = tuple(row if second > 0 else row[:1])
            groups[members] = groups.get(members, 0.0) + count
        bound = np.zeros(self.size // 2 + 1)
        logs: dict[int, Floats] = {}
        # Lattices that make the sum wide come first: a few of them show which frequencies do not matter.
        widest = sorted(groups, key=lambda members: max(self._variances[member] for member in members), reverse=True)
        for number, members in enumerate(widest, 1):
            logs = {member: logs[member] for member in members if member in logs}
            for member in members:
                if member not in logs:
                    known = found[member] if found else transformed(self._masses[member], firsts[member], self.size)
                    logs[member] = np.log(np.abs(1.0 + known[0]) * (1.0 + 8.0 * UNIT) + known[1] + 8.0 * UNIT)
            bound += groups[members] * np.maximum.reduce([logs[member] for member in members])
            if not found and number % _SAMPLED == 0 and 4.0 * (last_needed(bound) + 1) * length < _CHEAP * self.size:
                break
        return bound, found

    def _ratios(self, rate: float, kept: int) -> Spectrum:
        """Return ``1 / (exp(-rate step + i w) - 1)`` at each frequency."""
        turns = 2.0 * math.pi / self.size * np.arange(kept)
        with np.errstate(under="ignore"):
            found: Spectrum = np.expm1(-rate * self.step + 1j * turns)
        found[0] = found[0] if found[0] != 0 else 1.0
        return 1.0 / found

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds (lower, upper) on the divergence of the lattices' masses, those at infinity included."""
        certain, possible = self.infinite * (1.0 - 1e-12), self.infinite * (1.0 + 1e-12)
        if self.empty:
            return certain, possible
        tilt, n = self.tilt, self.size
        shifted = epsilon - self.offset
        exponent = self.log_scale - tilt * shifted
        if exponent > 690.0:  # Chernoff's factor would overflow, and says nothing
            return certain, 1.0
        start = max(math.floor(shifted / self.step) + 1, self._base)
        cells = max(self._base + n - start, 0)
        gap = max(start * self.step - shifted, 0.0)
        heaviest = 1.0 / (1.0 + tilt)  # a bound on all weights (PROOFS.md, C1)
        value = error = 0.0
        if cells:
            most = min(-math.expm1(-(gap + cells * self.step)), heaviest)
            room = min(cells * most, 1.0 / -math.expm1(-max(tilt * self.step, 1e-300)))
            value, error = self._value(start, cells, gap, room * most)
            error += min(self._rest * room / n, self._norm * math.sqrt(room * most)) + self.rounding * most
        error += 3.0 * math.exp(-OUTSIDE) * heaviest  # sums outside of the window (C2)
        # Rounded positions move weights by |dw/de| <= tilt w + 1; 1e-290 is for underflow (C4).
        error += 16 * UNIT * (abs(epsilon) + abs(shifted) + self._offsets) + 1e-290
        relative = 1e-12 + 16 * UNIT * (
            self._log_scales + (1.0 + tilt) * (abs(epsilon) + abs(shifted) + self._offsets + abs(self.centre))
        )
        factor = math.exp(exponent)
        error += abs(value) * relative
        low = factor * (value - error)
        # The total of the tilted masses bounds delta without any transform; a window that is too small uses it alone.
        chernoff = heaviest * self._total * (1.0 + 1e-12)
        high = factor * chernoff if self.wide else factor * min(value + error, chernoff)
        return (0.0 if self.wide else max(0.0, low)) + certain, min(1.0, high * (1.0 + relative) + possible)

    def _value(self, start: int, cells: int, gap: float, squares: float) -> tuple[float, float]:
        """Return the sum of tilted masses times weights, and a bound on its error apart from `_rest`.

        `squares` is a bound on the sum of squared weights.
        """
        n = self.size
        if self._mass is None:
            both, rounded = self._series(start, cells, gap)
            value = float((self._product.real * both.real - self._product.imag * both.imag).sum()) / n
            return value, (1.01 * float((self._errors * np.abs(both)).sum()) + rounded) / n
        index = start - self._base
        # Weights are below e^-45 beyond, and the rest below e^-40 / (1 + tilt) (C3).
        far = index + (cells if self.tilt == 0 else min(cells, math.ceil(45.0 / (self.tilt * self.step)) + 1))
        x = gap + self.step * np.arange(far - index)
        with np.errstate(under="ignore"):
            value = float((np.exp(-self.tilt * x) * -np.expm1(-x) * self._mass[index:far]).sum())
        return value, self._transform * math.sqrt(squares) + math.exp(-40.0) / (1.0 + self.tilt)

    def _series(self, start: int, cells: int, gap: float) -> tuple[Spectrum, float]:
        """Return ``sum exp(-tilt x_m) (1 - exp(-x_m)) exp(i w (start + m))`` over m < cells, ``x_m = gap + m step``.

        It has the sum at each frequency w, and a bound on the rounding error of the sum of products with the spectrum.
        """
        n, k = self.size, np.arange(self._product.size)
        begin, end = self._roots[k * (start % n) & (n - 1)], self._roots[k * (cells % n) & (n - 1)]
        found = np.zeros(k.size, dtype=np.complex128)
        rounded = 0.0
        for sign, below in zip((1.0, -1.0), self._below, strict=True):
            rate = self.tilt + (0.0 if sign > 0 else 1.0)
            height = sign * math.exp(-rate * gap)
            last = math.exp(-min(rate * self.step * cells, 745.0))
            part = (last * end - 1.0) * below
            part[0] = cells if rate == 0 else math.expm1(-rate * self.step * cells) * below[0].real
            found += height * part
            largest = np.abs(below) * (2.0 * abs(height))
            largest[0] = abs(height * part[0])
            rounded += 64.0 * UNIT * float(np.abs(self._product) @ largest)
        found *= begin
        return found, rounded


def mixed_moments(
    weights: Floats, logs: Floats, means: Floats, variances: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the moments of mixtures from those of their parts."""
    steps = log_sum(weights, logs)
    with np.errstate(under="ignore", invalid="ignore"):
        shares = np.where(weights > 0, weights * np.exp(np.minimum(logs - steps[:, None], 700.0)), 0.0)
    shares = np.where(np.isfinite(shares), shares, 0.0)
    centres = (shares * means).sum(axis=1)
    spreads: Floats = (shares * (variances + (means - centres[:, None]) ** 2)).sum(axis=1)
    return steps, shares, centres, spreads


def last_needed(bound: Floats) -> int:
    """Return the last frequency that is not negligible, given bounds on the logarithms of the spectrum's sizes."""
    needed = np.flatnonzero(bound > _NEGLIGIBLE)
    return int(needed[-1]) if needed.size else 0


def log_sum(weights: Floats, logs: Floats) -> Floats:
    """Return ``log sum_i weights[j, i] exp(logs[..., j, i])`` for each j, exactly the log if one weight is 1."""
    if not weights[:, 1:].any() and (weights[:, 0] == 1.0).all():
        return logs[..., 0].copy()
    listed = np.where(weights > 0, logs, -math.inf)
    top = listed.max(axis=-1)
    with np.errstate(under="ignore", invalid="ignore"):
        total = np.where(weights > 0, weights * np.exp(listed - top[..., None]), 0.0).sum(axis=-1)
        found: Floats = np.where(top == -math.inf, -math.inf, top + np.log(np.where(total > 0, total, 1.0)))
    return found


def _any(chances: Floats, counts: Floats) -> float:
    """Return the probability that any of independent events happens, given how often each is tried."""
    if (chances >= 1.0).any():
        return 1.0
    return -math.expm1(math.fsum((counts * np.log1p(-chances)).tolist()))
