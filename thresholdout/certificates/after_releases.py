"""Certificates of a guard whose holdout is also evaluated in other private ways.

Such a release is, say, a differentially private model that was trained on the holdout's records, or a table of noisy
counts. Its readers may send the guard better queries about these very records.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from thresholdout.certificates.certificate import Certificate
from thresholdout.certificates.change_of_measure import smallest_nats
from thresholdout.certificates.posterior import (
    ASSUMES,
    PosteriorWidths,
    beside_pure_releases,
    beside_releases_with_a_delta,
    posterior_widths,
)
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.route import ConstantWidth, Route
from thresholdout.certificates.transcript import TranscriptWidths

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["releases_epsilon", "uncovered_release", "with_releases"]

SOURCE = "accounting/RELEASES.md"
ALSO = "; other releases are as private as recorded"
_CLAIMS = "guards with mechanism='claims' or 'ladder' pay for any release from the remaining error budget"


def uncovered_release(event: Event) -> str:
    """Return why no certificate by posteriors covers a release; empty where one may."""
    from thresholdout.privacy.accounting.accountants.accountant import PureAccountant
    from thresholdout.privacy.accounting.events.composed_events import check_event, leaves

    accountant = PureAccountant("replace_one")
    found = check_event(event)
    if accountant.supports(found):
        return ""
    refused = next(leaf for leaf, _ in leaves(found) if not accountant.supports(leaf))
    return f"{refused!r} has a delta, or only Renyi divergences, for which nothing is proved here; {_CLAIMS}"


def releases_epsilon(event: Event) -> float:
    """Return the epsilon of releases at replaced records, ``inf`` with a delta or only Renyi divergences."""
    from thresholdout.privacy.accounting.accountants.accountant import PureAccountant, total_pure_epsilon
    from thresholdout.privacy.accounting.events.composed_events import check_event

    found = check_event(event)
    return math.inf if uncovered_release(found) else total_pure_epsilon(PureAccountant("replace_one").compose(found))


def with_releases(
    certificate: Certificate,
    model: DependenceModel,
    parameters: Parameters,
    releases: Event,
    spare: float = 0.0,
) -> Certificate:
    """Return a guard's certificate for answers from now on, after other releases from its holdout.

    Each release may have been chosen in view of everything released before it. Those of a `Composed` one were recorded
    one after the other.

    It rests on the same route as before. So answers from before the releases, with the half-widths that they had, and
    answers from now on hold together with the same confidence (RELEASES.md, L4). Without that route nothing is
    certified, and its half-widths are infinite.
    """
    epsilon = releases_epsilon(releases)
    if epsilon == 0.0:
        return certificate
    routes = []
    for route in certificate.compared:
        if not route.sound:
            continue
        if parameters.prices_releases and route.applies:
            changed = _claims(route, model, releases)
        elif not route.applies:
            changed = route
        elif isinstance(route.widths, PosteriorWidths):
            changed = _posterior(route, route.widths, model, releases, epsilon, spare)
        elif isinstance(route.widths, TranscriptWidths) and math.isfinite(epsilon) and spare:
            changed = _after_histories(route, model, parameters, epsilon, spare)
        else:
            changed = _lost(route, f"nothing is proved for this route beside other releases; {_CLAIMS}")
        routes.append(changed)
    chosen = next((route for route in routes if route.name == certificate.route and route.eligible), None)
    return dataclasses.replace(certificate, compared=tuple(routes), chosen=chosen)


def _lost(route: Route, why: str) -> Route:
    return Route.missing(route.name, why, sound=route.sound, assumes=route.assumes, source=route.source)


def _claims(route: Route, model: DependenceModel, releases: Event) -> Route:
    """Keep the route: the error budget pays for releases at any time; see `ClaimsMechanism.pay_release`.

    The bound on all half-widths held for the whole error budget. Answers state their present intervals.
    """
    # at a typical error budget; a guard pays the price at its own when it records the release
    if not math.isfinite(smallest_nats(model, releases, releases_epsilon(releases), 0.01)):
        return _lost(route, _too_much(model, releases))
    widths = route.widths
    assert isinstance(widths, ConstantWidth)
    source = "PROOFS.md, V11" if route.name == "fold claims" else "PROOFS.md, B8"
    found = dataclasses.replace(route, assumes=route.assumes + ALSO, source=source)
    return dataclasses.replace(found, tolerance=1.0, widths=dataclasses.replace(widths, width=1.0))


def _too_much(model: DependenceModel, releases: Event) -> str:
    """Return why releases exhaust a guard that makes claims."""
    alone = model.revealed_blocks(0.01).blocks == 1 and model.n > 1
    if not alone or not uncovered_release(releases):
        return "the releases leak too much"
    return (
        "releases with a delta, or only Renyi divergences, are covered where it is known how far dependence reaches "
        f"(groups, windows, dependency graphs, Markov chains, mixing series); here: {model.describe()}"
    )


def _posterior(
    route: Route, widths: PosteriorWidths, model: DependenceModel, releases: Event, epsilon: float, spare: float
) -> Route:
    """Let the analyst's beliefs move by the leakage of interaction and releases together; the noise stays."""
    moved: PosteriorWidths | str
    if math.isfinite(epsilon):
        moved, lemma = beside_pure_releases(widths, model, epsilon), "L1"
    elif not spare or _unaccounted(releases):
        return _lost(route, uncovered_release(releases))
    else:
        moved, lemma = beside_releases_with_a_delta(widths, model, _one_by_one(releases), spare), "L6"
    if isinstance(moved, str):
        return _lost(route, f"the releases {moved}; {_CLAIMS}")
    return dataclasses.replace(
        route, tolerance=moved.width, assumes=route.assumes + ALSO, source=f"{SOURCE}, {lemma}", widths=moved
    )


def _after_histories(route: Route, model: DependenceModel, parameters: Any, epsilon: float, spare: float) -> Route:
    """Certify answers from now on by posteriors, at the probability that is reserved for releases (PROOFS.md, H4).

    Other releases are part of no history, so the count of histories holds for the answers before them only.
    """
    alone = posterior_widths(Setting(model, parameters, math.nextafter(1.0 - spare, 1.0)))
    moved = beside_pure_releases(alone, model, epsilon)
    source = "PROOFS.md, 'Transcript certificate', H4"
    return dataclasses.replace(route, tolerance=moved.width, assumes=ASSUMES + ALSO, source=source, widths=moved)


def _one_by_one(releases: Event) -> tuple[Event, ...]:
    """Return the releases as they were recorded."""
    from thresholdout.privacy.accounting.events.composed_events import Composed

    return releases.events if isinstance(releases, Composed) else (releases,)


def _unaccounted(releases: Event) -> bool:
    """Return whether no accountant knows some release."""
    from thresholdout.privacy.accounting.accountants.calibration import all_accountants, composed_accountants

    return any(
        not composed_accountants(release, "replace_one", all_accountants())[0] for release in _one_by_one(releases)
    )
