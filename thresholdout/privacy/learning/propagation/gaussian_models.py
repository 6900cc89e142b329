"""Gaussian models: a prior, and the site of a record at a cavity, by link."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dposv
from scipy.special import erfcx, expit, log_ndtr

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive
from thresholdout.privacy.learning.propagation.natural_parameters import Floats, GaussianNatural, Natural

__all__ = [
    "GaussianLocation",
    "LinearModel",
    "LinearPredictor",
    "LinearSite",
    "MixtureMoments",
    "MixtureOfGaussians",
    "Model",
    "logistic_moments",
    "logistic_probability",
    "logistic_site",
    "mixture_moments",
    "probit_moments",
    "probit_probability",
    "site_linear",
    "site_logistic",
    "site_probit",
    "site_tilted_location",
    "weights_of",
]


_LEGENDRE: tuple[Floats, Floats] = np.polynomial.legendre.leggauss(20)  # for one panel of `logistic_moments`


class LinearSite(NamedTuple):
    """The site of a likelihood of one linear predictor x.w: precision ``tau x x'``, precision times mean ``nu x``.

    `log_evidence` is the logarithm of the likelihood's mean over the cavity.
    """

    tau: float
    nu: float
    log_evidence: float


def site_tilted_location(x: Floats, s2: float) -> tuple[Floats, Floats]:
    """Return the site, eta and Lam, of a Gaussian record x of unknown mean and known variance s2."""
    return x / s2, np.eye(x.size) / s2


def site_linear(x: Floats, y: float, s2: float, mean: Floats, cov: Floats) -> LinearSite:
    """Return the site of a linear regression's record; only its evidence depends on the cavity N(mean, cov)."""
    spread = s2 + float(x @ cov @ x)
    gap = y - float(x @ mean)
    return LinearSite(1 / s2, y / s2, -(math.log(2 * math.pi * spread) + gap * gap / spread) / 2)


def probit_moments(y: float, mu: float, s: float) -> tuple[float, float, float]:
    """Return tau, nu and log-evidence of the likelihood Phi(y a), y = +-1, over a cavity N(mu, s).

    With ``z = y mu / sqrt(1+s)``, ``r = phi(z)/Phi(z)`` and ``g = r (z+r)/(1+s)``, the tilted mean is ``mu + y s r /
    sqrt(1+s)`` and the variance ``s - s^2 g``. So ``tau = g/(1 - s g)``, without subtracting inverses.
    """
    root = math.sqrt(1 + s)
    z = y * mu / root
    ratio = math.sqrt(2 / math.pi) / float(erfcx(-z / math.sqrt(2)))
    if z < -50:  # z + r would cancel; the asymptotic series of r (z + r) is as exact from here on
        w = 1 / z**2
        curvature = 1 - w * (1 - w * (6 - w * (50 - w * 518)))
    else:
        curvature = ratio * (z + ratio)
    g = curvature / (1 + s)
    left = 1 - s * g
    tau = g / left
    return tau, mu * tau + y * ratio / root / left, float(log_ndtr(z))


def logistic_moments(y: float, mu: float, s: float) -> tuple[float, float, float]:
    """Return mean, variance and log-evidence of the likelihood 1/(1 + exp(-y a)), y = +-1, over a cavity N(mu, s).

    The trapezoid rule: Gaussian and likelihood are analytic in a strip of half-width pi, so a step of 0.5 converges to
    double precision at any variance. Gauss-Hermite rules of fixed size do so at small variances only. Variances above
    64 take Gauss-Legendre panels, whose number does not grow with the variance.
    """
    sd, center = math.sqrt(s), y * mu
    # The mode is between the cavity's mean and this; the mass beyond 9 deviations of the cavity is below rounding.
    end = min(center + s, max(center, 0.0) + math.log1p(s))
    a, spacing = _nodes(center - 9 * sd, end + 9 * sd, sd)
    logs = -((a - center) ** 2) / (2 * s) - np.logaddexp(0.0, -a)
    peak = float(logs.max())
    weights = spacing * np.exp(logs - peak)
    total = float(weights.sum())
    mean = float(weights @ a) / total
    variance = float(weights @ (a - mean) ** 2) / total
    return y * mean, variance, peak + math.log(total) - math.log(2 * math.pi * s) / 2


