"""Private posteriors of linear weights that predict noise, by numbers that are released."""

from __future__ import annotations

import math

import numpy as np

from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

__all__ = ["noise_of_predictions"]


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
