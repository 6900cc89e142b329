"""Replace-one bounds of a step without replacement: Theorem 3.4, sharpened, the envelope, and the smallest of all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import Floats, order, rate, sigma_of, terms
from thresholdout.privacy.accounting.minibatches.moments import Moments, binomial_moments
from thresholdout.privacy.accounting.minibatches.quadrature import TwoPoint, log_excess, log_power_excess

__all__ = ["E_tilde", "F_tilde", "TaylorSeries", "envelope", "envelope_floor", "replace_one"]

_POINTS = 20  # of Gauss-Legendre in each panel: the error bound then has the factor 4^-38, below 1e-22

_ELLIPSE = 4.0  # sum of the half-axes over the half-width of a panel

_REACH = 15.0  # standard deviations beyond the centre; the rest has a bound of its own


def envelope(alpha: Floats, shift: float, q: float) -> Floats:
    """Return the bound of the replace-one Renyi divergence at each order, rounded up."""
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
    """Return a fast lower bound of the envelope, 0 if none is known.

    Notes
    -----
    The moment is ``1 + E[m(w); w > 0]`` with ``m(0) = m'(0) = 0`` and ``m'' = alpha (alpha - 1) ((1 + w)**(alpha - 2) +
    (1 + w)**(-alpha - 1))``. For alpha above 2 the sum is least at ``(1 + w)**(2 alpha - 1) = (alpha + 1) / (alpha -
    2)``, and ``E[w**2; w > 0]`` has a closed form. The floor decides whether the envelope is computed, and is no bound
    of the divergence.
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


_TERMS = (3, 4, 5, 6)  # Taylor terms that "auto" tries; remainders soon grow with more


def F_tilde(alpha: float, sigma: float, k: int) -> float:  # noqa: N802
    """Return the bound of the k-th derivative in Theorem 3.4 [B24, (83)]."""
    log = TaylorSeries(sigma_of(sigma)).log_term(order(alpha), terms(k))
    return math.exp(log) if log < 709 else math.inf


def E_tilde(alpha: float, sigma: float, q: float, m: int) -> float:  # noqa: N802
    """Return the bound of the remainder after m terms in Theorem 3.4 [B24, (90)]."""
    series, share, count = TaylorSeries(sigma_of(sigma)), rate(q, None, None), terms(m)
    log = series.log_remainders(np.array([order(alpha)]), share, count)[0]
    return math.exp(log) if log < 709 else math.inf


