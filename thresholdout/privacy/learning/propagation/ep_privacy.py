"""Privacy of stochastic expectation propagation with noise, and the noise that meets a target."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graphs.numerics.bisection import bisect, within
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, RenyiEpsilon, rdp_to_epsilon
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit, positive
from thresholdout.privacy.accounting.events.composed_events import SelfComposed
from thresholdout.privacy.accounting.events.event_types import Event, GaussianAnswer
from thresholdout.privacy.accounting.events.learning_steps import WithoutReplacementGaussianStep
from thresholdout.privacy.accounting.minibatches.moments import rdp_wang
from thresholdout.privacy.accounting.minibatches.poisson import rdp_poisson
from thresholdout.privacy.learning.propagation.natural_parameters import Floats, GaussianNatural, clip_norm_of
from thresholdout.suppressed_warnings import suppress_warnings

__all__ = [
    "BOUNDS",
    "best_r2",
    "calibrate_sep_sigma",
    "epsilon_of",
    "joint_sigma",
    "noise_of_predictions",
    "rdp_gaussian",
    "rdp_subsampled_gaussian",
    "sensitivity",
    "sep_event",
    "sep_noise_std",
    "split_sigma",
]

# Published formulas, for comparison; no guarantee rests on "tight" (PROOFS.md, E4).
BOUNDS = ("tight", "wbk")
_CONVERSIONS = {"improved": "balle", "classic": "mironov"}
# The least epsilon over any set of orders is a bound; further orders gain little.
_ORDERS = np.array([*range(2, 129), 160, 192, 256, 320, 384, 512, 768, 1024], dtype=np.float64)
_ROUND_UP = 1 + 2.0**-48  # more than the few roundings of a product, and that of each scaled site
_LEAST_SENSITIVITY = 1e-200  # beside it, the underflow of the smallest floats does not count
_LEAST_SIGMA, _MOST_SIGMA = 0.02, 4e7  # twice these are within the range of the accountants


def sensitivity(N: int, C: float, gamma: float) -> float:
    """Return the distance of neighbours' posteriors after an update, before the noise [VP, Proposition 1].

    ``2 gamma C / N`` for each clipped block, rounded up so that it covers the rounding of the scaled site (PROOFS.md,
    E1). N is the same for both neighbours, which differ in one record.
    """
    number, norm, step = count(N, "N"), clip_norm_of(C, "C"), positive(gamma, "gamma")
    if step > number:
        raise InputError("gamma", repr(step), f"a number in (0, {number}], the number of records")
    found = 2 * step * norm / number * _ROUND_UP
    if found < _LEAST_SENSITIVITY:
        raise InputError("gamma", repr(step), f"large enough that 2 gamma C / N is at least {_LEAST_SENSITIVITY:g}")
    return found


def sep_noise_std(sigma: float, N: int, C: float, gamma: float) -> float:
    """Return the standard deviation of the noise of each natural parameter, ``sigma`` sensitivities, rounded up."""
    return positive(sigma, "sigma") * sensitivity(N, C, gamma) * _ROUND_UP


def rdp_gaussian(order: ArrayLike, sigma: float) -> Floats:
    """Return the Renyi divergence of a Gaussian answer, ``order / (2 sigma^2)``, sigma in units of the sensitivity."""
    return np.asarray(np.asarray(order, dtype=np.float64) / (2 * positive(sigma, "sigma") ** 2))


def rdp_subsampled_gaussian(order: ArrayLike, q: float, sigma: float, bound: str = "tight") -> Any:
    """Return the Renyi divergence of an update by one uniformly drawn record, q being one over the number of records.

    "tight" is that of ``(1-q) N(0,1) + q N(1/sigma,1)`` from N(0,1), which is attained. All other configurations are
    proved to be no worse but for one (PROOFS.md, E4), in which only numerical search has found none. So it is an
    estimate; no guarantee builds on it. "wbk" is Theorem 9 of Wang, Balle and Kasiviswanathan (2019), or no
    amplification where that is smaller: an upper bound. sigma is in units of the sensitivity of a replaced record.
    """
    noise = positive(sigma, "sigma")
    if chosen(bound, "bound", BOUNDS) == "tight":
        return rdp_poisson(np.asarray(order, dtype=np.float64)[()], noise, q)
    # The theorem's multiplier is in units of one record's bound, half the sensitivity.
    amplified = rdp_wang(np.asarray(order, dtype=np.float64)[()], 2 * noise, q, variant="min")
    return np.minimum(amplified, rdp_gaussian(order, noise))


def epsilon_of(
    sigma: float, q: float, steps: int, delta: float, bound: str = "tight", conversion: str = "improved"
) -> RenyiEpsilon:
    """Return the epsilon of updates by drawn records, by one of the published formulas, and its order.

    Conversions: "improved" of Balle et al. (2020), "classic" of Mironov (2017). Orders are 2 to 128 and some up to
    1024.
    """
    how = _CONVERSIONS[chosen(conversion, "conversion", _CONVERSIONS)]
    with np.errstate(over="ignore"):
        rdp = count(steps, "steps") * rdp_subsampled_gaussian(_ORDERS, q, sigma, bound)
    with suppress_warnings(EdgeOrderWarning):
        return rdp_to_epsilon(_ORDERS, rdp, open_unit(delta, "delta"), conversion=how)


@lru_cache(maxsize=256)
def calibrate_sep_sigma(
    epsilon: float, delta: float, q: float, steps: int, bound: str = "tight", conversion: str = "improved"
) -> float:
    """Return the smallest noise multiplier that meets a target by one of the published formulas."""
    target = positive(epsilon, "epsilon")

    def enough(sigma: float) -> bool:
        return epsilon_of(sigma, q, steps, delta, bound, conversion).epsilon <= target

    # A bracket by doubling, then bisection: epsilon falls with the noise.
    low = high = 1.0
    while not enough(high):
        if high >= _MOST_SIGMA:
            raise InputError("epsilon", f"{target:g}", "a target that a noise multiplier up to 4e7 meets")
        low, high = high, min(2 * high, _MOST_SIGMA)
    while low > _LEAST_SIGMA and enough(low):
        low, high = low / 2, low
    return bisect(enough, low, high, close=within(1e-10))


def joint_sigma(sigmas: tuple[float, ...]) -> float:
    """Return the noise multiplier of one query that is worth several, all about the same drawn record.

    ``(sum sigma^-2)^(-1/2)``, rounded down. Composing the blocks as if each drew its record anew is no guarantee
    (PROOFS.md, E3).
    """
    if len(sigmas) == 1:
        return sigmas[0]
    return 1 / math.sqrt(math.fsum(1 / sigma**2 for sigma in sigmas)) * (1 - 2.0**-49)


def split_sigma(sigma: float, shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return noise multipliers of several blocks that cost together no more than one query of a multiplier."""
    if not all(math.isfinite(share) and share > 0 for share in shares) or math.fsum(shares) > 1 + 1e-12:
        raise InputError("budget_split", f"{shares}", "positive shares whose sum is at most 1")
    if len(shares) == 1 and shares[0] == 1:
        return (sigma,)
    return tuple(sigma / math.sqrt(share) * _ROUND_UP for share in shares)


