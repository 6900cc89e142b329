"""Sums of losses on a lattice: many steps, tilted so that small probabilities stay accurate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from thresholdout.accounting.pld.lattice import Lattice
from thresholdout.accounting.pld.loss import Floats

__all__ = ["Composed", "log_moment"]

Spectrum = NDArray[np.complex128]

_UNIT = 2.0**-53
_FFT = 14.0 * _UNIT  # relative error of a transform for each doubling of its size, twice the textbook bound
_OUTSIDE = 26.0  # the tilted probability outside of the window is exp(-26) at each end
_NEGLIGIBLE = -46.0  # logarithm of a spectrum's value that is left out
_SAMPLED = 64  # different steps whose whole spectra are found, when there are more
_WORK = 1e9  # multiplications that are spent on low frequencies, at most


def log_moment(losses: Floats, weights: Floats, tilt: float) -> tuple[float, float, float]:
    """Return ``log sum w exp(tilt loss)``, and mean and variance of the tilted loss.

    Examples
    --------
    >>> log_moment(np.array([-1.0, 1.0]), np.array([0.5, 0.5]), 0.0)
    (0.0, 0.0, 1.0)
    """
    exponents = tilt * losses
    top = float(exponents[weights > 0].max(initial=-math.inf)) if weights.size else -math.inf
    if top == -math.inf:
        return -math.inf, 0.0, 0.0
    with np.errstate(under="ignore"):
        tilted = weights * np.exp(np.minimum(exponents - top, 0.0))
    total = float(tilted.sum())
    mean = float(tilted @ losses) / total
    return top + math.log(total), mean, float(tilted @ (losses - mean) ** 2) / total


class Composed:
    """The sum of the losses of independent steps, near one value.

    Parameters
    ----------
    steps : sequence of (Lattice, int)
        Different steps, all on lattices of the same width, and how often each is repeated.
    tilt : float
        At least 0; masses are weighted by ``exp(tilt loss)``, so that those that matter are large.
    cells : int
        Largest size of the window.

    Attributes
    ----------
    wide : bool
        Whether the window would have to be larger than `cells`; bounds hold all the same, but say little.

    Notes
    -----
    PROOFS.md, C1 to C4. The spectrum of a step is found by one transform, or, when it is to be raised to a power that
    would blow up its rounding errors, by a direct sum at the few low frequencies whose power is not negligible.
    """

    def __init__(self, steps: Sequence[tuple[Lattice, int]], tilt: float, cells: int) -> None:
        self.tilt = tilt
        self.step = steps[0][0].step
        self.offset = math.fsum(count * lattice.offset for lattice, count in steps)
        self.infinite = _any((lattice.infinite, count) for lattice, count in steps)
        self._steps = [(lattice, count) for lattice, count in steps]
        self._moments = [log_moment(lattice.losses, lattice.mass, tilt) for lattice, _ in steps]
        counts = [count for _, count in steps]
        self.empty = any(moment[0] == -math.inf for moment in self._moments)
        if self.empty:
            return
        self.log_scale = math.fsum(c * m[0] for c, m in zip(counts, self._moments, strict=True))
        self.centre = math.fsum(c * m[1] for c, m in zip(counts, self._moments, strict=True))
        self.spread = math.sqrt(math.fsum(c * m[2] for c, m in zip(counts, self._moments, strict=True)))
        below, above = self._reach(-1.0), self._reach(1.0)
        self._base = math.floor((self.centre - below) / self.step) - 2
        size = 16
        while size < (below + above) / self.step + 6 and size < cells:
            size *= 2
        self.wide = size < (below + above) / self.step + 6
        self.size = size
        self._convolve()

    def strays(self, tilt: float) -> bool:
        """Whether another tilt is so far that the sum's bounds there are much less accurate."""
        return not self.empty and abs(tilt - self.tilt) * self.spread > 1.5

    def _reach(self, sign: float) -> float:
        """Return how far from the centre the tilted loss lies with probability ``exp(-26)``: Chernoff's bound."""
        if self.spread == 0.0:
            return 0.0
        best = math.inf
        for more in (3.0, 5.0, 7.5, 11.0, 1.5):
            eta = sign * more / self.spread
            total = 0.0
            for (lattice, count), moment in zip(self._steps, self._moments, strict=True):
                total += count * (log_moment(lattice.losses, lattice.mass, self.tilt + eta)[0] - moment[0])
            best = min(best, (total + _OUTSIDE) / abs(eta) - sign * self.centre)
        return max(best, 0.0) + 1e-9 * self.spread

    def _tilted(self) -> tuple[list[Floats], float]:
        """Return each step's tilted masses, and a bound on the relative size of all rounding errors in them."""
        found, growth = [], 0.0
        for (lattice, count), moment in zip(self._steps, self._moments, strict=True):
            exponents = self.tilt * lattice.losses - moment[0]
            with np.errstate(under="ignore", over="ignore", invalid="ignore"):
                half = np.exp(0.5 * exponents)
                mass = np.where(lattice.mass > 0, lattice.mass * half * half, 0.0)
            found.append(mass)
            roundoff = 6.0 + 4.0 * np.abs(exponents) + 4.0 * abs(moment[0])
            growth += count * _UNIT * float(np.where(mass > 0, mass * roundoff, 0.0).sum())
        return found, math.expm1(min(growth * 1.01, 50.0))

    def _convolve(self) -> None:
        masses, self._rounding = self._tilted()
        n, half = self.size, self.size // 2 + 1
        counts = np.array([count for _, count in self._steps], dtype=np.float64)
        weights = counts * np.array([moment[2] for moment in self._moments])
        order = np.argsort(-weights, kind="stable")
        sampled = order[:_SAMPLED]
        log_size, phase, upper = np.zeros(half), np.zeros(half), np.zeros(half)
        for index in sampled:
            lattice, count = self._steps[index][0], float(counts[index])
            spectrum, doubt = self._whole(masses[index], lattice.first)
            self._add(spectrum, doubt, count, log_size, phase, upper)
        bound = upper.copy()
        complete = len(order) <= _SAMPLED
        error = _difference(upper, log_size)
        needed = np.flatnonzero(bound > _NEGLIGIBLE)
        kept = int(needed[-1]) + 1 if needed.size else 1
        work = 4.0 * kept * sum(mass.size for mass in masses)
        if not complete or (float(error.sum()) / n > 1e-12 and work < _WORK):
            low, phase_low, upper_low = self._low(masses, counts, kept)
            log_size, phase = np.full(half, -np.inf), np.zeros(half)
            log_size[:kept], phase[:kept] = low, phase_low
            upper = bound
            upper[:kept] = upper_low
            error = _difference(upper, log_size)
        with np.errstate(under="ignore"):
            size = np.exp(np.minimum(log_size, 700.0))
            product = size * np.exp(1j * phase)
        rounded = _UNIT * (128.0 + 32.0 * len(self._steps)) * float(size.sum())
        self._spectral = 2.02 * (float(error.sum()) + rounded) / n
        circle = np.fft.irfft(product, n)
        self._mass = np.roll(circle, -(self._base % n))
        self._transform = _FFT * math.log2(n) * (float(np.linalg.norm(circle)) + 1e-300)

    def _whole(self, mass: Floats, first: int) -> tuple[Spectrum, float]:
        """Return the spectrum of masses round the circle, and a bound on the error of each value."""
        n = self.size
        circle = np.zeros(n)
        start = first % n
        padded = np.zeros(-(-(start + mass.size) // n) * n)
        padded[start : start + mass.size] = mass
        circle = padded.reshape(-1, n).sum(axis=0)
        norm = float(np.linalg.norm(circle))
        folds = 40.0 + padded.size / n
        return np.fft.rfft(circle), (_FFT * math.log2(n) * math.sqrt(n) + 40 * _UNIT) * norm + folds * _UNIT

    @staticmethod
    def _add(
        spectrum: Spectrum, error: float | Floats, count: float, log_size: Floats, phase: Floats, upper: Floats
    ) -> None:
        """Add the logarithm of a power of a spectrum, and of a bound on its size."""
        size, angle = np.abs(spectrum), np.angle(spectrum)
        with np.errstate(divide="ignore"):
            logs = np.log(size)
        log_size += count * logs
        phase += np.remainder(count * angle, 2.0 * math.pi)
        np.remainder(phase, 2.0 * math.pi, out=phase)
        slack = 8 * _UNIT * (np.abs(angle) + np.where(np.isfinite(logs), np.abs(logs), 0.0) + 1.0)
        upper += count * np.log(size + error + slack * size)

    def _low(self, masses: list[Floats], counts: Floats, kept: int) -> tuple[Floats, Floats, Floats]:
        """Return logarithm, phase and a bound on the logarithm of the product at the lowest frequencies."""
        frequency = 2.0 * math.pi / self.size * np.arange(kept)
        longest = max(mass.size for mass in masses)
        width = 1 << max(4, math.ceil(math.log2(longest) / 2))
        first = min(lattice.first for lattice, _ in self._steps) // width
        last = max(lattice.first + mass.size for (lattice, _), mass in zip(self._steps, masses, strict=True)) // width
        inner = _minus_one(np.multiply.outer(np.arange(width), frequency))
        outer = _minus_one(np.multiply.outer(np.arange(first, last + 1) * width, frequency))
        log_size, phase, upper = np.zeros(kept), np.zeros(kept), np.zeros(kept)
        for (lattice, _), mass, count in zip(self._steps, masses, counts.tolist(), strict=True):
            start = lattice.first - first * width
            block = start // width
            rows = (start + mass.size) // width + 1 - block
            padded = np.zeros(rows * width)
            padded[start - block * width : start - block * width + mass.size] = mass
            table = padded.reshape(rows, width)
            part = [outer[0][block : block + rows], outer[1][block : block + rows]]
            sums = table.sum(axis=1)
            near, far = table @ inner[0], table @ inner[1]
            real = (near + part[0] * near - part[1] * far).sum(axis=0) + sums @ part[0]
            imaginary = (far + part[0] * far + part[1] * near).sum(axis=0) + sums @ part[1]
            excess = _sum_minus_one(mass)
            real += excess
            indices = np.abs((block + first + np.arange(rows)) * width)
            span = float(sums @ indices) + 2.0 * width
            error = 8.0 * _UNIT * ((width + rows + 16.0) * np.minimum(frequency * span, 2.0) + frequency * span + 1.0)
            size = np.maximum(np.hypot(1.0 + real, imaginary), 1e-300)
            square = np.where(size > 0.5, 2.0 * real + real**2 + imaginary**2, 0.0)
            logs = np.where(size > 0.5, 0.5 * np.log1p(square), np.log(size))
            angle = np.arctan2(imaginary, 1.0 + real)
            log_size += count * logs
            phase += np.remainder(count * angle, 2.0 * math.pi)
            np.remainder(phase, 2.0 * math.pi, out=phase)
            slack = 8 * _UNIT * (np.abs(angle) + np.abs(logs))
            with np.errstate(over="ignore"):
                upper += count * np.where(
                    size > 0.5, logs + np.log1p((error + slack * size) / size), np.log(size + error + slack * size)
                )
        return log_size, phase, upper

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds (lower, upper) on the divergence of the lattices' masses, those at infinity included.

        Parameters
        ----------
        epsilon : float
            In nats.
        """
        if self.empty:
            return self.infinite, self.infinite
        shifted = epsilon - self.offset
        start = max(math.floor(shifted / self.step) + 1, self._base)
        index = start - self._base
        value = 0.0
        if index < self.size:
            stop = self.size
            if self.tilt > 0:
                stop = min(stop, index + math.ceil(745.0 / (self.tilt * self.step)) + 1)
            gap = np.maximum(np.arange(start, start + stop - index) * self.step - shifted, 0.0)
            with np.errstate(under="ignore"):
                value = float(np.exp(-self.tilt * gap) * -np.expm1(-gap) @ self._mass[index:stop])
        room = min(float(self.size), 1.0 / -math.expm1(-max(self.tilt * self.step, 1e-300)) + 1.0)
        error = self._spectral * room + self._transform * math.sqrt(room) + self._rounding + 3.0 * math.exp(-_OUTSIDE)
        error += 16 * _UNIT * (abs(epsilon) + abs(shifted)) + 1e-290
        if self.wide:
            error += 2.0
        exponent = self.log_scale - self.tilt * shifted
        if exponent > 690.0:
            return self.infinite, 1.0
        relative = 1e-12 + 16 * _UNIT * (
            abs(self.log_scale) + (1.0 + self.tilt) * (abs(epsilon) + abs(shifted) + abs(self.centre))
        )
        factor = math.exp(exponent)
        error += abs(value) * relative
        low = factor * (value - error)
        high = factor * (value + error) * (1.0 + relative)
        return max(0.0, low) + self.infinite * (1.0 - 1e-12), min(1.0, high + self.infinite * (1.0 + 1e-12))


def _any(chances: Iterable[tuple[float, int]]) -> float:
    """Return the probability that any of independent events happens, given how often each is tried."""
    exponent = 0.0
    for chance, count in chances:
        if chance >= 1.0:
            return 1.0
        exponent += count * math.log1p(-chance)
    return -math.expm1(exponent)


def _difference(upper: Floats, log_size: Floats) -> Floats:
    """Return ``exp(upper) - exp(log_size)``."""
    with np.errstate(under="ignore"):
        found: Floats = np.exp(np.minimum(upper, 700.0)) * -np.expm1(np.minimum(log_size - upper, 0.0))
    return found


def _minus_one(angles: Floats) -> tuple[Floats, Floats]:
    """Return real and imaginary part of ``exp(-i angle) - 1``."""
    return -2.0 * np.sin(0.5 * angles) ** 2, -np.sin(angles)


def _sum_minus_one(mass: Floats) -> float:
    """Return the sum of some masses minus 1, without cancellation."""
    return math.fsum([-1.0, *mass.tolist()])
