"""Stationary autoregressive series: correlations and spectrum from the coefficients, without a matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, real_array
from graphs.numerics.bisection import BoolArray
from graphs.numerics.definite import largest_eigenvalue
from graphs.numerics.rounding import UNIT, up
from graphs.structure.correlation.dense import dominating_diagonal, given_values, given_variances
from graphs.structure.correlation.interface import MOST_GIVEN, ConditionalBounds, Correlation

__all__ = ["AutoregressiveCorrelation", "ResponseOfSeries", "check_coefficients"]

#: Longest response, and the largest root of a series: its powers vanish in so many steps (exp(-41)).
LONGEST = 2**22
LARGEST_ROOT = 0.99999

#: Series with at most so many records are also treated as a dense matrix, where signs differ.
SMALL = 512

#: Most different patterns of known values in short stretches: each takes one dense factorisation.
MOST_PATTERNS = 64

#: Longest response whose sums are computed for each value after known ones: quadratic work.
LONGEST_AFTER = 8192

#: Relative accuracy of the minimum of a trigonometric polynomial, and the most halvings of intervals for it.
ACCURACY = 1e-9
HALVINGS = 60


class ResponseOfSeries:
    """The response of a stationary autoregressive series to one shock, with a bound on its error.

    With phi(z) = 1 - sum phi_k z^k the response psi is the power series 1/phi(z). Let psi' be any finite sequence, and
    d(z) = phi(z) psi'(z) - 1. If the sum of abs(d_j) is below 1, phi has no root in the closed unit disc, so the series
    is stationary, ``min |phi| >= (1 - |d|_1)/|psi'|_1`` on the circle, and ``|psi - psi'|_2 <= |d|_2 / min |phi|``.
    """

    def __init__(self, coefficients: FloatArray) -> None:
        self.polynomial: FloatArray = np.r_[1.0, -coefficients]
        root = float(np.abs(np.roots(self.polynomial)).max(initial=0.0))
        if root > LARGEST_ROOT:
            self._refuse(root)
        length = max(64, 16 * len(coefficients))
        psi, off, cut = self._response(length)
        while not cut <= off and length < LONGEST and np.isfinite(cut):
            length *= 2
            psi, off, cut = self._response(length)
        if not off + cut < 0.25:
            self._refuse(root)
        self.psi = psi
        norm = math.sqrt(float(psi @ psi))
        #: Lower bound on abs(phi) on the unit circle.
        self.least: float = (1.0 - off - cut) * (1 - 4 * UNIT) / up(float(np.abs(psi).sum()), length)
        #: Bound on the distance of the true response from the computed one, in the norm of squares.
        self.error = up(self._distance(norm, length) + cut, 8) / self.least * (1 + 4 * UNIT)
        #: Bounds on the norm of the true response.
        self.most_norm = up(norm, length) + self.error
        self.least_norm = norm * (1.0 - 2.0 * length * UNIT) - self.error
        if not self.least_norm > 0.5:
            self._refuse(root)

    def _response(self, length: int) -> tuple[FloatArray, float, float]:
        """Return the first entries of the response, the sum of abs(d_j) over them, and that over all others."""
        from scipy.signal import lfilter

        shock = np.zeros(length)
        shock[0] = 1.0
        order = len(self.polynomial) - 1
        with np.errstate(over="ignore", invalid="ignore"):
            psi: FloatArray = lfilter([1.0], self.polynomial, shock)
            tail = np.convolve(self.polynomial, psi[length - order :])[order:]
            weights = up(float(np.abs(self.polynomial).sum()) * float(np.abs(psi).sum()), length)
            cut = up(float(np.abs(tail).sum()), order) + (order + 8) * UNIT * weights
            return psi, self._residual(psi, 1) + (order + 8) * UNIT * weights, cut

    def _residual(self, psi: FloatArray, power: int) -> float:
        """Return the norm of the computed d, of the entries within the response."""
        residual = np.convolve(self.polynomial, psi)[: len(psi)]
        residual[0] -= 1.0
        return up(float(np.linalg.norm(residual, power)), len(psi))

    def _distance(self, norm: float, length: int) -> float:
        """Return a bound on the norm of squares of the true d, of the entries within the response."""
        order = len(self.polynomial) - 1
        rounding = (order + 8) * UNIT * up(float(np.abs(self.polynomial).sum()) * norm, length)
        return self._residual(self.psi, 2) + rounding

    @staticmethod
    def _refuse(root: float) -> None:
        seen = f"a series whose largest root is {root:.7g} in modulus"
        expected = "a series whose roots of z^p - phi_1 z^(p-1) - ... - phi_p are at most 0.99999 in modulus"
        raise ArgumentError("coefficients", seen, expected, "Difference the values, or use Groups.")

    @cached_property
    def spectral_least(self) -> float:
        """Lower bound on the spectral density of the series of variance 1, and so on all eigenvalues."""
        return float((1 - 16 * UNIT) / up((self.most_norm * np.abs(self.polynomial).sum()) ** 2, len(self.polynomial)))

    @cached_property
    def autocovariances(self) -> FloatArray:
        """Products of the computed response with itself, shifted: gamma_0, gamma_1, ... of shocks of variance 1."""
        from scipy.signal import correlate

        length = len(self.psi)
        found: FloatArray = correlate(self.psi, self.psi, mode="full", method="fft")[length - 1 :]
        return found

    @cached_property
    def autocovariance_error(self) -> float:
        """Bound on the error of each autocovariance, at lags beyond the computed ones too."""
        fourier = 64.0 * (math.log2(len(self.psi)) + 4.0) * UNIT * self.most_norm**2
        return up(2.0 * self.most_norm * self.error + fourier, 8)

    def absolute_correlations(self, n: int) -> FloatArray:
        """Return bounds on abs(correlation) at the lags 0 to n - 1."""
        found = np.abs(self.autocovariances[:n])
        padded = np.concatenate([found, np.zeros(n - len(found))])
        bounds = np.minimum(up((padded + self.autocovariance_error) / self.least_norm**2, 8), 1.0)
        bounds[0] = 1.0
        return bounds

    def absolute_sums(self, n: int) -> FloatArray:
        """Return bounds on the sums of abs(correlation) over lags 0 to k, for k = 0, ..., n - 1."""
        return up(np.cumsum(self.absolute_correlations(n)), float(n))

    def absolute_sums_after(self, n: int) -> FloatArray | None:
        """Return bounds on the row sums of absolute correlations of the next n values, given all earlier ones.

        The covariances are then ``sum over j <= t of psi_j psi_(j+k)`` for values t and t + k steps after the first of
        them. None for series that forget too slowly.
        """
        length = len(self.psi)
        if length > LONGEST_AFTER:
            return None
        count = min(2 * length, n)
        padded = np.concatenate([self.psi, np.zeros(length)])
        steps = np.minimum(np.arange(count + length), length - 1)
        off = up(2.0 * self.most_norm * self.error + 2.0 * length * UNIT * self.most_norm**2, 8)
        least = np.sqrt(np.maximum(np.cumsum(self.psi**2) - off, 1.0))[steps]
        rows = np.zeros(count)
        for lag in range(length):
            covariances = np.abs(np.cumsum(self.psi * padded[lag : lag + length]))
            terms = covariances[steps[:count]] / (least[:count] * least[lag : count + lag])
            rows += terms
            if 0 < lag < count:
                rows[lag:] += terms[:-lag]
        found = np.full(n, rows[-1])
        found[:count] = rows
        return up(found + n * off, 4 * length)

    def spectral_peak(self) -> float:
        """Return an upper bound on the largest value of the spectral density of the correlations."""
        return up(1.0 / (self.smallest_square_on_circle() * self.least_norm**2), 8)

    def smallest_square_on_circle(self) -> float:
        """Return a lower bound on abs(phi)^2 on the unit circle, within a relative 1e-9 where floats allow it.

        Between two points at the distance h a trigonometric polynomial g of degree p is above the smaller of its two
        values by no less than ``-h^2/8 max |g''|``, and ``max |g''| <= p^2 max |g|`` (Bernstein), here at most
        ``p^2 |phi|_1^2``. The search keeps the halves that may contain the minimum.
        """
        order = len(self.polynomial) - 1
        largest = up(float(np.abs(self.polynomial).sum()), order) ** 2
        # rounding of Horner's rule at a point of the circle, and Bernstein's bound on the second derivative over 8
        error = 16.0 * (order + 8) * UNIT * largest
        curvature = max(order, 1) ** 2 * largest / 8
        # the last point is rounded up past pi, so that the intervals cover [0, pi]
        points = np.linspace(0.0, math.pi, 16 * max(order, 1) + 1) * (1 + 4 * UNIT)
        left, right = points[:-1], points[1:]
        at_left, at_right = self._square(left), self._square(right)
        sure = math.inf
        for _ in range(HALVINGS):
            least = np.minimum(at_left, at_right) - curvature * (right - left) ** 2
            seen = float(np.minimum(at_left, at_right).min())
            open_ = least < seen * (1 - ACCURACY)
            sure = min(sure, float(least[~open_].min(initial=math.inf)))
            if not open_.any():
                break
            left, right, at_left, at_right = left[open_], right[open_], at_left[open_], at_right[open_]
            middle = 0.5 * (left + right)
            at_middle = self._square(middle)
            left, right = np.r_[left, middle], np.r_[middle, right]
            at_left, at_right = np.r_[at_left, at_middle], np.r_[at_middle, at_right]
        else:
            sure = min(sure, float((np.minimum(at_left, at_right) - curvature * (right - left) ** 2).min()))
        # |phi| >= least holds anyway
        return max((sure - error) * (1 - 8 * UNIT), self.least**2 * (1 - 4 * UNIT))

    def _square(self, angles: FloatArray) -> FloatArray:
        """Return abs(phi(exp(i angle)))^2."""
        values = np.polynomial.polynomial.polyval(np.exp(1j * angles), self.polynomial)
        squares: FloatArray = values.real**2 + values.imag**2
        return squares


def check_coefficients(value: Any) -> FloatArray:
    """Return the coefficients of an autoregressive series as a vector.

    >>> check_coefficients(0.5)
    array([0.5])
    """
    expected = "one coefficient, or a vector of them, finite"
    found = np.atleast_1d(real_array("coefficients", value, expected))
    if found.ndim != 1 or not found.size:
        raise ArgumentError("coefficients", f"an array of shape {found.shape}", expected)
    if not np.isfinite(found).all():
        raise ArgumentError("coefficients", repr(float(found[~np.isfinite(found)][0])), expected)
    return found


class AutoregressiveCorrelation(Correlation):
    """Correlations of n consecutive values of a stationary autoregressive series."""

    def __init__(self, coefficients: FloatArray, n: int, response: ResponseOfSeries | None = None) -> None:
        super().__init__(n)
        self.coefficients = coefficients
        self.response = ResponseOfSeries(coefficients) if response is None else response

    def dominating(self) -> FloatArray:
        """Return row sums of absolute correlations, or the peak of the spectrum throughout, whichever sums to less."""
        sums = self.response.absolute_sums(self.n)
        rows = up(sums + sums[::-1] - 1.0, 4)
        if self.n <= SMALL and (self.coefficients < 0.0).any():
            best = up(dominating_diagonal(self.dense()) + self.n * self.entry_error, 4)
            rows = best if float(best.sum()) < float(rows.sum()) else rows
        peak = self.response.spectral_peak()
        return rows if float(rows.sum()) <= peak * self.n else np.full(self.n, peak)

    def radius(self) -> float:
        """Return the smallest of the spectrum's peak, the largest row sum, and the eigenvalue of a small matrix."""
        sums = self.response.absolute_sums(self.n)
        found = [self.response.spectral_peak(), float(up(sums + sums[::-1] - 1.0, 4).max())]
        if self.n <= SMALL:
            found.append(up(largest_eigenvalue(self.dense()) + self.n * self.entry_error, 4))
        return min(found)

    def least(self) -> float:
        """Return the least value of the spectral density, rounded down."""
        return self.response.spectral_least

    def component(self) -> IntArray:
        """Return one component, or one for each value of white noise."""
        alone = not self.coefficients.any()
        return np.arange(self.n) if alone else np.zeros(self.n, dtype=np.int64)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw the first p values from their joint law, the others by the recursion."""
        drawn: FloatArray = self.sample_units(rng, 1)[0]
        return drawn

    def sample_units(self, rng: np.random.Generator, units: int) -> FloatArray:
        """Draw independent series, shape (units, n)."""
        from scipy.linalg import hankel, toeplitz
        from scipy.signal import lfilter

        order = min(len(self.coefficients), self.n)
        first = rng.standard_normal((units, order)) @ np.linalg.cholesky(toeplitz(self._correlations(order))).T
        if self.n == order:
            return first
        scale = 1.0 / math.sqrt(float(self.response.autocovariances[0]))
        state = first[:, ::-1] @ hankel(self.coefficients)
        shocks = scale * rng.standard_normal((units, self.n - order))
        rest = lfilter([1.0], self.response.polynomial, shocks, axis=1, zi=state)[0]
        return np.concatenate([first, rest], axis=1)

    def content(self) -> Mapping[str, Any]:
        """Return coefficients and length."""
        return {"coefficients": self.coefficients, "n": self.n}

    def describe(self) -> str:
        """Return a few words."""
        return f"an autoregressive series of order {len(self.coefficients)}"

    def dense(self) -> FloatArray:
        """Return the Toeplitz matrix."""
        from scipy.linalg import toeplitz

        matrix: FloatArray = toeplitz(self.first_row())
        return matrix

    def first_row(self) -> FloatArray:
        """Return the correlations of the first value with all."""
        return self._correlations(self.n)

    def given(self, members: IntArray, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for the unknown values: stretches between p known values in a row are independent.

        Short stretches are treated with the Toeplitz matrix around them. In long ones the covariance matrix is below
        that of the series, and so below ``diag(p)``. There p counts in units of the conditional variances, which are at
        least those given all values beyond a window.
        """
        order = len(self.coefficients)
        left = np.flatnonzero(~known)
        cuts = np.flatnonzero(np.diff(left) > order) + 1
        found: dict[bytes, ConditionalBounds | None] = {}
        diagonals, radius = [], 1.0
        for stretch in np.split(left, cuts):
            low, high = max(0, int(stretch[0]) - order), min(self.n, int(stretch[-1]) + 1 + order)
            if high - low > MOST_GIVEN:
                bounds = self._long_stretch(low, high, known)
            else:
                key = known[low:high].tobytes()
                if key not in found:
                    if len(found) == MOST_PATTERNS:
                        return None
                    near = AutoregressiveCorrelation(self.coefficients, high - low, self.response).dense()
                    found[key] = given_values(near, known[low:high], self.entry_error)
                bounds = found[key]
            if bounds is None:
                return None
            diagonals.append(bounds.diagonal)
            radius = max(radius, bounds.radius)
        return ConditionalBounds(np.concatenate(diagonals), radius)

    def _long_stretch(self, low: int, high: int, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for a long stretch without known values inside."""
        inside = np.flatnonzero(~known[low:high]) + low
        if len(inside) != inside[-1] - inside[0] + 1:
            return None
        order, half = len(self.coefficients), MOST_GIVEN // 4
        if len(inside) < 2 * half:  # long relative to its surroundings: the other end is nearer than that of the window
            return None
        width = 2 * (half + order)
        ends = np.ones(width, dtype=np.bool_)
        ends[order : width - order] = False
        near = AutoregressiveCorrelation(self.coefficients, width, self.response).dense()
        variances = given_variances(near, ends, self.entry_error)
        if variances is None:
            return None
        far = np.full(len(inside), half - 1)
        steps = np.arange(len(inside))
        if known[low]:
            far = np.minimum(far, steps)
        if known[high - 1]:
            far = np.minimum(far, steps[::-1])
        series = AutoregressiveCorrelation(self.coefficients, len(inside), self.response)
        scale = 1.0 / np.minimum(variances[far], 1.0)
        diagonal, radius = up(series.dominating() * scale, 4), up(series.radius() * float(scale.max()), 4)
        rows = None
        if known[low : low + order].all() and high == self.n and not known[-1]:
            rows = self.response.absolute_sums_after(len(inside))
        elif known[high - order : high].all() and low == 0 and not known[0]:
            rows = self.response.absolute_sums_after(len(inside))
            rows = None if rows is None else rows[::-1]
        if rows is not None:
            radius = min(radius, float(rows.max()))
            diagonal = rows if float(rows.sum()) < float(diagonal.sum()) else diagonal
        return ConditionalBounds(diagonal, radius)

    @property
    def entry_error(self) -> float:
        """Bound on the error of an entry that `dense` returns."""
        return up(4.0 * self.response.autocovariance_error / self.response.least_norm**2 + 4.0 * UNIT, 8)

    def _correlations(self, count: int) -> FloatArray:
        """Return the correlations at lags below `count`, within a few rounding errors."""
        found = self.response.autocovariances[:count] / self.response.autocovariances[0]
        found[0] = 1.0
        padded: FloatArray = np.concatenate([found, np.zeros(count - len(found))])
        return padded
