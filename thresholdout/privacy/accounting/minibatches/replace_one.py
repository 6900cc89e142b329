"""Replace-one bounds of a step without replacement: the envelope, and the smaller one of it and the binomial sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import Floats
from thresholdout.privacy.accounting.minibatches.moments import binomial_moments
from thresholdout.privacy.accounting.minibatches.quadrature import TwoPoint, log_excess, log_power_excess

__all__ = ["envelope", "envelope_floor", "replace_one"]

_POINTS = 20

_ELLIPSE = 4.0  # sum of the half-axes over the half-width of a panel

_REACH = 15.0


def envelope(alpha: Floats, shift: float, q: float) -> Floats:
    """Return the bound of the replace-one Renyi divergence at each order, rounded up.

    Examples
    --------
    >>> f"{envelope(np.array([2.0]), 1 / 3, 0.0024)[0]:.6e}"
    '8.536247e-07'
    """
    moved = math.nextafter(shift, math.inf)
    whole = np.array([each.upper for each in log_excess(TwoPoint(moved, q), alpha)])
    half = _HalfLine.of(moved, q)
    logs = np.empty_like(alpha)
    for i, at in enumerate(alpha.tolist()):
        # The right half-line is at most order * q, the left one 0.
        logs[i] = np.logaddexp(whole[i], math.log(at * q))
        if not -250.0 < whole[i] < 40.0 + math.log(at):
            continue
        gain, error = half.upper(at)
        loss = half.lower(at)
        full = math.exp(whole[i]) * (1 + ULP * (8 + abs(whole[i])))
        if math.isfinite(error):
            logs[i] = min(logs[i], math.log(full - loss + gain + error))
    value: Floats = np.logaddexp(0.0, logs + 1e-14 + 4 * ULP * np.abs(logs)) / (alpha - 1) * (1 + 16 * ULP)
    return value


def envelope_floor(alpha: Floats, shift: float, q: float) -> Floats:
    """Return something below the envelope that is found fast, 0 where nothing is known.

    Notes
    -----
    The moment is ``1 + E[m(w); w > 0]`` with ``m(0) = m'(0) = 0`` and
    ``m'' = alpha (alpha - 1) ((1 + w)**(alpha - 2) + (1 + w)**(-alpha - 1))``. Where alpha is above 2,
    the sum is least at ``(1 + w)**(2 alpha - 1) = (alpha + 1) / (alpha - 2)``, and ``E[w**2; w > 0]`` has a closed
    form. It decides whether the envelope is computed, and is no bound of anything else.

    Examples
    --------
    >>> f"{envelope_floor(np.array([3.0]), 1 / 3, 0.0024)[0]:.3e} {envelope(np.array([3.0]), 1 / 3, 0.0024)[0]:.3e}"
    '1.057e-06 1.280e-06'
    """
    a = shift
    if a * a > 600.0:
        return np.zeros_like(alpha)
    half = 0.5 * math.erfc(-a / math.sqrt(8.0))
    square = max(math.exp(a * a) * 0.5 * math.erfc(-1.5 * a / math.sqrt(2.0)) - 3 * half + 1, 0.5 * math.expm1(a * a))
    excess = np.maximum(alpha - 2, 1e-9)
    least = np.log((alpha + 1) / excess) / (2 * alpha - 1)
    curved = np.exp(excess * least) + np.exp(-(alpha + 1) * least)
    moment = 0.5 * alpha * (alpha - 1) * curved * q * q * square * (1 - 1e-6)
    value: Floats = np.where(alpha > 2, np.log1p(moment) / (alpha - 1), 0.0)
    return value


@dataclass(frozen=True)
class _HalfLine:
    """Gauss-Legendre panels in s = t - a/2 > 0, where the two halves mirror each other."""

    shift: float
    rate: float
    half_width: float
    starts: Floats
    nodes: Floats
    weights: Floats

    @classmethod
    def of(cls, shift: float, q: float) -> _HalfLine:
        """Return the panels for a shift and a sampling rate."""
        half = min(0.5, 0.5 / shift)
        panels = math.ceil((0.5 * shift + _REACH) / (2 * half))
        points, weights = (np.asarray(each, dtype=np.float64) for each in np.polynomial.legendre.leggauss(_POINTS))
        starts = np.arange(panels, dtype=np.float64) * (2 * half)
        nodes = (starts[:, None] + half * (1 + points)).ravel()
        return cls(shift, q, half, starts, np.asarray(nodes, dtype=np.float64), np.tile(weights * half, panels))

    def upper(self, order: float) -> tuple[float, float]:
        """Return the integral of g_(1-order) over w > 0, rounded up, and all error bounds of both integrals."""
        a, s = self.shift, self.nodes
        exponent = a * s
        w = self.rate * np.expm1(np.minimum(exponent, 600.0))
        log = np.where(exponent > 600.0, exponent + math.log(self.rate), np.log1p(w))
        w[exponent > 600.0] = np.inf
        logs = log_power_excess(1.0 - order, w, log) - 0.5 * exponent
        total = self._sum(logs, log, exponent, order, 1)
        reach = self.starts[-1] + 2 * self.half_width - 0.5 * a
        tail = math.exp(-0.5 * reach * reach) * 2 * order * self.rate
        return total, self._errors(order) + tail

    def lower(self, order: float) -> float:
        """Return the integral of g_order over w < 0, rounded down."""
        exponent = self.shift * self.nodes
        w = self.rate * np.expm1(-exponent)
        log = np.log1p(w)
        return self._sum(log_power_excess(order, w, log) + 0.5 * exponent, log, exponent, order, -1)

    def _sum(self, logs: Floats, log: Floats, exponent: Floats, order: float, side: int) -> float:
        front = -0.5 * math.log(2 * math.pi) - self.shift**2 / 8
        s = self.nodes
        moved = np.abs(np.expm1(-log))
        drift = ULP * (300 + order * np.abs(log) + s * s + ((order + 2) * moved + 5) * (8 + exponent))
        return float(np.sum(self.weights * np.exp(logs - 0.5 * s * s + front + side * drift)))

    def _errors(self, order: float) -> float:
        """Return the sum of the panels' error bounds: the largest modulus on an ellipse around each."""
        a, q, half = self.shift, self.rate, self.half_width
        long, short = 0.5 * half * (_ELLIPSE + 1 / _ELLIPSE), 0.5 * half * (_ELLIPSE - 1 / _ELLIPSE)
        low, high = self.starts + half - long, self.starts + half + long
        turn = math.cos(min(a * short, 1.5))  # a * short is below 0.94
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.maximum(np.exp(a * high) + 1, 2.0) ** 2  # |L - 1|**2
            gap = np.expm1(a * high) ** 2 + 4 * np.exp(a * high) * math.sin(0.5 * a * short) ** 2
            size = np.minimum(size, np.maximum(gap, np.expm1(a * low) ** 2 + 4 * math.sin(0.5 * a * short) ** 2))
            # right half: 1 + u w has a real part of at least this for all u in [0, 1]
            real = 1 - q * np.maximum(0.0, 1 - np.exp(a * low) * turn)
            square = 0.5 * order * (order - 1) * q * q
            up = square * size * real ** -(order + 1)
            plain = real ** (1 - order) + 1 + (order - 1) * q * (np.exp(a * high) + 1)
            up = np.minimum(up, plain) * np.exp(-0.5 * a * low)
            # left half: L is the inverse there
            back, front = np.exp(-a * low), np.exp(-a * high)
            near = np.maximum((1 - front) ** 2, (back - 1) ** 2) + 4 * back * math.sin(0.5 * a * short) ** 2
            modulus = (1 - q + q * back) if order >= 2 else (1 - q * (1 - front * turn))
            left = square * near * np.maximum(1.0, modulus ** (order - 2)) * np.exp(0.5 * a * high)
            bell = np.exp(0.5 * short**2 - 0.5 * np.maximum(low, 0.0) ** 2 - a * a / 8)
            worst = float(np.sum((up + left) * bell)) * 0.4 * half  # NaN where a shift is too large for this bound
        return worst * (64 / 15) * _ELLIPSE ** (2 - 2 * _POINTS) / (1 - _ELLIPSE**-2)


def replace_one(alpha: Floats, sigma: float, q: float, *, method: str) -> Floats:
    """Return a replace-one bound, or the smaller one for each order (method "auto").

    Notes
    -----
    Taylor's formula [B24, Theorem 3.4; PROOFS.md, F5] is smaller at some orders of small rates, and left out: it is
    none of those that decide an epsilon (none of 200 random settings; `benchmarks.papers.fixed_size_bounds` has it).
    """
    sums = binomial_moments(alpha, sigma, q)
    if method == "binomial":
        return sums
    if method == "envelope":
        return envelope(alpha, 2.0 / sigma, q)
    best = sums.copy()  # each term of the sum of Wang et al. is at least the one here, so that it is never smaller
    # The other takes long, and is left out where something below it is above the best.
    if (envelope_floor(alpha, 2.0 / sigma, q) < best).any():
        best = np.minimum(best, envelope(alpha, 2.0 / sigma, q))
    return best
