"""The posterior certificate: any dependence, no concentration inequality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.problem import Setting, leakage
from thresholdout.certificates.route import Route, larger_side
from thresholdout.certificates.routes.log_odds import LogOdds

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["PosteriorWidths", "mean_total_variation", "posterior", "posterior_tolerance", "posterior_widths"]

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
        alpha_i the interaction's leakage about record i to an analyst who knows the model only. Of one answer v,
        `PosteriorWidths` says more: its interval is that of the truths whose log-odds are within the leakage of
        those of a number within the first term of v, at the moment of its release and ever after.

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
    >>> from thresholdout.mechanisms import SparseVectorParameters
    >>> parameters = SparseVectorParameters(0.0275, 0.00146, budget=1, queries=1000)
    >>> round(posterior(Setting(Independent(10_000), parameters, 0.95)).tolerance, 4)
    0.0767
    >>> patients = [record // 5 for record in range(10_000)]
    >>> round(posterior(Setting(Groups(patients), parameters, 0.95)).tolerance, 3)
    0.229
    """
    if why := setting.undeclared():
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    widths = posterior_widths(setting)
    return Route(NAME, widths.width, True, ASSUMES, SOURCE, widths=widths)


@dataclass(frozen=True, slots=True)
class PosteriorWidths:
    """Half-widths and intervals by the posterior certificate.

    Attributes
    ----------
    error : float
        What an answer is off from the analyst's expectation of the holdout's value: ``CVaR_beta(M)`` and rounding.
    width : float
        Half-width of every answer, whatever its value.
    beliefs : LogOdds
        How far expectations can be from the truth.
    epsilon : float
        Differential privacy of the interaction alone, nats.

    Examples
    --------
    >>> widths = PosteriorWidths(0.03, 0.08, LogOdds(np.array([0.2])), 0.2)
    >>> [round(end, 4) for end in widths.interval(0.97)]
    [0.9277, 1.0]
    >>> round(widths.expected(0.97), 4), widths.half_width(1, 0, "holdout")
    (0.0423, 0.08)
    """

    error: float
    width: float
    beliefs: LogOdds
    epsilon: float

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the width."""
        return self.width

    def interval(self, value: float) -> tuple[float, float]:
        """Return the truths that are possible given an answer."""
        low = self.beliefs.lowest(value - self.error)
        high = self.beliefs.highest(value + self.error)
        return max(low, value - self.width), min(high, value + self.width)

    def expected(self, value: float) -> float:
        """Return the larger side of the interval of an answer with this value."""
        return larger_side(value, self.interval(value))


def posterior_widths(setting: Setting) -> PosteriorWidths:
    """Return the half-widths of a guard whose limits are declared."""
    alphas = leakage(setting.model, setting.epsilon, "uninformed")
    variation = mean_total_variation(setting.model, setting.epsilon)
    width = formula_up(posterior_tolerance(setting, variation))
    return PosteriorWidths(formula_up(posterior_tolerance(setting, 0.0)), width, LogOdds(alphas), setting.epsilon)


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
