"""Probabilistic backpropagation: parameters of a network's posterior, sites of records, and the prior's refinement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.natural_parameters import Floats, Natural
from thresholdout.privacy.learning.propagation.network_moments import evidence_gradients

__all__ = ["LEAST_SHAPE", "NetworkModel", "NetworkNatural", "WeightPrior", "gamma_update", "refine_weight"]

LEAST_SHAPE = 1e-3  # the least excess of a Gamma shape over 1, so that the mean variance b/(a - 1) exists

_WIDEST_CAVITY = 1e6  # a weight with a wider cavity refines nothing: hardly any record has moved it
_PRIOR_SHAPE = _PRIOR_RATE = 6.0  # Gamma(6, 6), the prior of [PBP]
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class NetworkNatural(Natural):
    """Natural parameters of a network: independent Gaussian weights and, if learned, a Gamma noise precision.

    `eta` (precision times mean) and `Lam` (precision) have one number for each weight, layer by layer, row by row.
    `noise` is ``(a - 1, -b)`` of a Gamma(a, b) density of the noise's precision.
    """

    __slots__ = ("learned", "size")

    size: int
    learned: bool

    def __init__(self, eta: Floats, Lam: Floats, noise: Floats | None = None) -> None:
        parts = [np.asarray(part, dtype=np.float64) for part in ([eta, Lam] if noise is None else [eta, Lam, noise])]
        self.size, self.learned = parts[0].size, noise is not None
        expected = [(self.size,), (self.size,), (2,)]
        if not self.size or any(part.shape != shape for part, shape in zip(parts, expected, strict=False)):
            seen = f"shapes {[part.shape for part in parts]}"
            raise InputError("eta, Lam, noise", seen, "two arrays of one length, and one of length 2")
        self.values = np.concatenate(parts)

    def with_values(self, values: Floats) -> Self:
        """Return parameters of the same shapes with other values, unchecked."""
        made = object.__new__(type(self))
        made.values, made.size, made.learned = values, self.size, self.learned
        return made

    @property
    def eta(self) -> Floats:
        """Precision times mean of each weight."""
        return self.values[: self.size]

    @property
    def Lam(self) -> Floats:  # noqa: N802
        """Precision of each weight."""
        return self.values[self.size : 2 * self.size]

    @property
    def noise(self) -> Floats:
        """``(a - 1, -b)``, or nothing when the noise is known."""
        return self.values[2 * self.size :]

    def noise_variances(self) -> tuple[float, float, float]:
        """Return ``b/(a - 1)``, ``b/a`` and ``b/(a + 1)``."""
        shape, rate = float(self.noise[0]), -float(self.noise[1])
        return rate / shape, rate / (shape + 1), rate / (shape + 2)

    def arrays(self) -> dict[str, Floats]:
        """Return the parameters as named arrays, which are views."""
        found = {"eta": self.eta, "Lam": self.Lam}
        return {**found, "noise": self.noise} if self.learned else found

    def project(self, rho: float = 1e-4) -> Self:
        """Return valid parameters, the object itself when it is valid: precisions that are not positive become rho."""
        if self.is_pd() and not (self.learned and self.noise[1] > -rho):
            return self
        values = self.values.copy()
        Lam = values[self.size : 2 * self.size]
        Lam[~(Lam > 0)] = rho
        if self.learned:
            values[-2] = max(values[-2], LEAST_SHAPE)
            values[-1] = min(values[-1], -rho)
        return self.with_values(values)

    def is_pd(self) -> bool:
        """Whether all precisions are positive, and the noise's variance has a mean."""
        if not self.Lam.min() > 0:
            return False
        return not self.learned or bool(self.noise[0] >= LEAST_SHAPE and self.noise[1] < 0)

    def repair(self, default: Self) -> Self:
        """Return the parameters; where a weight's pair or the noise's is not finite, the default's take its place."""
        fine = np.isfinite(self.values)
        both = fine[: self.size] & fine[self.size : 2 * self.size]
        noise = fine[2 * self.size :]
        kept = np.concatenate([both, both, noise & noise.all()])
        return self.with_values(np.where(kept, self.values, default.values))

    def _blocks(self) -> tuple[slice, ...]:
        return slice(0, self.size), slice(self.size, self.values.size)


def gamma_update(logs: tuple[float, float, float], a: float, b: float) -> tuple[float, float]:
    """Return shape and rate of a Gamma density with the moments of a tilted one [PBP, equations 11 and 12]."""
    Z, Z1, Z2 = logs
    try:
        shape = 1 / (math.exp(Z2 - 2 * Z1 + Z) * (a + 1) / a - 1)
        rate = 1 / (math.exp(Z2 - Z1) * (a + 1) / b - math.exp(Z1 - Z) * a / b)
    except (OverflowError, ZeroDivisionError):
        return math.nan, math.nan
    valid = shape > 1 and rate > 0 and math.isfinite(shape) and math.isfinite(rate)
    return (shape, rate) if valid else (math.nan, math.nan)


class Refined(NamedTuple):
    """Moments of a weight, and shape and rate of the weights' precision, after a refinement."""

    mean: float
    variance: float
    shape: float
    rate: float


def refine_weight(mean: float, variance: float, shape: float, rate: float) -> Refined | None:
    """Return the moments after the factor N(w; 0, 1/precision) at a cavity [PBP, section 3.4]."""
    if not (0 < variance < _WIDEST_CAVITY and rate > 0 and shape > 1):
        return None
    spreads = [variance + rate / (shape + k) for k in (-1, 0, 1)]
    logs = tuple(-0.5 * (math.log(u) + mean * mean / u) for u in spreads)
    slope = -mean / spreads[0]
    curvature = slope * slope - (mean * mean / spreads[0] - 1) / spreads[0]
    a, b = gamma_update((logs[0], logs[1], logs[2]), shape, rate)
    found = Refined(mean + variance * slope, variance - variance * variance * curvature, a, b)
    return found if found.variance > 0 and all(map(math.isfinite, found)) else None


