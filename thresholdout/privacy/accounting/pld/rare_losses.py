"""Sums of losses that a few rare, large losses decide: sums without any of these are split off before composition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphs.numerics.rounding import UNIT
from thresholdout.privacy.accounting.pld.convolution import Composed, last_needed, log_moment
from thresholdout.privacy.accounting.pld.levels import Mixtures
from thresholdout.privacy.accounting.pld.loss import Floats
from thresholdout.privacy.accounting.pld.loss_lattice import Lattice
from thresholdout.privacy.accounting.pld.spectrum import Spectrum, low_frequencies, powers, rare, transformed

__all__ = ["Cut", "WithRare"]

_HEAVY = 64  # heaviest masses, which are summed directly
_DIRECT = 1 << 18  # most frequencies at which they are
_HALF = 0.5  # rare losses that are more likely than this after tilting are not rare


@dataclass(frozen=True)
class Cut:
    """The loss above which losses are rare, and a tilt above 0 at which Chernoff's bound on sums of others is good."""

    loss: float
    tilt: float


class WithRare(Composed):
    """The sum of the losses of independent steps, near one value that it only reaches by rare, large losses.

    With S for the masses of usual losses and B for those of rare ones, ``(S + B)^T = S^T + R``. Sums without a rare
    loss hardly reach the epsilons of interest, and Chernoff's bound is added for them. R has the total mass ``rho``,
    which may be tiny, and all errors of its composition are relative to that. Each step draws one lattice, and `tilt`
    is that of R (PROOFS.md, C5).
    """

    def __init__(self, lattices: Sequence[Lattice], mixtures: Mixtures, tilt: float, cells: int, cut: Cut) -> None:
        self._cut = cut
        super().__init__(lattices, mixtures, tilt, cells)
        self._usual = self._without_rare()

    def _tilted(self) -> bool:
        super()._tilted()
        cut = [int(np.searchsorted(lattice.losses, self._cut.loss, "right")) for lattice in self._lattices]
        self._heads = [mass[:k] for mass, k in zip(self._masses, cut, strict=True)]
        self._tails = [mass[k:] for mass, k in zip(self._masses, cut, strict=True)]
        self._firsts = [lattice.first + k for lattice, k in zip(self._lattices, cut, strict=True)]
        usual, few = np.array([head.sum() for head in self._heads]), np.array([tail.sum() for tail in self._tails])
        own, counts = self._columns[:, 0], self._counts
        self._usual_share, self._share = usual, few
        self.empty = not (few[own] > 0).any()
        if self.empty:
            return False
        expected = float(counts @ -np.log1p(-np.minimum(few, 1.0 - UNIT))[own])
        self._rho = -math.expm1(-expected)
        self.log_scale += math.log(self._rho)
        self._log_scales += abs(math.log(self._rho))
        self._place(cut, few)
        lost = np.array([float(units[:k].sum()) for units, k in zip(self._units, cut, strict=True)])
        found = np.array([float(units[k:].sum()) for units, k in zip(self._units, cut, strict=True)])
        # R is a polynomial without negative coefficients in S and B: relative errors of both add up (C5, 2).
        heads = float(counts @ (lost / np.maximum(usual, 1e-300))[own])
        tails = float((found / np.maximum(few, 1e-300))[own].max()) * (1.0 + 2.0 * float(counts @ few[own]))
        self._growth = 1.01 * (heads + tails)
        self._total = math.exp(min(2.0 * self._growth + 128.0 * UNIT * float(counts.sum()), 50.0)) * (1.0 + 1e-9)
        self.rounding = math.expm1(min(self._growth, 50.0)) * self._total
        return True

    def _place(self, cut: list[int], few: Floats) -> None:
        """Find about the mean and the standard deviation of sums with one rare loss."""
        own, counts = self._columns[:, 0], self._counts
        means, squares, usual = np.zeros(few.size), np.zeros(few.size), np.zeros(few.size)
        for i, (lattice, k) in enumerate(zip(self._lattices, cut, strict=True)):
            losses = lattice.losses
            usual[i] = float(self._heads[i] @ losses[:k])
            means[i] = float(self._tails[i] @ losses[k:]) / max(few[i], 1e-300) - usual[i]
            squares[i] = float(self._tails[i] @ (losses[k:] - usual[i]) ** 2) / max(few[i], 1e-300)
        shares = counts * few[own] / float(counts @ few[own])
        once = float(shares @ means[own])
        self.centre = float(counts @ usual[own]) + once
        spread = max(float(shares @ squares[own]) - once**2, 0.0)
        self.spread = math.sqrt(spread + max(self.spread**2 - float(counts @ (few * squares)[own]), 0.0)) + self.step

    def _chernoff(self, eta: float) -> float:
        tilt = self.tilt + eta
        whole, few = [], []
        for lattice in self._lattices:
            above = lattice.losses > self._cut.loss
            whole.append(log_moment(lattice.losses, lattice.mass, tilt))
            few.append(log_moment(lattice.losses[above], lattice.mass[above], tilt))
        own, logs = self._columns[:, 0], np.array(whole)
        # The moment of R is that of all sums times the probability of a rare loss at the tilt (C5, 1).
        shares = np.minimum(np.exp(np.array(few) - logs) * (1.0 + 1e-9), 1.0 - UNIT)
        any_rare = max(-math.expm1(float(self._counts @ np.log1p(-shares)[own])), 1e-300)
        total = float(self._counts @ (logs[own] - self._steps)) + math.log(any_rare) - math.log(self._rho)
        return self._distance(total, float(self._counts @ np.abs(logs[own])), eta)

    def _convolve(self) -> None:
        n, own, counts = self.size, self._columns[:, 0], self._counts
        self._rest = 1e300
        if float(self._share[own].max()) > _HALF:
            self.wide = True
        if self.wide:
            self._norm = 0.0
            self._back(np.zeros(1, dtype=np.complex128))
            return
        usual = [transformed(head, lattice.first, n) for head, lattice in zip(self._heads, self._lattices, strict=True)]
        few = [rare(tail, first, n) for tail, first in zip(self._tails, self._firsts, strict=True)]
        sizes = [
            np.log(np.abs(1.0 + s[0]) * (1.0 + 8.0 * UNIT) + s[1] + np.abs(b[0]) + b[1])
            for s, b in zip(usual, few, strict=True)
        ]
        bound = math.log(float(counts @ self._share[own]) / self._rho) - np.minimum.reduce(sizes)
        for i, count in zip(own.tolist(), counts.tolist(), strict=True):
            bound = bound + count * sizes[i]
        kept = last_needed(bound) + 1
        rarely = np.array([b[0][:kept] for b in few])
        found = [self._usual_at(i, usual[i], kept) for i in range(len(usual))]
        often, exact = np.array([s[0] for s in found]), np.array([s[1] for s in found])
        product, errors = self._with_rare(often, exact, rarely)
        means = np.array([[s[3], b[2]] for s, b in zip(found, few, strict=True)])
        largest = np.array([[s[2] + float(s[1].max()), b[1]] for s, b in zip(found, few, strict=True)])
        rounded = 1.5 * math.sqrt(float(errors @ errors) / n) / self._rho
        self._norm = self._mean_of_transforms(means[own], largest[own]) + rounded
        self._back(product / self._rho)

    def _usual_at(
        self, i: int, whole: tuple[Spectrum, float, float], kept: int
    ) -> tuple[Spectrum, Floats, float, float]:
        """Return a lattice's spectrum of S, less 1, at low frequencies, and bounds on its errors.

        The bounds are, in order: on each value's error, if the heaviest masses are summed directly; on the largest
        error of the transform of all others; and on its root mean square.
        """
        mass, first = self._heads[i], self._lattices[i].first
        start = max(int(np.argmax(mass)) - _HEAVY // 2, 0)
        if kept > _DIRECT:
            return whole[0][:kept], np.zeros(kept), whole[1], whole[2]
        heavy = slice(start, start + _HEAVY)
        values, errors = low_frequencies([mass[heavy]], [first + start], self.size, kept)
        rest = mass.copy()
        rest[heavy] = 0.0
        others, largest, mean = rare(rest, first, self.size)
        found = values[0] + others[:kept]
        return found, errors[0] + 2.0 * UNIT * np.abs(found), largest, mean

    def _with_rare(self, usual: Spectrum, given: Floats, few: Spectrum) -> tuple[Spectrum, Floats]:
        """Return the spectrum of R from those of S, less 1, and B, and bounds on its errors.

        `given` are errors of S at each frequency; those of transforms are left out.
        """
        own, counts = self._columns[:, 0], self._counts
        if counts.sum() == 1.0:
            return few[own[0]], 2.0 * UNIT * np.abs(few[own[0]])
        exact = np.zeros((usual.shape[0], 1))
        steps = self._columns, self._shares, counts
        common, _, common_error = powers(usual, exact, *steps)
        whole, _, whole_error = powers(usual + few, exact, *steps)
        logs = np.zeros(usual.shape[1], dtype=np.complex128)
        doubt, far = np.zeros(usual.shape[1]), np.zeros(usual.shape[1], dtype=np.bool_)
        top, gain, moved = np.zeros(usual.shape[1]), np.zeros(usual.shape[1]), np.zeros(usual.shape[1])
        for i, count in zip(own.tolist(), counts.tolist(), strict=True):
            base = 1.0 + usual[i]
            size = np.abs(base)
            close = (np.abs(few[i]) <= 0.5 * size) & (size > 1e-100)
            ratio = np.where(close, few[i], 0.0) / np.where(close, base, 1.0)
            length = np.abs(ratio)
            logs.real += 0.5 * count * np.log1p(2.0 * ratio.real + length**2)
            logs.imag += count * np.arctan2(ratio.imag, 1.0 + ratio.real)
            # The errors of quotient, log1p and expm1 (C5, 4).
            doubt += count * length * (260.0 + 4.0 * counts.size + 4.0 / np.where(close, size, 1.0))
            far |= ~close
            least = np.maximum(size, 1e-3)  # the bound grows with the size, so a larger one is valid (C5, 3)
            top += count * np.log(least)
            gain += count * np.log1p(np.abs(few[i]) / least)
            moved += count * np.log1p(given[i] / least)
        growth = np.exp(np.minimum(logs.real, 700.0))
        excess = np.expm1(np.minimum(logs.real, 700.0)) * np.cos(logs.imag) - 2.0 * np.sin(0.5 * logs.imag) ** 2
        factor = excess + 1j * growth * np.sin(logs.imag)
        doubt *= UNIT * np.maximum(growth, 1.0) * np.abs(common)
        errors = np.where(far, whole_error + common_error, common_error * np.abs(factor) + doubt)
        largest = np.exp(np.minimum(top, 700.0)) * np.expm1(np.minimum(gain, 700.0))
        errors += largest * np.expm1(np.minimum(moved, 700.0))
        found = np.where(far, whole - common, common * factor)
        return found, 1.01 * errors + 8.0 * UNIT * np.abs(found)

    def _mean_of_transforms(self, means: Floats, largest: Floats) -> float:
        """Return a bound on the root mean square of R's errors that come from transforms, relative to rho.

        `means` and `largest` have a row for each step: of S and of B.
        """
        own, counts = self._columns[:, 0], self._counts
        usual = self._usual_share[own] * (1.0 + 1e-12) + largest[:, 0]
        few = self._share[own] * (1.0 + 1e-12) + largest[:, 1]
        whole = math.exp(min(float(counts @ np.log(np.maximum(usual + few, 1.0))) + 1e-9, 700.0))
        gain = float(counts @ np.log1p(few / usual))
        common = math.exp(min(float(counts @ np.log(usual)) + 1e-9, 700.0))
        part = min(common * math.expm1(min(gain, 700.0)) * (1.0 + 1e-9), whole)
        each = part * means[:, 0] / self._usual_share[own] + whole * means[:, 1]
        return 1.01 * float(counts @ each) / self._rho

    def _without_rare(self) -> float:
        """Return the logarithm of a bound on the moment of sums without rare losses, less that of ``1 + tilt``."""
        tilt, total = self._cut.tilt, 0.0
        for i, count in zip(self._columns[:, 0].tolist(), self._counts.tolist(), strict=True):
            lattice = self._lattices[i]
            below = lattice.losses <= self._cut.loss
            log = log_moment(lattice.losses[below], lattice.mass[below], tilt)
            if log == -math.inf:
                return -math.inf
            most = tilt * float(np.abs(lattice.losses[below]).max())
            total += count * (log + (64.0 + 8.0 * abs(log) + 4.0 * most) * UNIT)
        return total - math.log1p(tilt)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return bounds (lower, upper) on the divergence of the lattices' masses, those at infinity included."""
        low, high = super().delta(epsilon)
        exponent = self._cut.tilt * (epsilon - self.offset)
        doubt = 1e-12 + 16 * UNIT * (abs(exponent) + self._cut.tilt * (abs(epsilon) + self._offsets) + abs(self._usual))
        usual = math.exp(min(self._usual - exponent, 1.0)) * (1.0 + 2.0 * doubt)
        return low, min(1.0, (high + usual) * (1.0 + 4.0 * UNIT))
