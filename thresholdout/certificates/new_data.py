"""`generalization_certificate`: bounds for new data from the privacy of a learner, by every valid route."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graphs.numerics.rounding import formula_up, shown_above
from graphs.structure.revealed_blocks import RevealedBlocks
from thresholdout.certificates.after_releases import releases_epsilon
from thresholdout.certificates.change_of_measure import (
    approximate_nats,
    information_per_record,
    max_information,
    mutual_information_nats,
)
from thresholdout.certificates.posterior import mean_total_variation
from thresholdout.certificates.problem import check_model, within_limits
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.accountant import Accountant
from thresholdout.privacy.accounting.accountants.calibration import all_accountants, composed_accountants
from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, NoFiniteOrderWarning
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.events.composed_events import check_event
from thresholdout.privacy.accounting.events.event_types import Event
from thresholdout.privacy.accounting.generalization_bounds import best_error, on_average_bound
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    import pandas as pd

    from graphs import DependenceModel

__all__ = ["GeneralizationCertificate", "GeneralizationRoute", "generalization_certificate"]

# Epsilons to try, besides those of the events at `_DELTAS`; each gives a valid bound, and the smallest counts.
_AVERAGE = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
_SMALL = (0.001, 0.003, 0.006, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1)  # theorem 1 needs an epsilon below 1/9
_DELTAS = (1e-12, 1e-8, 1e-5, 1e-3)
_GAP = "of the mean value on the records and on new data"
_INDEPENDENT = "independent records"


@dataclass(frozen=True, slots=True)
class GeneralizationRoute:
    """One theorem about the gap between the records that a learner saw and new data.

    `bound` is on the gap's absolute value, for values in [0, 1]: from 1 on it is trivial. Of the two kinds
    "probability" holds with the confidence, and "average" bounds the expected gap.
    """

    name: str
    bound: float
    kind: Literal["probability", "average"]
    about: str
    assumes: str
    source: str
    why_not: str = ""

    @property
    def row(self) -> str:
        """The row of docs/hypotheses.md about the theorems for new data."""
        return "new-data"


@dataclass(frozen=True, slots=True)
class GeneralizationCertificate:
    """Bounds on the advantage of a private learner's output on its own records over new data."""

    n: int
    confidence: float
    compared: tuple[GeneralizationRoute, ...]

    def _best(self, kind: str) -> GeneralizationRoute | None:
        found = [route for route in self.compared if route.kind == kind and math.isfinite(route.bound)]
        return min(found, key=lambda route: route.bound, default=None)

    @property
    def bound(self) -> float:
        """The smallest bound on the gap that holds with probability ``confidence``, two-sided; at most 1."""
        best = self._best("probability")
        return 1.0 if best is None else min(1.0, best.bound)

    @property
    def route(self) -> str:
        """The route of `bound`, "none" without one."""
        best = self._best("probability")
        return "none" if best is None else best.name

    @property
    def average(self) -> float:
        """The smallest bound on the absolute value of the expected gap, at most 1."""
        best = self._best("average")
        return 1.0 if best is None else min(1.0, best.bound)

    @property
    def routes(self) -> pd.DataFrame:
        """Every route, one row each: bound, kind, about, assumes, source, why_not."""
        import pandas as pd

        columns = ["bound", "kind", "about", "assumes", "source", "why_not"]
        rows = [[getattr(route, column) for column in columns] for route in self.compared]
        return pd.DataFrame(rows, columns=columns, index=pd.Index([r.name for r in self.compared], name="route"))

    @property
    def statement(self) -> str:
        """The certificate in words."""
        high = self._best("probability")
        if high is None or self.bound >= 1.0:
            first = f"No bound below 1 holds with probability {self.confidence:g}."
        else:
            first = (
                f"With probability at least {self.confidence:g}, the mean of values in [0, 1] on the {self.n:,} "
                f"records is within {shown_above(self.bound)} of that on new data (route {high.name}; it assumes "
                f"{high.assumes})."
            )
        return f"{first} On average it is within {shown_above(self.average)}."

    def __repr__(self) -> str:
        bound = shown_above(self.bound, 4)
        return f"<GeneralizationCertificate: {bound} at confidence {self.confidence:g}, route {self.route}>"


def generalization_certificate(
    events: Event | Iterable[Event],
    n: int,
    dependence: DependenceModel | None = None,
    confidence: float = 0.95,
) -> GeneralizationCertificate:
    """Bound the gap between the records that a private learner saw and new data, by every valid route.

    The gap is that of one output, chosen by the learner in view of everything it released: the mean over the records
    of a function with values in [0, 1], less its expectation. Proofs: accounting/RELEASES.md, N1 to N6.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import BlackBox
    >>> found = generalization_certificate(BlackBox(0.02), 10_000)
    >>> found.route, round(found.bound, 4), round(found.average, 4)
    ('max-information', 0.0195, 0.005)
    """
    from graphs import Independent

    size = count(n, "n")
    event = check_event(events if not isinstance(events, Iterable) else list(events))
    model = Independent(size) if dependence is None else check_model(dependence)
    if model.n != size:
        raise InputError("dependence", f"a model of {model.n} records", f"a model of n = {size} records")
    failure = model.fit_failure
    model, needed = within_limits(model, confidence)
    beta, independent = 1.0 - needed, isinstance(model, Independent)
    accountants, refused = composed_accountants(event, "replace_one", all_accountants())
    why = "" if independent else "the records are not independent"
    if not accountants:
        why = why or "no accountant knows all events: " + "; ".join(f"{k}: {v}" for k, v in refused.items())
    with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
        compared = (
            _max_information(model, releases_epsilon(event), beta),
            *_mutual_information(event, releases_epsilon(event), size, beta, why),
            _approximate(accountants, size, beta, why),
            _theorem1(accountants, size, beta, why),
            _posterior(model, releases_epsilon(event), failure),
            _on_average(accountants, why),
        )
    return GeneralizationCertificate(size, confidence, compared)