class NetworkModel:
    """A network whose weights, and possibly noise, are inferred from records.

    `prior` is replaced when it is refined. `shapes` are those of `layer_shapes`. `noise_variance` is that of the
    targets, if known; otherwise the prior has the noise.
    """

    def __init__(
        self, prior: NetworkNatural, shapes: Sequence[tuple[int, int]], noise_variance: float | None = None
    ) -> None:
        self.prior, self.shapes, self.noise_variance = prior, list(shapes), noise_variance
        ends = np.cumsum([out * width for out, width in self.shapes]).tolist()
        if ends[-1] != prior.size:
            raise InputError("shapes", f"{ends[-1]} weights", f"those of {prior.size} weights, as the prior has")
        if prior.learned == (noise_variance is not None):
            expected = "None where the prior has the noise" if prior.learned else "a number"
            raise InputError("noise_variance", repr(noise_variance), expected)
        self._parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def layers(self, flat: Floats) -> list[Floats]:
        """Return one number for each weight as arrays of the layers' shapes."""
        return [flat[part].reshape(shape) for part, shape in zip(self._parts, self.shapes, strict=True)]

    def moments(self, theta: NetworkNatural) -> tuple[list[Floats], list[Floats]]:
        """Return means and variances of the weights of each layer."""
        variance = 1 / theta.Lam
        return self.layers(theta.eta * variance), self.layers(variance)

    def noise_of(self, theta: NetworkNatural) -> float:
        """Return the variance of the targets' noise: ``b/(a - 1)``, or the known one."""
        return theta.noise_variances()[0] if self.noise_variance is None else self.noise_variance

    def site(self, record: tuple[Floats, Any], cavity: NetworkNatural) -> NetworkNatural:
        """Return the site of a record (x, y) at a cavity; NaN marks entries without one.

        With G and H the gradients of the log evidence by means and variances, the tilted moments are ``M + V G`` and
        ``V - V^2 K`` with ``K = G^2 - 2 H`` [PBP, equations 9 and 10]. So the site's precision is ``K / (1 - V K)`` and
        its ``eta`` is ``(G + M K) / (1 - V K)``, without a difference of inverses. Where ``1 - V K`` is not positive
        there is no tilted variance.
        """
        variance = 1 / cavity.Lam
        mean = cavity.eta * variance
        first = self.noise_of(cavity)
        found = evidence_gradients(self.layers(mean), self.layers(variance), record[0], record[1], first)
        G = np.concatenate([part.ravel() for part in found.means])
        K = G * G - 2 * np.concatenate([part.ravel() for part in found.variances])
        # NaN marks weights without a tilted variance; the shared site takes their place.
        shrink = 1 - variance * K
        shrink[~(shrink > 0)] = math.nan
        values = np.empty_like(cavity.values)
        np.divide(G + mean * K, shrink, out=values[: cavity.size])
        np.divide(K, shrink, out=values[cavity.size : 2 * cavity.size])
        if cavity.learned:
            values[-2:] = self._noise_site(cavity, float(found.forward.mean), float(found.forward.variance), record[1])
        return cavity.with_values(values)

    @staticmethod
    def _noise_site(cavity: NetworkNatural, mean: float, variance: float, y: Any) -> tuple[float, float]:
        a, b = float(cavity.noise[0]) + 1, -float(cavity.noise[1])
        spreads = [variance + noise for noise in cavity.noise_variances()]
        if not all(spread > 0 and math.isfinite(spread) for spread in spreads):
            return math.nan, math.nan
        square = (float(y) - mean) ** 2
        logs = [-_HALF_LOG_TWO_PI - 0.5 * (math.log(spread) + square / spread) for spread in spreads]
        shape, rate = gamma_update((logs[0], logs[1], logs[2]), a, b)
        return shape - a, b - rate


class WeightPrior:
    """The prior of the weights, N(0, 1/precision) with a Gamma(6, 6) precision, as sites that can be refined.

    `eta` and `Lam` are natural parameters of each weight's prior, at first mean 0 and variance 6/5. `shape` and `rate`
    are those of the precision's Gamma density, after all weights' factors.
    """

    def __init__(self, weights: int) -> None:
        self.eta, self.Lam = np.zeros(weights), np.full(weights, (_PRIOR_SHAPE - 1) / _PRIOR_RATE)
        self.shape, self.rate = _PRIOR_SHAPE, _PRIOR_RATE
        self._noise = np.zeros((weights, 2))

    def refine(self, eta: Floats, Lam: Floats) -> None:
        """Go once through all weights' factors, given the posterior; reads no record.

        A factor stays as it was where its cavity, the result or the new prior is not proper. So the posterior stays
        proper with each new prior in place of the old one, and so do all cavities between the two.
        """
        for w in range(self.eta.size):
            precision = Lam[w] - self.Lam[w]
            shape, rate = self.shape - self._noise[w, 0], self.rate + self._noise[w, 1]
            if not precision > 0:
                continue
            found = refine_weight((eta[w] - self.eta[w]) / precision, 1 / precision, shape, rate)
            if found is None:
                continue
            prior = 1 / found.variance - precision
            if not prior > 0:
                continue
            self.eta[w], self.Lam[w] = found.mean / found.variance - (eta[w] - self.eta[w]), prior
            self._noise[w] = found.shape - shape, rate - found.rate
            self.shape, self.rate = found.shape, found.rate