def _nodes(low: float, high: float, sd: float) -> tuple[Floats, Floats]:
    """Return nodes and weights for a Gaussian of deviation sd times a logistic function."""
    if sd <= 8:
        step = 0.5 * min(sd, 1.0)
        even = low + step * np.arange(math.ceil((high - low) / step) + 1, dtype=np.float64)
        return even, np.full(even.size, step)
    # Far from 0 the logistic function is exponential or constant, and panels may become as wide as the Gaussian.
    start = min(max(0.0, low), high)
    edges = [start]
    for end, sign in ((low, -1.0), (high, 1.0)):
        width, at = 5.0, start
        while sign * (end - at) > 0:
            at = sign * min(sign * end, sign * at + width)
            edges.append(at)
            if abs(at - start) >= 40:
                width = min(2 * width, 2 * sd)
    panels = np.sort(np.array(edges))
    half = np.diff(panels)[:, None] / 2
    a = panels[:-1, None] + half * (1 + _LEGENDRE[0])
    weights = half * _LEGENDRE[1]
    return np.asarray(a.ravel(), dtype=np.float64), np.asarray(weights.ravel(), dtype=np.float64)


def site_probit(x: Floats, y: float, mean: Floats, cov: Floats) -> LinearSite:
    """Return the site of the likelihood Phi(y x.w), y = +-1, at a cavity N(mean, cov)."""
    return LinearSite(*probit_moments(y, float(x @ mean), float(x @ cov @ x)))


def site_logistic(x: Floats, y: float, mean: Floats, cov: Floats) -> LinearSite:
    """Return the site of the likelihood 1/(1 + exp(-y x.w)), y = +-1, at a cavity N(mean, cov)."""
    mu, s = float(x @ mean), float(x @ cov @ x)
    return logistic_site(y, mu, s)


def logistic_site(y: float, mu: float, s: float) -> LinearSite:
    """Return the site of a logistic likelihood over a cavity N(mu, s) of the linear predictor."""
    mean, variance, log_evidence = logistic_moments(y, mu, s)
    return LinearSite(1 / variance - 1 / s, mean / variance - mu / s, log_evidence)


def probit_probability(mu: Floats, s: Floats) -> Floats:
    """Return the probability of the label +1 under predictors N(mu, s), arrays of one shape."""
    return np.asarray(np.exp(log_ndtr(mu / np.sqrt(1 + s))))


def logistic_probability(mu: Floats, s: Floats) -> Floats:
    """Return the probability of the label +1 under predictors N(mu, s), by the trapezoid rule of `logistic_moments`."""
    found = np.empty(mu.size)
    for i, (m, v) in enumerate(zip(mu.tolist(), s.tolist(), strict=True)):
        # The smaller of the two probabilities is computed, so that neither loses digits.
        side = -1.0 if m > 0 else 1.0
        small = math.exp(logistic_moments(side, m, v)[2]) if v > 0 else float(expit(side * m))
        found[i] = small if side > 0 else 1 - small
    return found


class MixtureMoments(NamedTuple):
    """Moments of the components' means given a record of a mixture, and the record's probability of each component."""

    means: Floats
    covs: Floats
    responsibilities: Floats
    log_evidence: float


def mixture_moments(x: Floats, weights: Floats, s2: float, means: Floats, covs: Floats) -> MixtureMoments:
    """Return the tilted moments of a mixture of Gaussians with known weights and variance."""
    d = x.size
    root = np.linalg.cholesky(covs + s2 * np.eye(d))
    gap = x - means
    scaled = np.linalg.solve(root, np.concatenate([gap[..., None], covs], axis=-1))
    white, half = scaled[..., 0], scaled[..., 1:]
    logs = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
    each = np.log(weights) - 0.5 * (white * white).sum(-1) - logs - 0.5 * d * math.log(2 * math.pi)
    log_evidence = float(np.logaddexp.reduce(each))
    r = np.exp(each - log_evidence)
    turned = half.swapaxes(-1, -2)
    g = (turned @ white[..., None])[..., 0]
    shrunk = covs - r[:, None, None] * (turned @ half)
    tilted = shrunk + (r * (1 - r))[:, None, None] * g[:, :, None] * g[:, None, :]
    return MixtureMoments(means + r[:, None] * g, tilted, r, log_evidence)


T = TypeVar("T", bound=Natural)


class Model(Protocol[T]):
    """A model for expectation propagation; its natural parameters know how to clip and to project."""

    prior: T

    def site(self, record: Any, cavity: T) -> T:
        """Return the site of a record at a cavity; entries that are not finite, or a ValueError, mark a failure."""
        ...


