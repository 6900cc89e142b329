"""Certificates by max-information: the transcript is nearly as likely with fresh records."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from thresholdout.certificates.problem import Setting, leakage
from thresholdout.certificates.route import Route

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["max_information", "max_information_route"]

NAME = "max-information"
SOURCE = "PROOFS.md, 'Max-information'; after [Z17, Theorem 3]"
ASSUMES = "a variance inflation below n for fixed questions; leakage to informed analysts"


def max_information(model: DependenceModel, epsilon: float, beta: float) -> float:
    """Bound the beta-approximate max-information between records and transcript.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    epsilon : float
        Differential privacy of the interaction about one record, nats.
    beta : float
        In (0, 1).

    Returns
    -------
    float
        In bits: ``(sum alpha_i^2/8 + sqrt(sum alpha_i^2 ln(1/beta)/2)) log2 e``, alpha_i the leakage to informed
        analysts. With k that many nats, ``P((X, Y) in O) <= e^k (P x P)(O) + beta`` for every set O.

    Examples
    --------
    >>> from graphs import Independent
    >>> round(max_information(Independent(10_000), 0.01, 0.05), 12)
    1.946012987099
    """
    alpha = leakage(model, epsilon, "informed")
    total = float(np.mean(alpha**2)) * model.n
    return (total / 8.0 + math.sqrt(total * math.log(1.0 / beta) / 2.0)) * math.log2(math.e)


def max_information_route(setting: Setting) -> Route:
    """Certify by max-information and the variance inflation.

    Parameters
    ----------
    setting : Setting
        Model, parameters and confidence.

    Returns
    -------
    Route
        Tolerance ``VaR_{beta/2}(M) + sqrt(Lambda (k + ln(8 m/beta)) / (2 n))``, with k nats of beta/4-approximate
        max-information.

    Notes
    -----
    With fresh records the m questions are fixed, so some one is off by t with probability at most
    ``2 m exp(-2 n t^2/Lambda)``; at the stated t this is ``e^-k beta/4``.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.mechanisms import SparseVectorParameters
    >>> parameters = SparseVectorParameters(0.0224, 0.00119, budget=1, queries=1000)
    >>> round(max_information_route(Setting(Independent(10_000), parameters, 0.95)).tolerance, 3)
    0.095
    """
    if setting.n > 1 and setting.inflation >= setting.n:
        why = "no variance inflation below n is known for this model"
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    if why := setting.undeclared():
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    parameters, beta = setting.parameters, setting.beta
    assert setting.queries is not None
    scale = parameters.noise_scale
    threshold, grid = parameters.threshold / scale, (parameters.grid or 0.0) / scale
    error = scale * setting.law.quantile(beta / 2, threshold, grid) + setting.slack
    nats = max_information(setting.model, setting.epsilon, beta / 4) * math.log(2.0)
    exponent = nats + math.log(8.0 * setting.queries / beta)
    tolerance = error + math.sqrt(setting.inflation * exponent / (2.0 * setting.n))
    return Route.constant(NAME, tolerance, sound=True, assumes=ASSUMES, source=SOURCE)
