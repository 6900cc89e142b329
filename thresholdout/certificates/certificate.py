"""`certify`: every route to a tolerance, and the best of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.certificates.drift_bound import drift_bound
from thresholdout.certificates.posterior import posterior
from thresholdout.certificates.problem import PUBLISHED_RATIOS, Setting, bayesian_epsilon, within_limits
from thresholdout.certificates.published_tolerances import published
from thresholdout.certificates.route import Route, states
from thresholdout.certificates.transcript import transcript
from thresholdout.errors import InputError
from thresholdout.limits.rounded_intervals import interval_around
from thresholdout.mechanisms import FinalCheck, NoiseRatios, SparseVectorParameters

if TYPE_CHECKING:
    import pandas as pd

    from graphs import DependenceModel
    from graphs.fitted_limits import FittedLimits
    from thresholdout.certificates.prior_queries import PriorQueries
    from thresholdout.mechanisms.kind import Parameters

__all__ = ["Certificate", "Estimand", "certify", "estimand_of"]


@dataclass(frozen=True, slots=True)
class Estimand:
    """The estimand of the answers, in a few words, and in a sentence after "the truth is"."""

    short: str
    sentence: str

    def given_features(self) -> Estimand:
        """Return the same estimand, given the features of all records."""
        known = _KNOWN.replace("given", "given the features of all of them and")
        sentence = self.sentence.replace(_KNOWN, known)
        sentence = sentence.replace(_POPULATION, "nothing is said about records with other features")
        return Estimand(f"{self.short}, given their features", sentence)


_KNOWN = "given all that was known before the first query"
_POPULATION = "the mean of the population, if all records have one law"
_EXPECTED = f"of the expected value of a query, {_KNOWN}"
_ALL = Estimand(
    "the average over all records",
    f"the average over all records of the holdout {_EXPECTED}; {_POPULATION}",
)
_FOLDS = Estimand(
    "the average over all records of the models that were fitted",
    "the average over all records of the expected value under the model that was fitted without the record's fold, "
    "given the other folds; it is about these models, and not about one that is fitted to all records",
)


def estimand_of(model: DependenceModel, parameters: Parameters) -> Estimand:
    """Return the estimand of the answers of a mechanism."""
    from graphs import Given
    from graphs.models.out_of_fold import OutOfFold

    plain = _FOLDS if isinstance(model, OutOfFold) else _ALL
    if isinstance(model, Given) and model.condition_beyond:
        plain = Estimand(plain.short, plain.sentence.replace(_KNOWN, f"{_KNOWN} and {model.condition_beyond}"))
    direction = parameters.best_direction
    if direction is None:
        return plain
    best = "largest" if direction == "maximize" else "smallest"
    return Estimand(
        f"the best truth so far, {plain.short}",
        f"the {best} one of all queries until then, and not that of the query just asked; for one query it is "
        f"{plain.sentence}",
    )


_INSTEAD: Final = (
    "Without SparseVector, mechanism='claims' makes claims, which state intervals of their own "
    "wherever the dependence bounds how far a mean deviates"
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Guarantee for the answers of one guard: how wide they can be, and on which assumptions.

    With probability at least ``confidence``, over the records, the noise and the analyst, every answer is within its
    half-width of its estimand, for all answers at once. `about` names the estimand, the quantity that answers estimate.
    If `approximation` is not empty, this holds approximately and nothing is guaranteed. ``guard.certificate`` is the
    certificate of a guard, and `certify` computes one from the parameters of Algorithm 1. A *route* is one theorem that
    gives half-widths, with its own assumptions. Print ``certificate.statement`` for a summary in words.

    Attributes
    ----------
    confidence : float
        Probability with which all half-widths hold at once.
    compared : tuple of Route
        All routes that were compared, also those that do not apply.
    chosen : Route or None
        The route on which the certificate rests; ``None`` if no route gives a bound.
    records : str
        The records and their declared dependence, in words.
    estimand : Estimand
        The estimand of the answers.
    final : FinalCheck or None
        For a guard with ``final_check=True``: ``certificate.final.half_width(score)`` is the half-width of its final
        check if every earlier interval is accepted at once. ``None`` for other guards.
    limits : FittedLimits or None
        Confidence limits of a fitted dependence model; their failure is part of the probability of error. ``None`` if
        the model was not fitted.
    prior_queries : PriorQueries or None
        Scores of these records from before the guard was made, which make the answers wider.
    epsilon : float or None
        Privacy loss of all answers together if one record is replaced, in nats; ``None`` if the mechanism does not
        bound it. Infinite after a failed query.
    bayesian_epsilon : float or None
        Bayesian privacy loss of one record through all answers, with all records that depend on it, against an attacker
        who knows any other records, under the declared dependence.
    approximation : str
        The approximation of the intervals, in words. Empty if they are guaranteed.

    Examples
    --------
    >>> from graphs import Independent
    >>> certificate = certify(Independent(10_000), threshold=0.04, noise_scale=0.0025, budget=1, queries=1000)
    >>> certificate.route, round(certificate.tolerance, 3)
    ('posterior', 0.081)
    >>> certificate.half_width(1, 0, "train") <= certificate.tolerance
    True
    >>> certificate.about[:46]
    'the average over all records of the holdout of'
    """

    confidence: float
    compared: tuple[Route, ...]
    chosen: Route | None
    records: str
    estimand: Estimand
    final: FinalCheck | None = None
    epsilon: float | None = None
    limits: FittedLimits | None = None
    prior_queries: PriorQueries | None = None
    bayesian_epsilon: float | None = None
    approximation: str = ""

    @property
    def about(self) -> str:
        """The estimand of the answers in words, to be read after "the truth is"."""
        return self.estimand.sentence

    @property
    def tolerance(self) -> float:
        """Largest half-width of any answer, in units of the range; ``inf`` if there is none."""
        return math.inf if self.chosen is None else self.chosen.tolerance

    @property
    def route(self) -> str:
        """Name of the route on which the certificate rests, or ``"none"``."""
        return "none" if self.chosen is None else self.chosen.name

    @property
    def row(self) -> str:
        """Row of docs/hypotheses.md about the route on which the certificate rests, or ``"none"``."""
        return "none" if self.chosen is None else self.chosen.row

    @property
    def states_intervals(self) -> bool:
        """Whether each answer comes with an interval of its own, whose width is known only with the answer."""
        return self.route in ("claims", "fold claims", "normal limits")

    @property
    def routes(self) -> pd.DataFrame:
        """Data frame with one row per route: tolerance, applies, assumes, why_not, source, row, sound, chosen."""
        import pandas as pd

        # pandas drops the middle columns on a narrow screen: they are the long texts
        columns = ["tolerance", "applies", "assumes", "why_not", "source", "row", "sound"]
        rows = [[getattr(route, column) for column in columns] for route in self.compared]
        index = pd.Index([route.name for route in self.compared], name="route")
        table = pd.DataFrame(rows, columns=columns, index=index)
        table["chosen"] = table.index == self.route
        return table

    @property
    def _by_hand(self) -> bool:
        """Whether it is about Algorithm 1."""
        return any(route.name == "posterior" for route in self.compared)

    @property
    def statement(self) -> str:
        """The certificate in words: assumptions, half-widths and the theorem behind them."""
        if self.chosen is None:
            reasons = "; ".join(f"{route.name}: {route.why_not}" for route in self.compared)
            instead = f" {_INSTEAD}." if self._by_hand else ""
            nothing = f"Nothing is certified about the answers. {reasons}.{instead} Their truth would be {self.about}."
            return f"{self._privacy}{nothing}"
        if self.states_intervals:
            promise = "each answer's own interval contains the truth, for all answers at once"
        else:
            size = (
                f"at most {shown_above(self.tolerance)} of the range"
                if self.tolerance < math.inf
                else "which grows with the queries and with the answers from the holdout so far"
            )
            trivial = (
                f" (which any answer in the range is; {_INSTEAD[:-1]})" if 1.0 <= self.tolerance < math.inf else ""
            )
            promise = f"all answers at once are within their half-width of the truth, {size}{trivial}"
        if self.final is not None:
            width = self.final.half_width(0.9)
            promise += (
                f"; if every claim is confirmed, {shown_below(self.final.share, 2)} of the error budget is left for "
                f"a final check, which then has a half-width of {shown_above(width, 2)} at a score of 0.9 (after other "
                "answers, guard.status.final_half_width)"
            )
        if self.limits is not None:
            promise += f", {self.limits.words}"
        if self.prior_queries is not None:
            promise += f". Before the guard was made, {self.prior_queries.words}, which is paid for"
            promise += " (PROOFS.md, 'Prior queries')"
        likely = f"With probability at least {self.confidence:g}"
        if self.approximation:
            likely = f"Approximate, not guaranteed ({self.approximation}): with probability about {self.confidence:g}"
        return self._privacy + (
            f"{likely}, {promise}. The truth is {self.about}. Declared: "
            f"{self.records}. Route: {self.route} ({self.chosen.source}). It assumes: {self.chosen.assumes}. What "
            f"enforces each hypothesis: docs/hypotheses.md, row {self.row}."
        )

    @property
    def _privacy(self) -> str:
        if self.epsilon is None:
            return ""
        if self.epsilon == math.inf:
            return "The answers are not private any more: a query has failed on the holdout. "
        lemma, row = ("P3", "posterior") if self._by_hand else ("P6", "claims")
        found = f"differentially private under replacing one record, with epsilon {shown_above(self.epsilon)}"
        if self.bayesian_epsilon is not None and self.bayesian_epsilon > self.epsilon:
            dependants = shown_above(self.bayesian_epsilon)
            found += f", and Bayesian differentially private with epsilon {dependants} under the declared dependence"
        return (
            f"All answers together are {found} (PROOFS.md, 'Privacy of the interaction', {lemma}; docs/hypotheses.md, "
            f"row {row}). "
        )

    def charged(self, model: DependenceModel, confidence: float, needed: float) -> Certificate:
        """Return the certificate with the limits of a fitted model charged to the probability of error.

        Parameters
        ----------
        model : graphs.DependenceModel
            The fitted model, before its limits were assumed.
        confidence : float
            Declared probability with which all intervals hold at once.
        needed : float
            Confidence that is needed beside the limits, the second result of `within_limits` for the model.

        Returns
        -------
        Certificate
            A certificate with the declared confidence and the limits, or this one if the model was not fitted.
        """
        if model.fitted_limits is None:
            return self
        if self.confidence < needed:  # the parameters themselves state less
            confidence = max(0.0, math.nextafter(self.confidence - model.fit_failure, -math.inf))
        return replace(self, confidence=confidence, limits=model.fitted_limits)

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the half-width of one answer, by the route on which the certificate rests.

        Parameters
        ----------
        query : int
            Number of the query, from 1.
        hits : int
            Number of answers from the holdout before it.
        source : {"train", "holdout"}
            Source of the answer: the training value, or the holdout.

        Returns
        -------
        float
            Half-width in units of the range, at most 1 since answer and estimand both lie in the range; ``inf`` if no
            route applies.

        Raises
        ------
        InputError
            If no such answer can exist, for example with ``hits`` not below ``query``.
        """
        if not 0 <= hits < query:
            raise InputError("hits", hits, f"at least 0 and below the number of the query, {query}")
        if self.chosen is None or self.chosen.widths is None:
            return math.inf
        return min(1.0, self.chosen.widths.half_width(query, hits, source))

    def interval(
        self,
        query: int,
        hits: int,
        source: Literal["train", "holdout"],
        value: float,
    ) -> tuple[float, float]:
        """Return the possible values of the estimand given one answer, by the route on which the certificate rests.

        Parameters
        ----------
        query : int
            Number of the query, from 1.
        hits : int
            Number of answers from the holdout before it.
        source : {"train", "holdout"}
            Source of the answer: the training value, or the holdout.
        value : float
            The answer, in units of the range, in [0, 1].

        Returns
        -------
        low, high : float
            Ends of the interval in units of the range, within [0, 1] and within the half-width of the value, rounded
            conservatively. The interval is not symmetric about the value. All intervals hold at once with the
            certificate's confidence.

        Raises
        ------
        InputError
            If no such answer can exist, for example with ``hits`` not below ``query``, or if the value is out of range.

        Examples
        --------
        >>> from graphs import Independent
        >>> certificate = certify(Independent(10_000), threshold=0.04, noise_scale=0.0025, budget=1, queries=1000)
        >>> [round(end, 3) for end in certificate.interval(1, 0, "holdout", 0.97)]
        [0.904, 1.0]
        """
        if not 0.0 <= value <= 1.0:
            raise InputError("value", value, "a number in [0, 1], in units of the range")
        width = self.half_width(query, hits, source)
        widths = None if self.chosen is None else self.chosen.widths
        if states(widths):
            low, high = widths.interval(value)
            return max(0.0, math.nextafter(low, -math.inf)), min(1.0, math.nextafter(high, math.inf))
        return interval_around(value, width, 0.0, 1.0)

    def expected_half_width(self, expected: float) -> float:
        """Return the half-width to expect for answers near a likely value, as opposed to the guaranteed `tolerance`.

        Intervals of scores near 0 or 1 are narrower than the widest ones. This number helps to plan; only the intervals
        of answers are guaranteed.

        Parameters
        ----------
        expected : float
            Likely value of answers, in units of the range, in [0, 1].

        Returns
        -------
        float
            Expected half-width, at most `tolerance`. For Algorithm 1 and the Ladder, it is the larger side of the
            widest interval if every answer had this value. For claims, it is half the length of an interval, on average
            over the declared queries (100 if none are declared), if they go as expected; `thresholdout.plan` compares
            this with other ways. Where a route does not use values, it is the tolerance itself.

        Raises
        ------
        InputError
            If the value is out of range.

        Examples
        --------
        >>> from graphs import Independent
        >>> certificate = certify(Independent(10_000), threshold=0.04, noise_scale=0.0025, budget=1, queries=1000)
        >>> round(certificate.tolerance, 3), round(certificate.expected_half_width(0.97), 3)
        (0.081, 0.066)

        Of a guard it is ``guard.certificate.expected_half_width(0.95)``:

        >>> import numpy as np
        >>> from thresholdout import Thresholdout
        >>> guard = Thresholdout(np.arange(2000), train=np.arange(5000) + 2000, queries=50)
        >>> round(guard.certificate.expected_half_width(0.95), 3)
        0.024
        """
        if not 0.0 <= expected <= 1.0:
            raise InputError("expected", expected, "a number in [0, 1], in units of the range")
        widths = None if self.chosen is None else self.chosen.widths
        return min(self.tolerance, widths.expected(expected)) if states(widths) else self.tolerance

    def __repr__(self) -> str:
        width = "an interval with each answer" if self.states_intervals else f"± {shown_above(self.tolerance, 4)}"
        sure = f"approximate, {self.approximation}" if self.approximation else f"at confidence {self.confidence:g}"
        return f"<Certificate: {width} {sure}, route {self.route}, about {self.estimand.short}>"

    def _repr_html_(self) -> str:
        from thresholdout.notebook.cards import Card, Table

        own, none = self.states_intervals, self.tolerance == math.inf
        found = sorted(self.compared, key=lambda route: route.tolerance)
        rows = [
            (
                route.name,
                "none" if route.tolerance == math.inf else "its own" if own else shown_above(route.tolerance, 4),
                route.why_not or route.assumes,
            )
            for route in found
        ]
        chosen = next((place for place, route in enumerate(found) if route.name == self.route), None)
        table = Table(("route", "half-width", "assumes, or why not"), rows, chosen)
        width = (
            "each answer has its own interval"
            if own
            else "none"
            if none
            else f"at most ± {shown_above(self.tolerance, 4)}"
        )
        confidence = f"about {self.confidence:g}, not guaranteed" if self.approximation else f"{self.confidence:g}"
        facts = [("confidence", confidence), ("width", width), ("about", self.estimand.short)]
        return Card(
            "Approximate intervals" if self.approximation else "Certificate", self.statement, facts, table=table
        ).html


def certify(
    model: DependenceModel,
    *,
    threshold: float,
    noise_scale: float,
    budget: int | None,
    queries: int | None,
    confidence: float = 0.95,
    grid: float | None = None,
    ratios: NoiseRatios = PUBLISHED_RATIOS,
) -> Certificate:
    """Compute the certificate of a guard with Algorithm 1 (`SparseVector`) from its public parameters, without data.

    Use it to compare parameters before a guard is made. For other mechanisms, `thresholdout.plan` gives the half-widths
    to expect, and ``guard.certificate`` the guarantee of a guard.

    Parameters
    ----------
    model : graphs.DependenceModel
        Dependence of the records, given the analyst's knowledge at the start, such as ``graphs.Independent(10_000)``.
    threshold, noise_scale : float
        T, the distance within which a training value passes, and sigma, the scale of the Laplace noise in the
        threshold, in units of a query's range.
    budget : int or None
        B, the limit on answers from the holdout; None for any number.
    queries : int or None
        m, the limit on queries; None for any number. Without both limits the half-widths grow with each round, and the
        tolerance is infinite.
    confidence : float, default 0.95
        Probability with which all half-widths hold at once, in (0, 1).
    grid : float, optional
        Step of the grid to which answers from the holdout are rounded, 1/(K-1) for K possible answers. If None, the
        grid of the noise alone.
    ratios : NoiseRatios, default (1.0, 2.0, 4.0)
        Scales of the noises in threshold, test and answer, in units of sigma.

    Returns
    -------
    Certificate
        The certificate, which rests on the sound route with the smallest `tolerance`. `Certificate.routes` lists all
        routes.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    The route depends on the arguments alone, never on answers. Half-widths of different routes are never mixed. All
    numbers are rounded conservatively.

    Examples
    --------
    >>> from graphs import Independent
    >>> certificate = certify(Independent(10_000), threshold=0.04, noise_scale=0.0025, budget=1, queries=1000)
    >>> certificate.route, round(certificate.tolerance, 3)
    ('posterior', 0.081)
    >>> certificate.routes.loc["published", "why_not"]
    "the threshold is below the 6 sigma ln(4m/beta) that the theorem's choice of T implies"
    """
    parameters = SparseVectorParameters(
        threshold=threshold, noise_scale=noise_scale, budget=budget, queries=queries, grid=grid, ratios=ratios
    )
    assumed, needed = within_limits(model, confidence)
    setting = Setting(assumed, parameters, needed)
    compared = (
        posterior(setting),
        drift_bound(setting),
        transcript(setting),
        published(setting),
    )
    chosen = min((route for route in compared if route.eligible), key=lambda route: route.tolerance, default=None)
    private = None if math.isinf(setting.epsilon) else setting.epsilon
    found = Certificate(
        setting.confidence,
        compared,
        chosen,
        model.describe(),
        estimand_of(model, parameters),
        epsilon=private,
        bayesian_epsilon=None if private is None else bayesian_epsilon(assumed, private),
    )
    return found.charged(model, confidence, needed)