class TaylorSeries:
    """The Taylor bound of a pair of mixtures that share a component [B24, Thm 3.4 and C.9].

    Notes
    -----
    `sigma` is the moments' noise multiplier: that of the mechanism without replacement, twice it for Poisson batches.
    There, the two replaced records may move the batch apart by twice the shift of either. `published` keeps the
    constants of [B24, C.9] for Poisson batches; from the fourth derivative on they are too small (PROOFS.md, F7).
    """

    def __init__(self, sigma: float, *, poisson: bool = False, published: bool = False) -> None:
        self.moments = Moments(sigma)
        self.shift = self.moments.shift
        self.poisson, self.published = poisson, published
        self._terms: dict[tuple[float, int], float] = {}

    def log_leading(self, alpha: Floats, q: float, leading: str) -> Floats:
        """Return the logarithm of the second-order term."""
        s = self.shift**2 / 4  # 1 / sigma**2 of the moments
        if self.poisson:
            log = _log_difference(4 * s, -4 * s)  # largest for opposite shifts (PROOFS.md, F7)
        elif leading == "paper":
            log = _log_difference(4 * s, 2 * s)  # needs three points of a ball at mutual distance 2
        else:
            log = _log_difference(4 * s, 0.0) - math.log(2.0)  # the largest possible second derivative (F5)
        value: Floats = 2 * math.log(q) + np.log(alpha * (alpha - 1)) + log
        return value + 1e-14 + 4 * ULP * np.abs(value)

    def log_term(self, alpha: float, k: int) -> float:
        """Return the logarithm of the bound of the k-th derivative at q = 0; it is cached."""
        if (alpha, k) not in self._terms:
            self._terms[alpha, k] = self._log_term(alpha, k)
        return self._terms[alpha, k]

    def _log_term(self, alpha: float, k: int) -> float:
        total = self._alone(k)
        for j in range(k + 1):
            c = alpha / (alpha - 1)
            for i in range(j):
                c *= 1 - i / alpha
            for i in range(k - j):
                c *= 1 + (i - 1) / alpha
            total += math.comb(k, j) * (abs(c - 1) + 4 * k * ULP * (1 + abs(c)))
        value = math.log(alpha - 1) + (k - 1) * math.log(alpha) + math.log(total)
        value += float(self.moments.log_bounds(k)[k])
        return value + 1e-13 + 16 * ULP * abs(value)

    def _alone(self, k: int) -> float:
        """Return the bound of ``E[(x - y)**k]`` over the moment bound."""
        if self.poisson and not self.published and k > 3:
            apart = Moments(1.0 / self.shift).log_bounds(k)[k] - self.moments.log_bounds(k)[k]
            return float(min(2.0**k, 2 + 2 * math.exp(min(apart, 700.0)))) * (1 + 1e-12)
        return 4.0 if k % 2 == 0 else 3.0

    def log_remainders(self, alpha: Floats, q: float, m: int) -> Floats:
        """Return the logarithms of the bounds of the remainder after m terms, one for each order."""
        out = np.full(alpha.shape, -np.inf)
        log_bound = float(self.moments.log_bounds(m)[m])
        sums: dict[tuple[int, int], float] = {}
        less = -math.log1p(-q)
        for j in range(m + 1):
            first = np.prod([np.abs(alpha - i) for i in range(j)], axis=0) if j else np.ones_like(alpha)
            second = np.prod([alpha + i - 1 for i in range(m - j)], axis=0) if j < m else np.ones_like(alpha)
            inner = np.full(alpha.shape, log_bound)
            for i, a in enumerate(alpha):
                if a <= j:
                    inner[i] += (j - a) * less
                    continue
                key = (math.ceil(a) - j, m)
                if key not in sums:
                    sums[key] = self._higher(key[0], q, m)
                inner[i] = np.logaddexp(log_bound, sums[key])
            with np.errstate(divide="ignore"):
                logs = np.log(first) + np.log(second) + inner + math.log(math.comb(m, j)) + (alpha + m - j - 1) * less
            out = np.logaddexp(out, logs)
        value: Floats = out + m * math.log(q) - math.lgamma(m + 1)
        return value + 1e-12 + 16 * ULP * np.abs(value)

    def _higher(self, top: int, q: float, m: int) -> float:
        """Return the logarithm of the sum over higher moments in (90), with top = ceil(alpha) - j."""
        steps = np.arange(top + 1)
        logs = self.moments.log_bounds(m + top)[m:] + steps * math.log(q)
        logs = logs + Moments.falling(top, steps) - Moments.log_factorial(m + steps) + math.lgamma(m + 1)
        peak = float(logs.max())
        return peak + math.log(float(np.exp(logs - peak).sum())) + ULP * 16 * math.lgamma(m + top + 2)

    def bound(self, alpha: Floats, q: float, m: int, leading: str = "sharp") -> Floats:
        """Return the bound of the Renyi divergence with m terms."""
        return self._added(alpha, q, m, leading, self.log_remainders(alpha, q, m))

    def floor(self, alpha: Floats, q: float, m: int) -> Floats:
        """Return a fast lower bound of `bound`, from the simplest parts of the remainder alone."""
        factors = np.maximum(2 * alpha - m, alpha - 1)  # those of all j from m on, and of j = 0
        log_bound = float(self.moments.log_bounds(m)[m]) + m * math.log(q) - math.lgamma(m + 1)
        return self._added(alpha, q, m, "sharp", m * np.log(factors) + log_bound) * (1 - 1e-9)

    def _added(self, alpha: Floats, q: float, m: int, leading: str, remainders: Floats) -> Floats:
        """Return the divergence from the leading term, the further ones below m and remainders."""
        out = np.logaddexp(self.log_leading(alpha, q, leading), remainders)
        for k in range(3, m):
            front = k * math.log(q) - math.lgamma(k + 1)
            front += 16 * ULP * (abs(front) + k)
            out = np.logaddexp(out, [front + self.log_term(float(a), k) for a in alpha])
        value: Floats = np.logaddexp(0.0, out) / (alpha - 1) * (1 + 8 * ULP)
        return value


@lru_cache(maxsize=256)
def _log_difference(large: float, small: float) -> float:
    """Return ``log(exp(large) - exp(small))``."""
    gap = large - small
    return small + (math.log(math.expm1(gap)) if gap < 600 else gap)


def replace_one(alpha: Floats, sigma: float, q: float, *, method: str, m: int = 4, leading: str = "sharp") -> Floats:
    """Return a replace-one bound, or the smallest of all for each order (method "auto")."""
    if method == "taylor":
        return TaylorSeries(sigma).bound(alpha, q, m, leading)
    sums = binomial_moments(alpha, sigma, q)
    if method == "binomial":
        return sums
    if method == "envelope":
        return envelope(alpha, 2.0 / sigma, q)
    best = sums.copy()  # each term of the sum of Wang et al. is at least the one here, so it is never smaller
    # The others are slow, and are left out if a lower bound of them is above the best.
    if (envelope_floor(alpha, 2.0 / sigma, q) < best).any():
        best = np.minimum(best, envelope(alpha, 2.0 / sigma, q))
    series = TaylorSeries(sigma)
    for count in _TERMS:
        promising = series.floor(alpha, q, count) < best
        if promising.any():
            best[promising] = np.minimum(best[promising], series.bound(alpha[promising], q, count))
    return best
