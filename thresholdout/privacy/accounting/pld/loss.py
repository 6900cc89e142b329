"""The privacy loss of one step: pieces on which it grows, and atoms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import UNIT

__all__ = ["DominatingPair", "Floats", "Loss", "Piece", "log_ratio", "normal", "reach"]

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]

_ROOT = math.sqrt(2.0 * math.pi)
_LARGE = 30.0  # terms with larger exponents are added as logarithms


@dataclass(frozen=True)
class Piece:
    """Outcomes t in [low, high] of a step on which the privacy loss does not decrease.

    Losses ``log dP/dQ`` are in nats and have an absolute error of some units of 2**-53 times ``abs(loss) + scale``;
    `density` is that of P. All Gaussian components, `terms` in number, have means in [-centre, centre]. The inverse is
    approximate, and no bound rests on it. If the piece is not `gaussian`, its density is one exponential.
    """

    low: float
    high: float
    loss: Function
    density: Function
    centre: float
    scale: float
    inverse: Function | None = None
    gaussian: bool = True
    terms: int = 1

    def noise(self, t: Floats) -> Floats:
        """Return at least half the relative error of densities and of integrals near outcomes (PROOFS.md, L3)."""
        if not self.gaussian:
            return np.full_like(t, UNIT * (32.0 + 2.0 * max(abs(self.low), abs(self.high))))
        far = np.abs(t) + self.centre + 1.0
        # The ellipse of the quadrature reaches 1/4 into the complex plane; no density is above 0 beyond 39 (L3).
        with np.errstate(under="ignore"):
            quadrature = np.exp(np.minimum(far, 200.0) / 4.0)
        found: Floats = UNIT * (48.0 + 10.0 * self.terms + 4.0 * far**2) + 1e-16 * quadrature
        return np.minimum(found, 0.5)

    def raised(self, t: float) -> float:
        """Return the loss at an outcome, or a little more."""
        at = np.array([t])
        loss = float(self.loss(at)[0])
        return loss + 4.0 * float(self.noise(at)[0]) * (abs(loss) + self.scale)


@dataclass(frozen=True)
class Loss:
    """The privacy loss of one step under P, apart from tails.

    `atoms` are losses with their probabilities, `below` bounds on the losses of outcomes in no piece with bounds on
    their probabilities. `infinite` is at least the probability of outcomes left out, or of an infinite loss, and
    `certain` at most that of an infinite loss. Losses may be larger by `slack`.
    """

    pieces: tuple[Piece, ...] = ()
    atoms: tuple[tuple[float, float], ...] = ()
    below: tuple[tuple[float, float], ...] = ()
    infinite: float = 0.0
    certain: float = field(default=0.0)
    slack: float = 0.0


class DominatingPair(Protocol):
    """Two distributions whose hockey-stick divergences are at least those of a step; hashable."""

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; `tail` is the probability that may be left out at each end."""

    @property
    def anchor(self) -> float | None:
        """A loss that all atoms are multiples of, or near which much of the mass may be; None if there is none."""


def reach(tail: float) -> float:
    """Return x with ``P(N(0, 1) > x) <= tail``."""
    return math.sqrt(-2.0 * math.log(tail))


def normal(t: Floats, mean: float = 0.0) -> Floats:
    """Return the density of N(mean, 1)."""
    with np.errstate(under="ignore"):
        found: Floats = np.exp(-0.5 * (t - mean) ** 2) / _ROOT
    return found


def log_ratio(t: Floats, shifts: Floats, weights: Floats) -> Floats:
    """Return ``log(1 - sum w + sum w_i dN(shift_i, 1)/dN(0, 1)(t))``, accurate also near 0."""
    if weights.size == 1 and weights[0] == 1.0:
        line: Floats = shifts[0] * t - 0.5 * shifts[0] ** 2
        return line
    total = np.zeros_like(t)
    largest = np.full_like(t, -np.inf)
    for shift, weight in zip(shifts.tolist(), weights.tolist(), strict=True):
        exponent = shift * t - 0.5 * shift**2
        np.maximum(largest, exponent, out=largest)
        total += weight * np.expm1(np.minimum(exponent, _LARGE))
    # Directly, the sum of expm1 keeps small losses accurate; near -1 or with huge terms logarithms do.
    direct = (largest <= _LARGE) & (total > -0.5)
    found: Floats = np.log1p(np.where(direct, total, 0.0))
    if not direct.all():
        rest = t[~direct]
        zero = math.fsum([1.0, *(-weights).tolist()])
        start = math.log1p(-math.fsum(weights.tolist())) if zero > 0.5 else math.log(zero) if zero > 0 else -math.inf
        logs = np.full_like(rest, start)
        for shift, weight in zip(shifts.tolist(), weights.tolist(), strict=True):
            if weight > 0:
                logs = np.logaddexp(logs, math.log(weight) + shift * rest - 0.5 * shift**2)
        found[~direct] = logs
    return found
