"""Stationary laws, reversibility, spectral gaps, and the published route that uses them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT

__all__ = [
    "Wide",
    "is_reversible",
    "period",
    "published_budget",
    "published_quilts",
    "spectral_gap",
    "stationary_law",
    "symmetrised",
]

#: Exponent of zero: below that of every number that can occur, far from the ends of 64-bit integers.
NOTHING = -(2**50)

#: Larger shifts underflow to zero or overflow: floats have exponents from -1074 to 1023.
FARTHEST = 1100


@dataclass(frozen=True, slots=True)
class Wide:
    """An array of numbers `fraction * 2**exponent`, with fractions zero or in [1/2, 1).

    Products, quotients and sums are off by one relative rounding error each, as those of floats are, but do not
    underflow or overflow. Terms of a sum that are below 2**-1074 of its largest term are lost.
    """

    fraction: FloatArray  # zero, or in [1/2, 1)
    exponent: IntArray  # powers of two

    @classmethod
    def of(cls, values: FloatArray, exponent: IntArray | int = 0) -> Wide:
        """Return the numbers `values * 2**exponent`; values are finite and not negative."""
        fraction, shift = np.frexp(values)
        return cls(fraction, np.where(fraction > 0, exponent + shift.astype(np.int64), NOTHING))

    def __getitem__(self, at: Any) -> Wide:
        return Wide(self.fraction[at], self.exponent[at])

    def __setitem__(self, at: Any, values: Wide) -> None:
        self.fraction[at], self.exponent[at] = values.fraction, values.exponent

    def __mul__(self, other: Wide) -> Wide:
        return Wide.of(self.fraction * other.fraction, self.exponent + other.exponent)

    def __truediv__(self, other: Wide) -> Wide:
        return Wide.of(self.fraction / other.fraction, self.exponent - other.exponent)

    def __add__(self, other: Wide) -> Wide:
        top = np.maximum(self.exponent, other.exponent)
        return Wide.of(self._shifted(top) + other._shifted(top), top)

    def sum(self) -> Wide:
        """Return the sum of all entries."""
        top = self.exponent.max(initial=NOTHING)
        return Wide.of(self._shifted(top).sum(), top)

    def floats(self) -> FloatArray:
        """Return numbers up to 1e308 as floats: zero, or without full accuracy, where they are below 2.3e-308."""
        result: FloatArray = np.ldexp(self.fraction, np.clip(self.exponent, -FARTHEST, FARTHEST).astype(np.int32))
        return result

    def _shifted(self, top: IntArray) -> FloatArray:
        """Return the numbers over `2**top`, for a `top` of at least their exponents."""
        result: FloatArray = np.ldexp(self.fraction, np.maximum(self.exponent - top, -FARTHEST).astype(np.int32))
        return result


#: Relative deviation from detailed balance up to which a chain counts as reversible.
BALANCE = 1e-9


def period(transition: FloatArray) -> int:
    """Return the period of an irreducible chain, or 0 for a reducible one."""
    pattern: npt.NDArray[np.bool_] = transition > 0
    if not (_all_reached(pattern) and _all_reached(pattern.T)):
        return 0
    depth = _depths(pattern)
    origins, targets = np.nonzero(pattern)
    return int(np.gcd.reduce(np.abs(depth[origins] + 1 - depth[targets])))


def _depths(pattern: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the number of steps from state 0 to each state, -1 where there is no way."""
    depth = np.full(len(pattern), -1, dtype=np.int64)
    front = np.zeros(len(pattern), dtype=np.bool_)
    front[0] = True
    step = 0
    while front.any():
        depth[front] = step
        front = pattern[front].any(axis=0) & (depth < 0)
        step += 1
    return depth


def _all_reached(pattern: npt.NDArray[np.bool_]) -> bool:
    return bool((_depths(pattern) >= 0).all())