def sep_event(sigmas: float | tuple[float, ...], N: int, n_epochs: int, sampling: str = "uniform") -> Event:
    """Return the event of a private run, under replaced records (PROOFS.md, E2)."""
    records, passes = count(N, "N"), count(n_epochs, "n_epochs")
    found = tuple(positive(each, "sigma") for each in (sigmas if isinstance(sigmas, tuple) else (sigmas,)))
    together = joint_sigma(found)
    if not _LEAST_SIGMA <= together <= _MOST_SIGMA:
        raise InputError("sigma", repr(together), f"a number in [{_LEAST_SIGMA:g}, {_MOST_SIGMA:g}]")
    if chosen(sampling, "sampling", ("uniform", "shuffle", "cyclic")) != "uniform":
        # A record acts in one update of each pass (E2).
        return SelfComposed(GaussianAnswer(together), passes)
    if records < 2:
        raise InputError("N", "1", "at least 2 for uniform sampling", "A single record is not hidden among others.")
    # In units of one record's bound, half the sensitivity, the multiplier is 2 sigma (PROOFS.md, E2).
    return SelfComposed(WithoutReplacementGaussianStep(2 * together, 1, records), records * passes)


def best_r2(precision: float, parameters: int, noise_std: float, noise_std_lam: float, rho: float) -> float:
    """Return the R2 of private linear weights with the largest expected least precision, by public numbers.

    `precision` is the largest possible trace of ``Lam`` without noise; features and target vary by about 1.

    The noise U of ``Lam`` has the same law when coordinates are permuted or change signs, and the smallest eigenvalue
    is concave. So averaging over these changes, ``E lambda_min(Lam + U) <= trace(Lam)/p - E lambda_max(U)``: equal
    precisions in all directions are best. An eigenvalue of at most 0 becomes rho. In that direction the noise of
    ``eta`` alone adds ``(s/lambda_min)^2`` to the squared error of predictions, in units of the target's variance.
    """
    least = precision / parameters - noise_std_lam * _largest_eigenvalue(parameters)
    return 1.0 - (noise_std / max(least, rho)) ** 2


@lru_cache(maxsize=64)
def _largest_eigenvalue(size: int) -> float:
    """Return the mean largest eigenvalue of symmetric noise of deviation 1, by simulation; 0 for one number."""
    if size == 1:
        return 0.0
    draws = max(8, 2000 // size**2)  # a large matrix needs few: its eigenvalue varies by about size**(-1/6)
    upper = np.triu(np.random.default_rng(0).standard_normal((draws, size, size)))
    return float(np.linalg.eigvalsh(upper + np.triu(upper, 1).transpose(0, 2, 1))[:, -1].mean())


def noise_of_predictions(
    posterior: GaussianNatural, prior: GaussianNatural, noise_std: float, noise_std_lam: float
) -> float:
    """Return the expected square of the noise in predictions, over that of the predictions.

    To first order, noise u of ``eta`` and U of ``Lam`` moves the mean ``m = Lam^-1 eta`` by ``Lam^-1 (u - U m)``. U is
    symmetric with independent entries on and above the diagonal, so ``u - U m`` has the covariance

        C = s^2 I + t^2 (|m|^2 I + m m' - diag(m_i^2)),

    s and t being the deviations. The learned part, ``A = posterior.Lam - prior.Lam`` without its negative eigenvalues,
    is about the sum of ``x x'`` over records in units of the targets' variance. So the result is the trace of ``A
    Lam^-1 C Lam^-1`` over ``m' A m``: a direction that noise alone decides has the weight that it has for predictions.
    """
    values, vectors = np.linalg.eigh(posterior.Lam - prior.Lam)
    learned = (vectors * np.maximum(values, 0.0)) @ vectors.T
    mean, inverse = posterior.mean(), posterior.cov()
    moved = noise_std**2 * np.eye(mean.size)
    moved += noise_std_lam**2 * (mean @ mean * np.eye(mean.size) + np.outer(mean, mean) - np.diag(mean * mean))
    size = float(mean @ learned @ mean)
    return float(np.trace(learned @ inverse @ moved @ inverse)) / size if size > 0.0 else math.inf
