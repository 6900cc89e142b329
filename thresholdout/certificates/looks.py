"""What the answers of a guard are still worth when its holdout is also looked at in other private ways.

Such a look is, say, the training of a differentially private model on the holdout's records, or a table of noisy
counts. Whoever saw what it released may ask the guard better questions about these very records.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from thresholdout.certificates.certificate import Certificate
from thresholdout.certificates.change_of_measure import smallest_nats
from thresholdout.certificates.log_odds import LogOdds
from thresholdout.certificates.posterior import PosteriorWidths, mean_total_variation
from thresholdout.certificates.route import Route, up
from thresholdout.certificates.setting import Setting, leakage
from thresholdout.certificates.transcript import AnytimeWidths, DeclaredWidths, Radius
from thresholdout.mechanisms import ThresholdoutParameters

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.accounting.events import Event
    from thresholdout.mechanisms.catalogue import Parameters

__all__ = ["WidenedRadius", "pure_looks", "uncovered_look", "with_looks"]

SOURCE = "accounting/LOOKS.md"
ALSO = "; other looks are as private as recorded"
FIRST = ", and those before the first question were decided on together, before any of them released something"


@dataclass(frozen=True, slots=True)
class WidenedRadius(Radius):
    """How far the holdout mean of a question can be from the truth, when the question may depend on private looks.

    Parameters
    ----------
    n, inflation, levels, beta, queries, budget
        As in `Radius`.
    leaked : float
        ``sum alpha_i^2`` over the records, alpha_i the leakage of all later looks together to informed analysts.
    nats : float
        By how much all beta_ij are smaller, for what was looked at before the first question.

    Notes
    -----
    ``sqrt(Lambda (k + E + ln 2) / (2n))`` with ``E = ln(2/beta_ij) + nats`` and ``k = A/8 + sqrt(A E/2)`` nats of max-
    information: half of beta_ij is for the looks, the other half for the question (LOOKS.md, L2, L5).

    Examples
    --------
    >>> plain = Radius(10_000, 1.0, 101, 0.025, queries=1000, budget=3)
    >>> widened = WidenedRadius(10_000, 1.0, 101, 0.025, queries=1000, budget=3, leaked=10_000 * 0.01**2)
    >>> round(plain(500, 1), 4), round(widened(500, 1), 4)
    (0.0341, 0.037)
    """

    leaked: float = 0.0
    nats: float = 0.0

    def __call__(self, query: int, hits: int) -> float:
        """Return the radius for round ``query`` after ``hits`` answers from the holdout."""
        exponent = self.exponent(query, hits) + self.nats
        if self.leaked == 0.0:
            return math.sqrt(self.inflation * exponent / (2.0 * self.n))
        nats = self.leaked / 8.0 + math.sqrt(self.leaked * exponent / 2.0)
        return math.sqrt(self.inflation * (nats + exponent + math.log(2.0)) / (2.0 * self.n))


def uncovered_look(event: Event, first: bool = False) -> str:
    """Return why no certificate can take a look into account; empty when one may.

    Parameters
    ----------
    event : Event
        The look.
    first : bool
        Whether it happens before the guard's first question.

    Examples
    --------
    >>> from thresholdout.accounting import BlackBox, GaussianAnswer
    >>> uncovered_look(BlackBox(0.1)), uncovered_look(GaussianAnswer(2.0), first=True)
    ('', '')
    >>> uncovered_look(GaussianAnswer(2.0))
    'looks with a delta, or only Renyi divergences, are covered before the first question only (first=True); ...'
    """
    from thresholdout.accounting.events import check_event, leaves
    from thresholdout.accounting.pure import PureAccountant

    accountant = PureAccountant("replace_one")
    found = check_event(event)
    if first or accountant.supports(found):
        return ""
    refused = next(leaf for leaf, _ in leaves(found) if not accountant.supports(leaf))
    kinds = "looks with a delta, or only Renyi divergences,"
    return f"{kinds} are covered before the first question only (first=True); {refused!r}"


def pure_looks(event: Event) -> float:
    """Return the epsilon of looks at replaced records, ``inf`` when they have a delta or only Renyi divergences.

    Examples
    --------
    >>> from thresholdout.accounting import BlackBox, Composed
    >>> pure_looks(Composed([BlackBox(0.25), BlackBox(0.25, adjacency="add_remove")]))
    0.75
    """
    from thresholdout.accounting.events import check_event
    from thresholdout.accounting.pure import PureAccountant, total_pure_epsilon

    found = check_event(event)
    return math.inf if uncovered_look(found) else total_pure_epsilon(PureAccountant("replace_one").compose(found))


def with_looks(
    certificate: Certificate,
    model: DependenceModel,
    parameters: Parameters,
    looks: Event,
    first: Event | None = None,
) -> Certificate:
    """Say what a guard's answers are worth from now on, when its holdout was looked at in other ways.

    Parameters
    ----------
    certificate : Certificate
        Of the guard, without looks.
    model : graphs.DependenceModel
        How the records depend on each other.
    parameters
        Of the guard's mechanism.
    looks : Event
        Looks after the first question; each may have been chosen in view of everything released before it.
    first : Event, optional
        Looks before the first question, which need not be pure when records are independent.

    Returns
    -------
    Certificate
        It rests on the same route as before, so that answers from before the looks, with the half-widths that they
        had, and answers from now on hold together with the same confidence (LOOKS.md, L4). Without that route it
        says nothing, and its half-widths are infinite.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.accounting import BlackBox
    >>> from thresholdout.certificates.any_mechanism import certify_parameters
    >>> parameters = ThresholdoutParameters(0.0256, 0.000137, budget=1, queries=1000)
    >>> before = certify_parameters(Independent(10_000), parameters)
    >>> after = with_looks(before, Independent(10_000), parameters, BlackBox(0.02))
    >>> before.route, round(before.tolerance, 3), after.route, round(after.tolerance, 3)
    ('transcript', 0.05, 'transcript', 0.056)
    """
    from thresholdout.accounting.events import leaves

    first = None if first is None or not any(True for _ in leaves(first)) else first
    epsilon = pure_looks(looks)
    if epsilon == 0.0 and first is None:
        return certificate
    routes = []
    for route in certificate.compared:
        if not route.guards or not route.sound:
            continue
        if route.name == "claims" and route.applies:
            changed = _claims(route, model, looks, first)
        elif math.isinf(epsilon):
            changed = _lost(route, uncovered_look(looks))
        elif not route.applies:
            changed = route
        elif isinstance(route.widths, (DeclaredWidths, AnytimeWidths)):
            changed = _transcript(route, model, route.widths, epsilon, first)
        elif first is not None and math.isinf(pure_looks(first)):
            changed = _lost(route, "only the transcript route takes looks with a delta into account")
        elif route.name == "posterior" and isinstance(parameters, ThresholdoutParameters):
            total = epsilon if first is None else math.nextafter(epsilon + pure_looks(first), math.inf)
            changed = _posterior(route, Setting(model, parameters, certificate.confidence), total)
        else:
            changed = _lost(route, "nothing is proved for this route beside other looks")
        routes.append(changed)
    chosen = next((route for route in routes if route.name == certificate.route and route.eligible), None)
    return dataclasses.replace(certificate, compared=(*routes, *_baselines(certificate)), chosen=chosen)


def _baselines(certificate: Certificate) -> list[Route]:
    why = "a fresh part for each question is no baseline once the whole holdout was looked at"
    return [_lost(route, why) for route in certificate.compared if not route.guards]


def _lost(route: Route, why: str) -> Route:
    return Route.missing(
        route.name, why, sound=route.sound, assumes=route.assumes, source=route.source, guards=route.guards
    )


def _claims(route: Route, model: DependenceModel, looks: Event, first: Event | None) -> Route:
    """Keep the route: looks are paid from the risk that is left, whenever they happen; see `Claims.look`."""
    for event in (looks, first):
        if event is not None and not math.isfinite(smallest_nats(model, event, pure_looks(event), 0.01)):
            why = "the looks leak too much, or have a delta and records depend on each other"
            return _lost(route, why)
    return dataclasses.replace(route, assumes=route.assumes + ALSO, source="PROOFS.md, B8")


def _transcript(
    route: Route, model: DependenceModel, widths: DeclaredWidths | AnytimeWidths, epsilon: float, first: Event | None
) -> Route:
    """Widen the radius; noise and shares of beta stay what they were."""
    from graphs import Independent

    plain, leaked, nats = widths.radius, 0.0, 0.0
    if epsilon > 0.0:
        alpha = leakage(model, epsilon, "informed")
        leaked = up(float(np.mean(alpha**2)) * model.n)
    if first is not None:
        nats = smallest_nats(model, first, pure_looks(first), plain.beta)
    if not math.isfinite(leaked + nats):
        why = "the looks leak too much"
        if math.isinf(nats) and not isinstance(model, Independent):
            why = "looks with a delta, or only Renyi divergences, are covered for independent records only"
        return _lost(route, why)
    radius = WidenedRadius(
        plain.n, plain.inflation, plain.levels, plain.beta, plain.queries, plain.budget, leaked=leaked, nats=nats
    )
    wider = dataclasses.replace(widths, radius=radius)
    tolerance = wider.tolerance() if isinstance(wider, DeclaredWidths) else math.inf
    return dataclasses.replace(
        route,
        tolerance=tolerance,
        assumes=route.assumes + ALSO + (FIRST if first is not None else ""),
        source=f"{SOURCE}, {'L2' if first is None else 'L5'}",
        widths=wider,
    )


def _posterior(route: Route, setting: Setting, epsilon: float) -> Route:
    """Let the analyst's beliefs move by what the interaction and the looks leak together; the noise stays."""
    assert isinstance(route.widths, PosteriorWidths)
    total = math.nextafter(setting.epsilon + epsilon, math.inf)
    alone, together = mean_total_variation(setting.model, setting.epsilon), mean_total_variation(setting.model, total)
    width = up(route.tolerance + max(0.0, together - alone * (1.0 - 4e-12)))
    beliefs = LogOdds(leakage(setting.model, total, "uninformed"))
    return dataclasses.replace(
        route,
        tolerance=width,
        assumes=route.assumes + ALSO,
        source=f"{SOURCE}, L1",
        widths=PosteriorWidths(route.widths.error, width, beliefs),
    )
