"""Certificates by mutual information between records and answers: one probability of failure, paid once.

A monitor who sees answers and truth picks the worst of the answered questions; how likely its mean over the records is
off is bounded by the information x that the answers give about the records. Independent groups only. The printed forms
of others are here for comparison.

References
----------
[R20] R. Rogers et al., "Guaranteed validity for empirical approaches to adaptive data analysis", AISTATS 2020.
[XR17] A. Xu, M. Raginsky, "Information-theoretic analysis of generalization capability of learning algorithms",
NeurIPS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.best_parameters import best_parameters
from thresholdout.certificates.independent_blocks import IndependentBlocks, blocks_of
from thresholdout.certificates.normal_extremes import largest_normal_quantiles
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.route import Route
from thresholdout.mechanisms import interaction_epsilon

__all__ = [
    "divergence_width",
    "monitor_width",
    "mutual_information",
    "published_information_width",
    "second_moment",
    "worst_question_deviation",
    "worst_question_second_moment",
]

Floats = NDArray[np.float64]

SOURCE = "PROOFS.md, 'Mutual information'"
SECOND_MOMENT_SOURCE = "PROOFS.md, 'Mutual information'; after [R20, Theorem B.9]"
ASSUMES = "independent records or independent groups; questions are means of per-record values"

_SHARES = (1e-3, 1.0 - 1e-3)


def worst_question_deviation(effective: float, information: Floats, failure: Floats) -> Floats:
    """Bound how far the mean of a question chosen by the answers is from the truth.

    Parameters
    ----------
    effective : float
        N: number of records, divided by the variance inflation.
    information : ndarray
        x, nats: an upper bound on the mutual information between records and answers.
    failure : ndarray
        b2, in (0, 1).

    Returns
    -------
    ndarray
        ``sqrt((ln 2 + (x + h(b2))/b2) / (2 N))``, h the binary entropy in nats.

    Examples
    --------
    >>> round(float(worst_question_deviation(10_000, np.array(0.1), np.array(0.025))), 4)
    0.0216
    """
    entropy = -failure * np.log(failure) - (1.0 - failure) * np.log1p(-failure)
    deviation: Floats = np.sqrt((math.log(2.0) + (information + entropy) / failure) / (2.0 * effective))
    return deviation


def worst_question_second_moment(effective: float, information: float) -> float:
    """Bound the mean square of the deviation of a question chosen by the answers.

    Parameters
    ----------
    effective : float
        N.
    information : float
        x, nats.

    Returns
    -------
    float
        ``min over lambda in (0, 1) of (2x - ln(1 - lambda)) / (4 N lambda)``, rounded up.

    Examples
    --------
    >>> worst_question_second_moment(10_000, 0.0) > 1 / (4 * 10_000)
    True
    """

    def cost(log_odds: Floats) -> Floats:
        return _moment(log_odds, np.array(information)) / effective

    return formula_up(best_parameters(cost, [(-30.0, 30.0)], points=41)[1])


def divergence_width(effective: float, answers: int, beta: float) -> float:
    """Half-width of all of k answers with Gaussian noise of one standard deviation, by binary divergence.

    Parameters
    ----------
    effective : float
        N.
    answers : int
        k, declared number of answers.
    beta : float
        Probability of failure, in (0, 1).

    Returns
    -------
    float
        ``sqrt((ln 2 + (x + h(b2))/b2)/(2N)) + s z(k, b1)`` at the best x and ``b1 + b2 = beta``, ``s = sqrt(k/(8Nx))``.

    Examples
    --------
    >>> divergence_width(10_000, 29, 0.05) <= 0.1 < divergence_width(10_000, 30, 0.05)
    True
    """

    def cost(share: Floats, log_information: Floats) -> Floats:
        information = np.exp(log_information)
        scale = _scale(effective, answers, information)
        return worst_question_deviation(effective, information, (1.0 - share) * beta) + scale * (
            largest_normal_quantiles(answers, share * beta)
        )

    return formula_up(best_parameters(cost, [_SHARES, _information_box(effective)], points=17)[1])


def monitor_width(effective: float, answers: int, beta: float) -> float:
    """Half-width of all of k Gaussian answers by concentration of a squared deviation ("RZ", CDP and monitor).

    Parameters
    ----------
    effective, answers, beta
        As in `divergence_width`.

    Returns
    -------
    float
        ``min over x, lambda of sqrt((2x - ln(1-lambda))/(2 N lambda beta)) + s sqrt(2 ln(4k/beta))``, for noise of
        standard deviation ``s = sqrt(k/(8Nx))``: [R20, Theorem 2.1] with the noise for which it holds.

    Examples
    --------
    >>> monitor_width(100_000, 935, 0.05) <= 0.1 < monitor_width(100_000, 936, 0.05)
    True
    """

    def cost(log_odds: Floats, log_information: Floats) -> Floats:
        information = np.exp(log_information)
        deviation = np.sqrt(_moment(log_odds, information) * 2.0 / (effective * beta))
        return deviation + _union_noise(effective, answers, information, beta)

    return formula_up(best_parameters(cost, [(-30.0, 30.0), _information_box(effective)], points=25)[1])


def published_information_width(effective: float, answers: int, beta: float) -> float:
    """Half-width of all of k Gaussian answers by [XR17], with the noise term of `monitor_width`.

    Parameters
    ----------
    effective, answers, beta
        As in `divergence_width`.

    Returns
    -------
    float
        ``min over x of sqrt((2/N)(2x/beta + log2(4/beta))) + s sqrt(2 ln(4k/beta))``.

    Examples
    --------
    >>> published_information_width(100_000, 295, 0.05) <= 0.1 < published_information_width(100_000, 296, 0.05)
    True
    """

    def cost(log_information: Floats) -> Floats:
        information = np.exp(log_information)
        deviation = np.sqrt(2.0 / effective * (2.0 * information / beta + math.log2(4.0 / beta)))
        return deviation + _union_noise(effective, answers, information, beta)

    return formula_up(best_parameters(cost, [_information_box(effective)], points=41)[1])


def mutual_information(setting: Setting) -> Route:
    """Certify by mutual information: ``VaR_{b1}(M)`` and the deviation of the worst question at ``b2``.

    Parameters
    ----------
    setting : Setting
        Model, parameters and confidence; independent records or groups.

    Returns
    -------
    Route
        With ``x = B n Lambda eps_0^2/8`` nats, eps_0 the privacy of one threshold and its answer.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.mechanisms import ThresholdoutParameters
    >>> parameters = ThresholdoutParameters(0.03, 0.002, budget=1, queries=1000)
    >>> round(mutual_information(Setting(Independent(10_000), parameters, 0.95)).tolerance, 3)
    0.184
    """
    return _route(setting, "mutual information", SOURCE, _divergence_tolerance)


def second_moment(setting: Setting) -> Route:
    """Certify by second moments: ``(sqrt(E Z^2) + sqrt(E M^2)) / sqrt(beta)``.

    Parameters
    ----------
    setting : Setting
        Model, parameters and confidence; independent records or groups.

    Returns
    -------
    Route
        Z the deviation of the worst question, M the largest error of an answer.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.mechanisms import ThresholdoutParameters
    >>> parameters = ThresholdoutParameters(0.03, 0.002, budget=1, queries=1000)
    >>> round(second_moment(Setting(Independent(10_000), parameters, 0.95)).tolerance, 3)
    0.281
    """
    return _route(setting, "second moment", SECOND_MOMENT_SOURCE, _moment_tolerance)


def _route(
    setting: Setting, name: str, source: str, tolerance: Callable[[Setting, IndependentBlocks, float], float]
) -> Route:
    blocks = blocks_of(setting.model)
    why = setting.undeclared()
    if blocks is None:
        why = "the records are neither independent nor in independent groups"
    if why or blocks is None:
        return Route.missing(name, why, sound=True, assumes=ASSUMES, source=source)
    single = interaction_epsilon(setting.n, setting.parameters.noise_scale, 1, setting.parameters.ratios)
    assert setting.budget is not None
    information = formula_up(setting.budget * setting.n * blocks.inflation * single**2 / 8.0)
    return Route.constant(name, tolerance(setting, blocks, information), sound=True, assumes=ASSUMES, source=source)


def _divergence_tolerance(setting: Setting, blocks: IndependentBlocks, information: float) -> float:
    scale = setting.parameters.noise_scale
    threshold, grid = setting.parameters.threshold / scale, (setting.parameters.grid or 0.0) / scale

    def width(share: float) -> float:
        error = scale * setting.law.quantile(share * setting.beta, threshold, grid) + setting.slack
        failure = np.array((1.0 - share) * setting.beta)
        return error + float(worst_question_deviation(blocks.effective, np.array(information), failure))

    return min(map(width, np.linspace(0.02, 0.5, 9).tolist()))


def _moment_tolerance(setting: Setting, blocks: IndependentBlocks, information: float) -> float:
    scale = setting.parameters.noise_scale
    threshold, grid = setting.parameters.threshold / scale, (setting.parameters.grid or 0.0) / scale
    error = scale * math.sqrt(setting.law.second_moment(threshold, grid)) + setting.slack
    deviation = math.sqrt(worst_question_second_moment(blocks.effective, information))
    return (deviation + error) / math.sqrt(setting.beta)


def _moment(log_odds: Floats, information: Floats) -> Floats:
    """``(2x - ln(1 - lambda)) / (4 lambda)`` at the lambda with these log-odds."""
    moment: Floats = (2.0 * information + np.logaddexp(0.0, log_odds)) / 4.0 * (1.0 + np.exp(-log_odds))
    return moment


def _scale(effective: float, answers: int, information: Floats) -> Floats:
    scale: Floats = np.sqrt(answers / (8.0 * effective * information))
    return scale


def _union_noise(effective: float, answers: int, information: Floats, beta: float) -> Floats:
    return _scale(effective, answers, information) * math.sqrt(2.0 * math.log(4.0 * answers / beta))


def _information_box(effective: float) -> tuple[float, float]:
    return math.log(1e-6), math.log(2.0 * effective + 1.0)
