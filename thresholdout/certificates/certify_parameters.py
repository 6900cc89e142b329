"""`certify_parameters`: what the answers of any mechanism are worth."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from thresholdout.certificates.certificate import Certificate, certify
from thresholdout.certificates.expected_session import guard_width
from thresholdout.certificates.gaussian_certificate import certify_gaussian
from thresholdout.certificates.problem import check_confidence
from thresholdout.certificates.route import ConstantWidth, Route, StatedWidth
from thresholdout.certificates.split_records import splitting_intervals, splitting_routes
from thresholdout.certificates.truth import truth_of
from thresholdout.mechanisms import (
    Claims,
    ClaimsParameters,
    FinalCheck,
    FoldClaimsParameters,
    GaussianParameters,
    Ladder,
    LadderParameters,
    SplittingParameters,
    ThresholdoutParameters,
)
from thresholdout.mechanisms.catalogue import Parameters

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["certify_parameters"]

_CLAIMED = "limits for fixed questions by the dependence; the analyst is a function of the answers and his own coins"

_FOLDED = (
    "folds formed without looking at records, independent groups in one fold each; the analyst is a function of the "
    "answers and his own coins"
)

_USUAL = 100
"""Questions of which the half-width of claims is expected, when their number is not declared."""

_STATED = "a variance inflation for fixed questions; the analyst is a function of the answers and his own coins"


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
        The Ladder states its own intervals: the tolerance is the largest half-width that it can state.
        `Certificate.about` says which truth it is about.

    Examples
    --------
    >>> from graphs import Independent
    >>> certificate = certify_parameters(Independent(10_000), SplittingParameters(10))
    >>> certificate.route, round(certificate.tolerance, 3)
    ('splitting', 0.055)
    """
    match parameters:
        case ClaimsParameters():
            return _claims(model, parameters, min(check_confidence(confidence), parameters.confidence))
        case FoldClaimsParameters():
            return _fold_claims(model, parameters, min(check_confidence(confidence), parameters.confidence))
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
        case LadderParameters():
            return _ladder(model, parameters, min(check_confidence(confidence), parameters.confidence))


def _claims(model: DependenceModel, parameters: ClaimsParameters, confidence: float) -> Certificate:
    """Certify claims: every answer comes with its own interval, and all of them hold together."""
    from graphs.models.out_of_fold import OutOfFold

    needed, effective = model.variance_inflation(), model.effective_records()
    why = ""
    if isinstance(model, OutOfFold):
        why = "truths of out-of-fold averages are functions of the records, and every claim about them has to be paid"
    elif parameters.effective is not None and (effective is None or effective < parameters.effective):
        has = "none" if effective is None else f"{effective:.3g}"
        why = f"the mechanism was given {parameters.effective:.3g} effective records, and the model has {has}"
    elif parameters.inflation < needed:
        why = f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    return _with_intervals(model, parameters, confidence, "claims", _CLAIMED, "The risk that is left", why)


def _fold_claims(model: DependenceModel, parameters: FoldClaimsParameters, confidence: float) -> Certificate:
    """Certify claims about out-of-fold averages, by the numbers that the mechanism was given."""
    from graphs.models.out_of_fold import OutOfFold

    why = ""
    if not isinstance(model, OutOfFold):
        why = "it is for averages of out-of-fold values"
    elif model.claim_records() < parameters.effective:
        why = (
            f"the mechanism was given {parameters.effective:.3g} records, and the model has {model.claim_records():.3g}"
        )
    elif parameters.inflation < (needed := model.variance_inflation()):
        why = f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    return _with_intervals(model, parameters, confidence, "fold claims", _FOLDED, "K-fold cross-validation", why)


def _with_intervals(
    model: DependenceModel,
    parameters: ClaimsParameters | FoldClaimsParameters,
    confidence: float,
    name: str,
    assumes: str,
    section: str,
    why: str,
) -> Certificate:
    """Return the certificate of a mechanism whose answers come with their own intervals, or why it does not apply."""
    source = f"PROOFS.md, {section!r}"
    widths: ConstantWidth = ConstantWidth(1.0)
    if isinstance(parameters, ClaimsParameters):
        widths = StatedWidth(1.0, partial(guard_width, parameters, model.n, parameters.queries or _USUAL))
    route = Route(name, 1.0, True, assumes, source, widths=widths)
    if why:
        route = Route.missing(name, why, sound=True, assumes=assumes, source=source)
    compared = (route, *splitting_routes(model, parameters.queries, 1.0 - confidence))
    chosen = route if route.eligible else None
    final, epsilon = None, None
    if isinstance(parameters, ClaimsParameters) and chosen is not None:
        final = FinalCheck(parameters, model.n) if parameters.final_check else None
        epsilon = None if parameters.private is None else Claims(parameters, model.n).epsilon(model.n)
    return Certificate(confidence, compared, chosen, model.describe(), truth_of(model, parameters), final, epsilon)


def _splitting(model: DependenceModel, parameters: SplittingParameters, confidence: float) -> Certificate:
    """Certify parts of the holdout; the baseline is the guard itself here."""
    route, binary = splitting_routes(model, parameters.queries, 1.0 - confidence)
    widths = splitting_intervals(model, parameters.queries, 1.0 - confidence)
    if route.applies and widths is not None:
        route = dataclasses.replace(route, tolerance=widths.width, guards=True, widths=widths)
    chosen = route if route.eligible else None
    return Certificate(confidence, (route, binary), chosen, model.describe(), truth_of(model, parameters))


def _ladder(model: DependenceModel, parameters: LadderParameters, confidence: float) -> Certificate:
    """Certify the Ladder, which states the interval of each answer by its own confidence and limits."""
    ladder, source = Ladder(parameters, model.n), "PROOFS.md, 'Ladder'"
    tolerance = ladder.tolerance()
    route = Route(Ladder.name, tolerance, True, _STATED, source, widths=StatedWidth(tolerance, ladder.expected))
    why = _other_ladder(model, parameters)
    if why:
        route = Route.missing(Ladder.name, why, sound=True, assumes=_STATED, source=source)
    compared = (route, *splitting_routes(model, parameters.queries, 1.0 - confidence))
    chosen = route if route.eligible else None
    return Certificate(confidence, compared, chosen, model.describe(), truth_of(model, parameters))


def _other_ladder(model: DependenceModel, parameters: LadderParameters) -> str:
    """Return why a ladder was made for another model; empty where it was not."""
    from graphs.models.out_of_fold import OutOfFold

    if parameters.inflation < (needed := model.variance_inflation()):
        return f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    if isinstance(model, OutOfFold) and not parameters.random_truths:
        return "truths of out-of-fold averages are functions of the records, and every claim about them has to be paid"
    effective = model.effective_records()
    if parameters.effective is not None and (effective is None or effective < parameters.effective):
        has = "none" if effective is None else f"{effective:.3g}"
        return f"the mechanism was given {parameters.effective:.3g} effective records, and the model has {has}"
    if parameters.independent and effective != model.n:
        return "the mechanism was made for independent records"
    return ""
