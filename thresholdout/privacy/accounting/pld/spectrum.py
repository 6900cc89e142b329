"""Characteristic functions of masses on a lattice, and their powers, with bounds on all rounding errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import UNIT
from thresholdout.privacy.accounting.pld.loss import Floats

__all__ = ["FFT", "Spectrum", "low_frequencies", "powers", "rare", "transformed"]

Spectrum = NDArray[np.complex128]

FFT = 14.0 * UNIT  # relative error of a transform for each doubling of its size, twice the textbook bound
_ROWS = 64  # steps at a time


def transformed(mass: Floats, first: int, n: int) -> tuple[Spectrum, float, float]:
    """Return ``sum_j mass_j exp(-i w (first + j)) - 1`` at the frequencies ``w = 2 pi k / n``, k = 0 .. n/2."""
    circle, norm, folds = _folded(mass, first, n)
    error = (FFT * math.log2(n) * math.sqrt(n) + 40 * UNIT) * norm + (40.0 + folds) * UNIT
    mean = (FFT * math.log2(n) + (4.0 + folds) * UNIT) * norm + 40.0 * UNIT
    return np.fft.rfft(circle) - 1.0, error, mean


def rare(mass: Floats, first: int, n: int) -> tuple[Spectrum, float, float]:
    """Return ``sum_j mass_j exp(-i w (first + j))``, for masses whose sum is far below 1."""
    circle, norm, folds = _folded(mass, first, n)
    error = FFT * math.log2(n) * math.sqrt(n) * norm + (4.0 + folds) * UNIT * float(mass.sum())
    mean = (FFT * math.log2(n) + (4.0 + folds) * UNIT) * norm
    return np.fft.rfft(circle), error, mean


def _folded(mass: Floats, first: int, n: int) -> tuple[Floats, float, float]:
    """Return masses round a circle, their norm, and the largest number of them that are added up."""
    start = first % n
    padded = np.zeros(-(-(start + mass.size) // n) * n)
    padded[start : start + mass.size] = mass
    circle = padded.reshape(-1, n).sum(axis=0)
    once = mass if mass.size <= n else circle
    return circle, math.sqrt(float((once * once).sum())) * (1.0 + 1e-12), padded.size / n


def low_frequencies(masses: Sequence[Floats], firsts: Sequence[int], n: int, kept: int) -> tuple[Spectrum, Floats]:
    """Return the spectra at the lowest frequencies by direct sums, which are accurate relative to ``w E|j|``."""
    # In blocks: e^(-iw(b + r)) - 1 = E_b E_r + E_b + E_r with E = e^(-iw.) - 1, about sqrt(size) values each (C3).
    frequency = 2.0 * math.pi / n * np.arange(kept)
    longest = max(mass.size for mass in masses)
    width = 1 << max(4, math.ceil(math.log2(longest) / 2))
    first = min(firsts) // width
    last = max(start + mass.size for start, mass in zip(firsts, masses, strict=True)) // width
    inner = _minus_one(np.multiply.outer(np.arange(width), frequency))
    outer = _minus_one(np.multiply.outer(np.arange(first, last + 1) * width, frequency))
    values, errors = np.empty((len(masses), kept), dtype=np.complex128), np.empty((len(masses), kept))
    for row, (mass, index) in enumerate(zip(masses, firsts, strict=True)):
        start = index - first * width
        block = start // width
        rows = (start + mass.size) // width + 1 - block
        padded = np.zeros(rows * width)
        padded[start - block * width : start - block * width + mass.size] = mass
        table = padded.reshape(rows, width)
        part = [outer[0][block : block + rows], outer[1][block : block + rows]]
        sums = table.sum(axis=1)
        near, far = table @ inner[0], table @ inner[1]
        values[row].real = (near + part[0] * near - part[1] * far).sum(axis=0) + sums @ part[0]
        values[row].imag = (far + part[0] * far + part[1] * near).sum(axis=0) + sums @ part[1]
        constant = math.fsum([-1.0, *mass.tolist()])
        values[row] += constant
        # Errors of the angles and of the sums, relative to w E|j|, and of the constant (C3, direct sums).
        indices = np.abs((block + first + np.arange(rows)) * width)
        span = float(sums @ indices) + 2.0 * width
        turn = frequency * span
        errors[row] = 8.0 * UNIT * ((width + rows + 16.0) * np.minimum(turn, 2.0) + turn + abs(constant))
    return values, errors


def _minus_one(angles: Floats) -> tuple[Floats, Floats]:
    """Return real and imaginary part of ``exp(-i angle) - 1``."""
    return -2.0 * np.sin(0.5 * angles) ** 2, -np.sin(angles)


def powers(
    minus_one: Spectrum, errors: Floats, columns: NDArray[np.int64], shares: Floats, counts: Floats
) -> tuple[Spectrum, Floats, Floats]:
    """Return the product over steps of powers of mixtures of spectra."""
    width = minus_one.shape[1]
    logs, upper, turned = np.zeros(width), np.zeros(width), np.ones(width, dtype=np.complex128)
    rounded = np.zeros(width)
    rows = max(1, min(_ROWS, int(4e6 / width)))
    for start in range(0, counts.size, rows):
        part = slice(start, start + rows)
        one, two = columns[part].T
        first, second = shares[part].T[:, :, None]
        count = counts[part][:, None]
        if second.any():
            x = first * minus_one[one] + second * minus_one[two] + (first + second - 1.0)
            given = (first * errors[one] + second * errors[two]) * (1.0 + 8.0 * UNIT)
            own = 8.0 * UNIT * (np.abs(x) + first * np.abs(minus_one[one]) + second * np.abs(minus_one[two]))
        else:
            x, given = minus_one[one] + (first - 1.0), errors[one]
            own = 2.0 * UNIT * np.abs(minus_one[one])
        size = np.maximum(np.hypot(1.0 + x.real, x.imag), 1e-300)
        # Near 1 the logarithm comes from |1 + x|^2 - 1, which keeps the digits that a large power needs.
        square = np.where(size > 0.5, 2.0 * x.real + x.real**2 + x.imag**2, 0.0)
        log = np.where(size > 0.5, 0.5 * np.log1p(square), np.log(size))
        angle = np.arctan2(x.imag, 1.0 + x.real)
        # Phases and logarithms are off by some units of themselves; the count enters by the power (C3, phase).
        own = own + 8.0 * UNIT * (np.abs(angle) + np.abs(log) + np.minimum(8.0 * np.abs(x), 1.0)) * size
        logs += (count * log).sum(axis=0)
        upper += (count * _log_above(size, log, given + own)).sum(axis=0)
        rounded += (count * _log_above(size, log, own)).sum(axis=0)
        turned *= np.multiply.reduce(np.exp(1j * np.remainder(count * angle, 2.0 * math.pi)), axis=0)
    with np.errstate(under="ignore"):
        size = np.exp(np.minimum(logs, 700.0))
        whole, alone = (
            np.exp(np.minimum(top, 700.0)) * -np.expm1(np.minimum(logs - top, 0.0)) for top in (upper, rounded)
        )
    last = UNIT * (128.0 + 64.0 * counts.size) * size
    return size * turned, whole + last, alone + last


def _log_above(size: Floats, log: Floats, excess: Floats) -> Floats:
    """Return the logarithm of sizes raised by an excess."""
    return np.where(size > 0.5, log + np.log1p(excess / size), np.log(size + excess))
