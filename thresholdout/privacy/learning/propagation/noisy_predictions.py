"""Private posteriors of linear weights that predict noise, by public numbers and by what is released."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

__all__ = ["best_r2", "noise_of_predictions"]


def best_r2(precision: float, parameters: int, noise_std: float, noise_std_lam: float, rho: float) -> float:
    """Return the R2 of private linear weights whose least precision is the largest that is expected; by public numbers.

    `precision` is the most that the trace of ``Lam`` can be without noise; features and target vary by about 1.

    Notes
    -----
    The noise U of ``Lam`` has the same law when coordinates are permuted or change signs, and the smallest eigenvalue
    is concave. So averaging over these changes, ``E lambda_min(Lam + U) <= trace(Lam)/p - E lambda_max(U)``: equal
    precisions in all directions are best. An eigenvalue of at most 0 becomes rho. In that direction the noise of
    ``eta`` alone adds ``(s/lambda_min)^2`` to the squared error of predictions, in units of the target's variance.

    Examples
    --------
    >>> best_r2(4.0, 1, 1.0, 1.0, 1e-4)
    0.9375
    >>> f"{best_r2(400.0, 11, 10.0, 10.0, 1e-4):.0e}"
    '-1e+10'
    """
    least = precision / parameters - noise_std_lam * _largest_eigenvalue(parameters)
    return 1.0 - (noise_std / max(least, rho)) ** 2


@lru_cache(maxsize=64)
def _largest_eigenvalue(size: int) -> float:
    """Return the mean largest eigenvalue of symmetric noise of deviation 1, by simulation; 0 for one number."""
    if size == 1:
        return 0.0
    draws = max(8, 2000 // size**2)  # it hardly varies where there are many: by about size**(-1/6)
    upper = np.triu(np.random.default_rng(0).standard_normal((draws, size, size)))
    return float(np.linalg.eigvalsh(upper + np.triu(upper, 1).transpose(0, 2, 1))[:, -1].mean())


def noise_of_predictions(
    posterior: GaussianNatural, prior: GaussianNatural, noise_std: float, noise_std_lam: float
) -> float:
    """Return the expected square of what noise adds to predictions, over that of the predictions.

    Parameters
    ----------
    posterior, prior : GaussianNatural
        Of the weights; the posterior as it was released.
    noise_std, noise_std_lam : float
        Standard deviations of the noise in each entry of its ``eta``, and of its ``Lam``.

    Returns
    -------
    float
        A function of what was released, and of public numbers; inf where nothing was learned.

    Notes
    -----
    To first order, noise u of ``eta`` and U of ``Lam`` moves the mean ``m = Lam^-1 eta`` by ``Lam^-1 (u - U m)``. U is
    symmetric with independent entries on and above the diagonal, so ``u - U m`` has the covariance

        C = s^2 I + t^2 (|m|^2 I + m m' - diag(m_i^2)),

    s and t being the deviations. What was learned, ``A = posterior.Lam - prior.Lam`` without its negative eigenvalues,
    is about the sum of ``x x'`` over records in units of the targets' variance. So the result is the trace of
    ``A Lam^-1 C Lam^-1`` over ``m' A m``: a direction that noise alone decides counts as much as it counts for
    predictions.

    Examples
    --------
    >>> prior, posterior = GaussianNatural([0.0], [[1.0]]), GaussianNatural([20.0], [[10.0]])
    >>> round(noise_of_predictions(posterior, prior, 2.0, 1.0), 3)  # (4 + 4) / 10**2 over 2**2
    0.02
    """
    values, vectors = np.linalg.eigh(posterior.Lam - prior.Lam)
    learned = (vectors * np.maximum(values, 0.0)) @ vectors.T
    mean, inverse = posterior.mean(), posterior.cov()
    moved = noise_std**2 * np.eye(mean.size)
    moved += noise_std_lam**2 * (mean @ mean * np.eye(mean.size) + np.outer(mean, mean) - np.diag(mean * mean))
    size = float(mean @ learned @ mean)
    return float(np.trace(learned @ inverse @ moved @ inverse)) / size if size > 0.0 else math.inf