def stationary_law(transition: FloatArray) -> tuple[FloatArray, float]:
    """Return the stationary law of an irreducible chain, without subtractions, and a bound on its relative error.

    States are eliminated one by one, with diagonals replaced by sums of the other entries [GTH85]_. Each of the k
    steps is the exact step for entries perturbed by a relative (k + 4) units at most. Each law is a ratio of
    polynomials of degree k - 1 with positive coefficients in the off-diagonal entries (Markov chain tree theorem),
    so each step moves it by at most 2 k (k + 4) units [OC93]_. Powers of two are kept apart, so that products of small
    entries neither vanish nor lose digits on the way.

    References
    ----------
    .. [GTH85] W. Grassmann, M. Taksar, D. Heyman, "Regenerative analysis and steady state distributions for Markov
       chains", Operations Research 33 (1985).
    .. [OC93] C. O'Cinneide, "Entrywise perturbation theory and error analysis for Markov chains", Numerische
       Mathematik 65 (1993).
    """
    states = len(transition)
    reduced = Wide.of(transition)
    for last in range(states - 1, 0, -1):
        reduced[:last, last] = reduced[:last, last] / reduced[last, :last].sum()
        through = reduced[:last, last, None] * reduced[None, last, :last]
        reduced[:last, :last] = reduced[:last, :last] + through
    law = Wide.of(np.ones(states))
    for state in range(1, states):
        law[state] = (law[:state] * reduced[:state, state]).sum()
    return (law / law.sum()).floats(), 4 * states**2 * (states + 5) * UNIT


def symmetrised(transition: FloatArray, law: FloatArray) -> FloatArray:
    """Return D^{1/2} P D^{-1/2}, D the diagonal matrix of the stationary law: symmetric for a reversible chain.

    >>> symmetrised(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([2 / 3, 1 / 3])).round(6)
    array([[0.9     , 0.141421],
           [0.141421, 0.8     ]])
    """
    root = np.sqrt(law)
    scaled: FloatArray = (root[:, None] / root) * transition
    return scaled


def is_reversible(transition: FloatArray, law: FloatArray) -> bool:
    """Return whether a chain is in detailed balance with its stationary law, to a relative 1e-9."""
    flow = symmetrised(transition, law)
    return bool((np.abs(flow - flow.T) <= BALANCE * np.maximum(flow, flow.T)).all())


def spectral_gap(transition: FloatArray, law: FloatArray) -> float:
    """Return 1 - max |eigenvalue other than 1| of a reversible chain."""
    if len(law) == 1:
        return 1.0
    symmetric = symmetrised(transition, law)
    values = np.linalg.eigvalsh((symmetric + symmetric.T) / 2)
    return float(1 - max(abs(values[0]), abs(values[-2])))


def published_quilts(epsilon: float, gap: float, rarest: float, share: float) -> tuple[int, int, float]:
    """Return the quilt sizes and the budget of [Z17, Lemma 4] for one way to share the target."""
    if not 0 < share < 1 / 6:
        raise ArgumentError("share", repr(share), "a number between 0 and 1/6")
    far, near = _distance(share * epsilon, gap, rarest), _distance(epsilon / 6, gap, rarest)
    if not math.isfinite(far + near):
        expected = "a target whose quilts have finite distances"
        raise ArgumentError("epsilon", repr(epsilon), expected, "Pass a larger one.")
    d, s = math.ceil(far), math.floor(near)
    return d, s, min((1 - 6 * share) * epsilon / (2 * d - 1), (1 / 3 - 2 * share) * epsilon / (d + s))


def _distance(influence: float, gap: float, rarest: float) -> float:
    """Return (1/g) ln((e^u + 1) / (rho (e^u - 1))): the distance at which the published bound on an influence is u."""
    contrast = math.tanh(influence / 2)
    return -(math.log(rarest) + math.log(contrast)) / gap if contrast > 0 else math.inf


def published_budget(epsilon: float, gap: float, rarest: float, n: int) -> float:
    """Return the budget of [Z17, Lemma 4] with the best constant c, or 0 when no c has n >= 2 d.

    For a given d the smallest c, with c epsilon = 2 artanh(e^{-g d} / rho), is best, and the two terms then differ by
    a constant factor: (epsilon - 6 c epsilon) / max(2 d - 1, 3 (d + s)). As a function of d that is a concave function
    over a maximum of linear ones, so it rises and then falls.
    """
    near = _distance(epsilon / 6, gap, rarest)
    if not near < n:
        return 0.0
    s = math.floor(near)
    low, high = s + 1, n // 2

    def budgets(d: npt.NDArray[np.int64]) -> FloatArray:
        influence = 2 * np.arctanh(np.minimum(np.exp(-gap * d) / rarest, 1 - 2**-53))
        result: FloatArray = (epsilon - 6 * influence) / np.maximum(2 * d - 1, 3 * (d + s))
        return result

    while high - low > 1000:
        grid = np.unique(np.linspace(low, high, 200).astype(np.int64))
        best = int(np.argmax(budgets(grid)))
        low, high = int(grid[max(best - 1, 0)]), int(grid[min(best + 1, len(grid) - 1)])
    if high < low:
        return 0.0
    return max(float(budgets(np.arange(low, high + 1)).max()), 0.0)
