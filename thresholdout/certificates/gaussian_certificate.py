"""`certify_gaussian`: what the answers of a Gaussian guard are worth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from thresholdout.certificates.certificate import Certificate
from thresholdout.certificates.gaussian.chosen_widths import scheduled_widths, widths_of
from thresholdout.certificates.gaussian.deviations import GaussianWidths, NoiseRuns
from thresholdout.certificates.gaussian.expected_width import scheduled_for
from thresholdout.certificates.problem import within_limits
from thresholdout.certificates.route import Route
from thresholdout.certificates.routes.latent_groups import best_blocks
from thresholdout.certificates.split_records import splitting_routes
from thresholdout.certificates.truth import truth_of
from thresholdout.errors import InputError
from thresholdout.mechanisms import GaussianGuard, GaussianParameters

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["certify_gaussian", "gaussian_route", "with_shares"]

NAME = "gaussian"
SOURCE = "PROOFS.md, 'Gaussian answers' and 'Gaussian answers and entropy'"
LATENT_SOURCE = "PROOFS.md, 'Latent groups'"
ASSUMES = "independent records or groups, declared or given unseen redraws; questions are means of per-record values"

_USUAL = 1000  # answers for which latent groups are picked when their number is not declared


def certify_gaussian(model: DependenceModel, parameters: GaussianParameters, confidence: float = 0.95) -> Certificate:
    """Say what the answers of a Gaussian guard with these public parameters are worth.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other, given what the analyst knows at the start.
    parameters : GaussianParameters
        Noise schedule, number of questions, threshold and answer grid.
    confidence : float
        Probability with which all half-widths hold at once, in (0, 1).

    Returns
    -------
    Certificate
        Resting on `gaussian_route`; the baseline of splitting is listed beside it.

    Examples
    --------
    >>> from graphs import Independent
    >>> certificate = certify_gaussian(Independent(10_000), GaussianParameters(0.018, queries=100))
    >>> certificate.route, round(certificate.tolerance, 3)
    ('gaussian', 0.097)
    """
    assumed, needed = within_limits(model, confidence)
    beta = 1.0 - needed
    route = gaussian_route(assumed, parameters, beta)
    compared = (route, *splitting_routes(assumed, parameters.queries, beta))
    chosen = route if route.eligible else None
    found = Certificate(needed, compared, chosen, model.describe(), truth_of(model, parameters))
    return found.charged(model, confidence, needed)


def gaussian_route(model: DependenceModel, parameters: GaussianParameters, beta: float) -> Route:
    """Certify a Gaussian guard by the information that its answers give away.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    parameters : GaussianParameters
        Noise schedule, number of questions, threshold and answer grid.
    beta : float
        Probability of failure, in (0, 1).

    Returns
    -------
    Route
        With `GaussianWidths` as half-widths: they grow with the number of the question, whether it was answered by the
        train value or not; intervals of answers near 0 or 1 are narrower. Without a declared number of questions
        they grow for ever, and the tolerance is infinite.

    Examples
    --------
    >>> from graphs import Independent, MovingWindow
    >>> parameters = GaussianParameters(0.02, threshold=0.05)
    >>> route = gaussian_route(Independent(10_000), parameters, 0.05)
    >>> route.tolerance, round(route.widths.half_width(100, 20, "holdout"), 3)
    (inf, 0.125)
    >>> gaussian_route(MovingWindow(100, 3), parameters, 0.05).why_not
    'the records form no independent groups, declared or given unseen redraws'
    """
    declared = parameters.queries is not None
    answers = parameters.queries if parameters.queries is not None else _USUAL
    blocks = best_blocks(model, answers, beta)
    if blocks is None:
        why = "the records form no independent groups, declared or given unseen redraws"
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    slack = GaussianGuard(parameters).noise_slack(model.n) + (parameters.grid or 0.0) / 2.0
    threshold, expected = parameters.threshold or 0.0, parameters.expected
    runs = NoiseRuns.of(parameters.schedule.scales(answers))
    if parameters.shares is not None:
        _check_number(parameters)
        widths = widths_of(blocks, runs, beta, parameters.shares, slack=slack, threshold=threshold, declared=declared)
    elif expected is not None and declared and not blocks.exception:
        widths = scheduled_for(blocks, runs, beta, expected, slack=slack, threshold=threshold)
    else:
        widths = scheduled_widths(blocks, runs, beta, slack=slack, threshold=threshold, declared=declared)
    tolerance = widths.tolerance()
    why = "" if declared else "no limit is declared for queries"
    if declared and math.isinf(tolerance):
        why = "so many answers with so little noise give away too much"
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    source = LATENT_SOURCE if blocks.exception else SOURCE
    return Route(NAME, tolerance, True, ASSUMES, source, why, widths=widths)


def with_shares(model: DependenceModel, parameters: GaussianParameters, confidence: float) -> GaussianParameters:
    """Return the parameters with the events on which a certificate of theirs rests, for a guard to keep.

    Where there is no certificate, or there are such events already, nothing is changed.

    Examples
    --------
    >>> from graphs import Independent
    >>> kept = with_shares(Independent(10_000), GaussianParameters(0.02, 100), 0.95)
    >>> [round(number, 2) for number in kept.shares]
    [0.75, 1.18]
    """
    if parameters.shares is not None:
        return parameters
    assumed, needed = within_limits(model, confidence)
    widths = gaussian_route(assumed, parameters, 1.0 - needed).widths
    return replace(parameters, shares=widths.shares) if isinstance(widths, GaussianWidths) else parameters


def _check_number(parameters: GaussianParameters) -> None:
    """Refuse events for any number of answers where it is declared."""
    if parameters.queries is not None and len(parameters.shares or ()) != 2:
        raise InputError("shares", repr(parameters.shares), "a share and one b, where the questions are declared")