_NOT_PURE = "some event has a delta, or only Renyi divergences"


def _max_information(model: DependenceModel, epsilon: float, beta: float) -> GeneralizationRoute:
    name, assumes, source = "max-information", "a variance inflation below n for fixed functions", "RELEASES.md, N3"
    inflation = model.variance_inflation()
    why = _NOT_PURE if math.isinf(epsilon) else ""
    if model.n > 1 and inflation >= model.n:
        why = "no variance inflation below n is known for this model"
    if why:
        return GeneralizationRoute(name, math.inf, "probability", f"the gap {_GAP}", assumes, source, why)
    nats = max_information(model, epsilon, beta / 2) * math.log(2.0)
    bound = formula_up(math.sqrt(inflation * (nats + math.log(4.0 / beta)) / (2.0 * model.n)))
    return GeneralizationRoute(name, bound, "probability", f"the gap {_GAP}", assumes, source)


def _mutual_information(event: Event, epsilon: float, n: int, beta: float, why: str) -> list[GeneralizationRoute]:
    """Bound the gap by the mutual information between records and release."""
    source = "RELEASES.md, N4"
    per_record = math.inf if why else information_per_record(event, epsilon)
    if not why and not math.isfinite(per_record):
        why = "no Renyi divergence near order 1 is known for some event"
    high = average = math.inf
    if not why:
        high = formula_up(math.sqrt((math.log(2.0 / beta) + mutual_information_nats(n * per_record, beta)) / (2.0 * n)))
        average = formula_up(math.sqrt(per_record / 2.0))
    gap, expected = f"the gap {_GAP}", f"the expected gap {_GAP}"
    return [
        GeneralizationRoute("mutual information", high, "probability", gap, _INDEPENDENT, source, why),
        GeneralizationRoute("mutual information, on average", average, "average", expected, _INDEPENDENT, source, why),
    ]


def _approximate(accountants: Sequence[Accountant], n: int, beta: float, why: str) -> GeneralizationRoute:
    """Bound the gap by the approximate max-information of a small delta."""
    name, bound = "approximate max-information", math.inf
    if not why:
        nats = approximate_nats(accountants, RevealedBlocks((1,), (n,)), beta)
        bound = formula_up(math.sqrt((math.log(2.0 / beta) + nats) / (2.0 * n)))
        why = "" if math.isfinite(bound) else "no epsilon has a delta that is small enough"
    return GeneralizationRoute(name, bound, "probability", f"the gap {_GAP}", _INDEPENDENT, "RELEASES.md, N6", why)


def _theorem1(accountants: Sequence[Accountant], n: int, beta: float, why: str) -> GeneralizationRoute:
    name, source = "theorem 1", "RELEASES.md, N5; after [He, Theorem 1]"
    assumes, best = "independent records of one law", math.inf
    if not why:
        for epsilon in _candidates(accountants, _SMALL):
            delta = _delta(accountants, epsilon)
            error = None if delta >= 1 else best_error(epsilon, delta, n, beta)
            best = best if error is None else min(best, error)
        why = "" if math.isfinite(best) else "epsilon is not below 1/9, or its delta too large, or n too small"
    return GeneralizationRoute(name, formula_up(best), "probability", f"the gap {_GAP}", assumes, source, why)


def _on_average(accountants: Sequence[Accountant], why: str) -> GeneralizationRoute:
    best = math.inf
    if not why:
        for epsilon in _candidates(accountants, _AVERAGE):
            delta = _delta(accountants, epsilon)
            best = best if delta >= 1 else min(best, on_average_bound(epsilon, delta, rule="tight"))
        why = "" if math.isfinite(best) else "no epsilon has a delta below 1"
    return GeneralizationRoute(
        "on average", formula_up(best), "average", f"the expected gap {_GAP}", _INDEPENDENT, "RELEASES.md, N1", why
    )


def _posterior(model: DependenceModel, epsilon: float, failure: float) -> GeneralizationRoute:
    about = "the gap of what is expected on the records, given what was released, and on new data; for every release"
    why = _NOT_PURE if math.isinf(epsilon) else ""
    # where the limits of a fitted model fail, the gap is at most 1
    bound = math.inf if why else formula_up(mean_total_variation(model, epsilon) + failure)
    return GeneralizationRoute("posterior", bound, "average", about, "the declared dependence", "RELEASES.md, N2", why)


def _candidates(accountants: Sequence[Accountant], usual: tuple[float, ...]) -> list[float]:
    """Return the epsilons to try: the usual ones, and those that the events have at some deltas."""
    smallest = min(usual)
    own = [accountant.epsilon(delta) for accountant in accountants for delta in _DELTAS]
    return sorted({*usual, *(epsilon for epsilon in own if smallest < epsilon <= max(usual))})


def _delta(accountants: Sequence[Accountant], epsilon: float) -> float:
    return min((accountant.delta(epsilon) for accountant in accountants), default=1.0)
