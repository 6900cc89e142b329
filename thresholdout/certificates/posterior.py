"""The posterior certificate: any dependence, no concentration inequality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thresholdout.certificates.route import Route
from thresholdout.certificates.setting import Setting, leakage

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["mean_total_variation", "posterior", "posterior_tolerance"]

NAME = "posterior"
SOURCE = "PROOFS.md, 'Posterior certificate'; after [J20]"
ASSUMES = "questions are means of per-record values; the declared dependence; records unseen by the analyst"


def posterior(setting: Setting) -> Route:
    """Certify by the analyst's posterior about each record.

    Parameters
    ----------
    setting : Setting
        Model, parameters and confidence.

    Returns
    -------
    Route
        Tolerance ``CVaR_beta(M) + (1/n) sum_i tanh(alpha_i/4)``: M the largest error of an answer about the holdout,
        alpha_i the interaction's leakage about record i to an analyst who knows the model only. The same half-width
        for all answers, at the moment of their release and ever after.

    Notes
    -----
    The *mean* over the records counts, so a few that depend on many do no harm. Adaptivity, train values from
    anywhere, and the choice of questions by their answers are all covered. PROOFS.md, "Posterior certificate".

    References
    ----------
    [J20] C. Jung et al., "A new analysis of differential privacy's generalization guarantees", ITCS 2020.

    Examples
    --------
    >>> from graphs import Groups, Independent
    >>> from thresholdout.mechanisms import ThresholdoutParameters
    >>> parameters = ThresholdoutParameters(0.0275, 0.00146, budget=1, queries=1000)
    >>> round(posterior(Setting(Independent(10_000), parameters, 0.95)).tolerance, 4)
    0.0767
    >>> patients = [record // 5 for record in range(10_000)]
    >>> round(posterior(Setting(Groups(patients), parameters, 0.95)).tolerance, 3)
    0.229
    """
    if why := setting.undeclared():
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    tolerance = posterior_tolerance(setting, mean_total_variation(setting.model, setting.epsilon))
    return Route.constant(NAME, tolerance, sound=True, assumes=ASSUMES, source=SOURCE)


def posterior_tolerance(setting: Setting, variation: float) -> float:
    """Return the tolerance, given the second term of the certificate."""
    scale = setting.parameters.noise_scale
    threshold, grid = setting.parameters.threshold / scale, (setting.parameters.grid or 0.0) / scale
    error = scale * setting.law.superquantile(setting.beta, threshold, grid)
    return error + setting.slack + variation


def mean_total_variation(model: DependenceModel, epsilon: float) -> float:
    """Bound how far an analyst's beliefs about a record can move, on average over the records.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    epsilon : float
        Differential privacy of the interaction, nats.

    Returns
    -------
    float
        ``(1/n) sum_i tanh(alpha_i/4)``, in [0, 1]: alpha_i the leakage to an analyst who knows the model only. It
        bounds ``abs(E[q(X) | answers] - q(P))`` for every mean q of values in [0, 1].

    Examples
    --------
    >>> from graphs import Independent
    >>> round(mean_total_variation(Independent(100), 0.1), 5)
    0.02499
    """
    return float(np.mean(np.tanh(leakage(model, epsilon, "uninformed") / 4))) * (1.0 + 1e-12)
