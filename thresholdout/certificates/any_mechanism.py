"""`certify_parameters`: what the answers of any mechanism are worth."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from thresholdout.certificates.certificate import Certificate, certify
from thresholdout.certificates.gaussian_route import certify_gaussian
from thresholdout.certificates.route import ConstantWidth, Route, up
from thresholdout.certificates.setting import check_confidence
from thresholdout.certificates.splitting import splitting_routes
from thresholdout.mechanisms import (
    GaussianParameters,
    GuessAndCheckParameters,
    LadderParameters,
    SplittingParameters,
    ThresholdoutParameters,
)
from thresholdout.mechanisms.catalogue import Parameters
from thresholdout.queries import record_rounding

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["certify_parameters"]


@dataclass(frozen=True, slots=True)
class _Stated:
    """Half-widths that come with each answer, because they depend on how the checks went."""

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return ``inf``: the mechanism states a smaller one itself."""
        return math.inf


def certify_parameters(model: DependenceModel, parameters: Parameters, confidence: float = 0.95) -> Certificate:
    """Say what the answers of a guard with any mechanism are worth.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other, given what the analyst knows at the start.
    parameters
        Public parameters of a mechanism; their class says which.
    confidence : float
        Probability with which all half-widths hold at once, in (0, 1).

    Returns
    -------
    Certificate
        For guess and check its tolerance is the declared one; for the Ladder every answer states its own half-width,
        and the tolerance is infinite.

    Examples
    --------
    >>> from graphs import Independent
    >>> certificate = certify_parameters(Independent(10_000), SplittingParameters(10))
    >>> certificate.route, round(certificate.tolerance, 3)
    ('splitting', 0.055)
    """
    match parameters:
        case ThresholdoutParameters():
            return certify(
                model,
                threshold=parameters.threshold,
                noise_scale=parameters.noise_scale,
                budget=parameters.budget,
                queries=parameters.queries,
                confidence=confidence,
                grid=parameters.grid,
                ratios=parameters.ratios,
            )
        case GaussianParameters():
            return certify_gaussian(model, parameters, confidence)
        case SplittingParameters():
            return _splitting(model, parameters, check_confidence(confidence))
        case GuessAndCheckParameters() | LadderParameters():
            return _stated(model, parameters, check_confidence(confidence))


def _splitting(model: DependenceModel, parameters: SplittingParameters, confidence: float) -> Certificate:
    """Certify parts of the holdout; the baseline is the guard itself here."""
    route, binary = splitting_routes(model, parameters.queries, 1.0 - confidence)
    if route.applies:
        width = up(route.tolerance + record_rounding(model.n) + 2.0**-52)
        route = dataclasses.replace(route, tolerance=width, guards=True, widths=ConstantWidth(width))
    return Certificate(confidence, (route, binary), route if route.eligible else None, model.describe())


def _stated(
    model: DependenceModel, parameters: GuessAndCheckParameters | LadderParameters, confidence: float
) -> Certificate:
    """Certify a mechanism that states the half-width of each answer."""
    assumes = "a variance inflation for fixed questions; the analyst is a function of the answers and his own coins"
    if isinstance(parameters, LadderParameters):
        why = "each answer states its own half-width, about the best question so far"
        route = Route("ladder", math.inf, True, assumes, "PROOFS.md, 'Ladder'", why, widths=_Stated())
    else:
        source = "PROOFS.md, 'Guess and check'"
        route = Route("guess-and-check", parameters.tolerance, True, assumes, source, widths=_Stated())
    baselines = splitting_routes(model, parameters.queries, 1.0 - confidence)
    return Certificate(confidence, (route, *baselines), route, model.describe())
