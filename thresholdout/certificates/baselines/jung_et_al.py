"""The bound of [J20] for Gaussian answers, as printed, for comparison with the Gaussian guard.

References
----------
[J20] C. Jung, K. Ligett, S. Neel, A. Roth, S. Sharifi-Malvajerdi, M. Shenfeld, "A new analysis of differential
privacy's generalization guarantees", ITCS 2020.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.best_parameters import best_parameters
from thresholdout.certificates.normal_extremes import largest_normal_quantiles

__all__ = ["posterior_sensitivity_width"]

Floats = NDArray[np.float64]


def posterior_sensitivity_width(n: int, answers: int, beta: float) -> float:
    """Half-width of all of k Gaussian answers by [J20], all parameters tuned.

    Parameters
    ----------
    n : int
        Number of independent records.
    answers : int
        k, declared number of answers.
    beta : float
        Probability of failure, in (0, 1).

    Returns
    -------
    float
        ``s z(k, b') + (e^eps - 1) + b'/(u beta) + 2 delta/((1-u) beta)`` at the best rho, b', delta and share u, with
        ``s = 1/(n sqrt(2 rho))`` and ``eps = k rho + 2 sqrt(k rho ln(sqrt(pi k rho)/delta))``; at most 1.

    Notes
    -----
    The best share is ``sqrt(b')/(sqrt(b') + sqrt(2 delta))``, at which the last two terms are ``(sqrt(b') + sqrt(2
    delta))^2/beta``.

    Examples
    --------
    >>> posterior_sensitivity_width(100_000, 156, 0.05) <= 0.1 < posterior_sensitivity_width(100_000, 157, 0.05)
    True
    """

    def cost(log_total: Floats, log_noise: Floats, log_delta: Floats) -> Floats:
        total, noise, delta = np.exp(log_total), np.exp(log_noise), np.exp(log_delta)
        scale = np.sqrt(answers / (2.0 * total)) / n
        inside = np.maximum(np.log(np.sqrt(np.pi * total) / delta), 0.0)
        epsilon = total + 2.0 * np.sqrt(total * inside)
        failing = (np.sqrt(noise) + np.sqrt(2.0 * delta)) ** 2 / beta
        width: Floats = scale * largest_normal_quantiles(answers, noise) + np.expm1(epsilon) + failing
        return width

    small = math.log(beta)
    boxes = [(-25.0, 2.0), (small - 25.0, small), (small - 30.0, small)]
    return min(1.0, formula_up(best_parameters(cost, boxes, points=21, rounds=10)[1]))