class GaussianLocation:
    """Records from a Gaussian of unknown mean, with a prior, and known variance s2 in each coordinate."""

    def __init__(self, prior: GaussianNatural, s2: float) -> None:
        self.prior = proper(prior)
        self.s2 = positive(s2, "s2")

    def site(self, record: Floats, cavity: GaussianNatural) -> GaussianNatural:
        """Return the site of a record, shape (d,), the same at each cavity."""
        return cavity.replace(*site_tilted_location(record, self.s2))


class LinearModel:
    """Targets y = x.w + noise of known variance s2, with a prior of the weights."""

    def __init__(self, prior: GaussianNatural, s2: float) -> None:
        self.prior = proper(prior)
        self.s2 = positive(s2, "s2")

    def site(self, record: tuple[Floats, float], cavity: GaussianNatural) -> GaussianNatural:
        """Return the site of a record (x, y), the same at each cavity."""
        x, y = record
        return _rank_one(cavity, x, 1 / self.s2, y / self.s2)


class LinearPredictor:
    """Labels y = +-1 with a probit or logistic likelihood of y x.w, and a prior of the weights."""

    def __init__(self, prior: GaussianNatural, link: str = "probit") -> None:
        self.prior = proper(prior)
        if link not in _LINKS:
            raise InputError("link", repr(link), "'probit' or 'logit'")
        self.link = link
        self._moments = _LINKS[link]

    def site(self, record: tuple[Floats, float], cavity: GaussianNatural) -> GaussianNatural:
        """Return the site of a record (x, y) at a cavity."""
        x, y = record
        solved, failed = dposv(cavity.Lam, np.column_stack([cavity.eta, x]))[1:]
        if failed:
            raise InputError("cavity", "a precision that is not positive definite", "a proper density")
        mu, s = (x @ solved).tolist()
        if not s > 0:  # a record of zeros has no information about the weights
            return cavity.scale(0.0)
        tau, nu = self._moments(y, mu, s)[:2]
        return _rank_one(cavity, x, tau, nu)


_LINKS: dict[str, Callable[[float, float, float], tuple[float, ...]]] = {
    "probit": probit_moments,
    "logit": logistic_site,
}


class MixtureOfGaussians:
    """Records from a mixture of Gaussians with unknown means; weights and the common variance s2 are known.

    The prior's eta has shape (J, d). Its means are distinct, as components are otherwise exchangeable.
    """

    def __init__(self, prior: GaussianNatural, weights: ArrayLike, s2: float) -> None:
        self.prior = proper(prior)
        if prior.eta.ndim != 2 or prior.diagonal:
            raise InputError(
                "prior", f"eta of shape {prior.eta.shape}", "a prior with eta of shape (J, d) and full precisions"
            )
        self.weights = weights_of(weights, len(prior.eta))
        self.s2 = positive(s2, "s2")

    def site(self, record: Floats, cavity: GaussianNatural) -> GaussianNatural:
        """Return the sites of a record, shape (d,), for all components at a cavity; precisions may be indefinite."""
        covs = np.asarray(np.linalg.inv(cavity.Lam), dtype=np.float64)
        means: Floats = (covs @ cavity.eta[..., None])[..., 0]
        tilted = mixture_moments(record, self.weights, self.s2, means, covs)
        np.linalg.cholesky(tilted.covs)  # a LinAlgError, a ValueError, marks a failure
        precision = np.linalg.inv(tilted.covs)
        eta = (precision @ tilted.means[..., None])[..., 0]
        return cavity.replace(eta - cavity.eta, precision - cavity.Lam)


def weights_of(weights: ArrayLike, components: int) -> Floats:
    """Return checked weights of a mixture's components."""
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (components,) or not (found > 0).all() or not math.isclose(found.sum(), 1.0, rel_tol=1e-9):
        raise InputError("weights", f"{found}", f"{components} positive numbers whose sum is 1")
    return found


def proper(prior: GaussianNatural) -> GaussianNatural:
    """Return a prior, if it is a proper density."""
    if not prior.is_pd():
        raise InputError("prior", "a precision that is not positive definite", "a proper density")
    return prior


def _rank_one(like: GaussianNatural, x: Floats, tau: float, nu: float) -> GaussianNatural:
    """Return eta = nu x and Lam = tau x x', which is exactly symmetric as x x' is formed first."""
    d = x.size
    values = np.empty(d + d * d)
    np.multiply(x, nu, out=values[:d])
    matrix = values[d:].reshape(d, d)
    np.multiply.outer(x, x, out=matrix)
    matrix *= tau
    return like.with_values(values)
