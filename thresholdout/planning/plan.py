"""The result of `plan`: ways of evaluation, their half-widths, and a recommendation."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from graphs.numerics.rounding import shown_above
from thresholdout.errors import InputError
from thresholdout.mechanisms.catalogue import parameters_to_json
from thresholdout.mechanisms.kind import Parameters

if TYPE_CHECKING:
    import pandas as pd

    from graphs import DependenceModel
    from thresholdout.certificates import Certificate
    from thresholdout.certificates.prior_queries import PriorQueries
    from thresholdout.planning.leaderboard import Leaderboard

__all__ = ["ALGORITHM_1", "FINAL", "GUARD", "LIST", "Plan", "Way", "WayName"]

WayName = Literal["single", "batch", "adaptive", "Algorithm 1"]

FINAL: Final = "single"
LIST: Final = "batch"
GUARD: Final = "adaptive"
ALGORITHM_1: Final = "Algorithm 1"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to query a holdout, as `Plan.ways` lists them: its half-width, its conditions and the call for it.

    Attributes
    ----------
    name : str
        "single" (one final evaluation), "batch" (a fixed list), "adaptive" (a guard), or "Algorithm 1".
    half_width : float
        Half-width of an answer with the anticipated score, infinite if the way does not apply. For claims and lists it
        is half the length of an interval, on average over the queries; for one evaluation and for Algorithm 1 it is the
        larger side of the widest interval.
    needs : str
        Conditions under which the way applies.
    call : str
        The call that evaluates queries in this way, as text.
    parameters : Parameters or None
        Parameters for a guard's ``mechanism=``; ``None`` if the way has none or does not apply.
    records : int or None
        Number of records of the declared kind that reach the target width. ``None`` if no number does, or if none was
        computed. For a model with a fixed number of records, it assumes the same design effect.
    queries : int or None
        Number of queries within that width for the given records; ``None`` as for ``records``.
    why_not : str
        Reason why the way does not apply to these records. Empty if it applies.
    """

    name: WayName
    half_width: float
    needs: str
    call: str
    parameters: Parameters | None
    records: int | None = None
    queries: int | None = None
    why_not: str = ""

    @property
    def applies(self) -> bool:
        """Whether the way applies to these records."""
        return not self.why_not


@dataclass(frozen=True)
class Plan:
    """Result of `thresholdout.plan`: the recommended way to query a holdout, and the half-widths of all ways.

    A way is one procedure: "single" (one final evaluation), "batch" (a list of queries fixed together), "adaptive" (a
    guard) or "Algorithm 1". Print the plan for the recommendation.

    Attributes
    ----------
    model : graphs.DependenceModel
        The holdout's records and their dependence.
    n_train : float or None
        Number of independent records behind the training values, as passed; ``None`` if not.
    queries : int or None
        Number of queries, as declared or solved for; ``None`` for any number.
    asked : int
        Number of queries to which the half-widths refer: ``queries``, or the first 100 if none are declared.
    anticipated_score : float
        Likely score, in (0, 1), for which the half-widths are computed.
    confidence : float
        Probability with which all intervals hold at once, in (0, 1).
    width : float or None
        Half-width to reach, as passed.
    prior_queries : PriorQueries or None
        Earlier scores of the holdout, with the number of values that each could have had.
    ways : tuple of Way
        All ways, the narrowest first. Each has a `name`, a `half_width`, the `call` that makes it and, if it does not
        apply, the reason in `why_not`.
    recommended : Way
        The recommended way.
    recommendation : str
        The recommendation with its reason, in one sentence.
    warnings : tuple of str
        Obstacles to this plan, each as a sentence.
    division : str
        How to divide the records into training, development and guarded ones before the first query, and the half-width
        of one final check on the guarded ones. Empty for one query, a fixed list, prior queries, an epsilon, and
        records that are neither independent nor in groups.
    leaderboard : Leaderboard or None
        Intervals of a leaderboard with these records, if a number of teams was given.
    epsilon : float or None
        Bound on the privacy loss of one record through all answers together, in nats, as passed.

    Examples
    --------
    >>> from thresholdout import plan
    >>> found = plan(2000, queries=100, anticipated_score=0.95)
    >>> found.asked, found.recommended in found.ways
    (100, True)
    """

    model: DependenceModel
    n_train: float | None
    queries: int | None
    asked: int
    anticipated_score: float
    confidence: float
    width: float | None
    prior_queries: PriorQueries | None
    ways: tuple[Way, ...]
    recommended: Way
    recommendation: str
    warnings: tuple[str, ...]
    division: str = ""
    leaderboard: Leaderboard | None = None
    epsilon: float | None = None

    @property
    def records(self) -> int:
        """Number of records in the holdout, as given or solved for."""
        return self.model.n

    @property
    def half_width(self) -> float:
        """Half-width of the recommended way."""
        return self.recommended.half_width

    @property
    def parameters(self) -> Parameters:
        """Parameters of the recommended way, for ``mechanism=`` of a guard with the same ``confidence=``."""
        assert self.recommended.parameters is not None
        return self.recommended.parameters

    @property
    def budgets(self) -> pd.DataFrame:
        """Data frame of all routes from ``epsilon`` to that of one record; see `graphs.DependenceModel.explain`."""
        if self.epsilon is None:
            raise InputError("epsilon", "nothing", "one to the plan, such as plan(..., epsilon=0.5)")
        return self.model.explain(self.epsilon, confidence=self.confidence)

    @cached_property
    def certificate(self) -> Certificate:
        """Return the `Certificate` of a guard with the recommended parameters."""
        from thresholdout.certificates.certify_parameters import certify_parameters
        from thresholdout.certificates.prior_queries import confidence_after
        from thresholdout.certificates.problem import within_limits

        if self.prior_queries is None:
            return certify_parameters(self.model, self.parameters, self.confidence)
        assumed, needed = within_limits(self.model, self.confidence)
        if not self.parameters.pays_prior_queries:
            needed = confidence_after(self.prior_queries, self.model.n, needed)
        found = certify_parameters(assumed, self.parameters, needed)
        limits = self.model.fitted_limits
        return dataclasses.replace(found, confidence=self.confidence, limits=limits, prior_queries=self.prior_queries)

    @property
    def table(self) -> pd.DataFrame:
        """Data frame with one row per way: half_width, records, queries, needs, call, why_not, recommended."""
        import pandas as pd

        columns = ["half_width", "records", "queries", "needs", "call", "why_not"]
        index = pd.Index([way.name for way in self.ways], name="way")
        rows = [[getattr(way, column) for column in columns] for way in self.ways]
        table = pd.DataFrame(rows, columns=columns, index=index).astype({"records": "Int64", "queries": "Int64"})
        table["recommended"] = table.index == self.recommended.name
        return table if self.width is not None else table.drop(columns=["records", "queries"])

    def way(self, name: WayName) -> Way:
        """Return the way of this name: "single", "batch", "adaptive" or "Algorithm 1"."""
        return next(way for way in self.ways if way.name == name)

    def to_json(self) -> dict[str, Any]:
        """Return the whole plan as a dictionary of numbers, texts and lists, ready for ``json.dumps``."""
        return {
            "records": self.records,
            "dependence": self.model.describe(),
            "n_train": self.n_train,
            "queries": self.queries,
            "asked": self.asked,
            "anticipated_score": self.anticipated_score,
            "confidence": self.confidence,
            "width": self.width,
            "epsilon": self.epsilon,
            "prior_queries": None if self.prior_queries is None else dataclasses.asdict(self.prior_queries),
            "recommended": self.recommended.name,
            "recommendation": self.recommendation,
            "warnings": list(self.warnings),
            "division": self.division,
            "leaderboard": None if self.leaderboard is None else dataclasses.asdict(self.leaderboard),
            "ways": [
                {
                    "name": way.name,
                    "half_width": way.half_width if way.applies else None,
                    "needs": way.needs,
                    "call": way.call,
                    "records": way.records,
                    "queries": way.queries,
                    "parameters": None if way.parameters is None else parameters_to_json(way.parameters),
                    "why_not": way.why_not,
                }
                for way in self.ways
            ],
        }

    def __repr__(self) -> str:
        teams = () if self.leaderboard is None else (str(self.leaderboard),)
        return "<Plan: " + " ".join(filter(None, [self.recommendation, *teams, *self.warnings, self.division])) + ">"

    def _repr_html_(self) -> str:
        from thresholdout.notebook.cards import Bar, Card, Table

        most = max((way.half_width for way in self.ways if math.isfinite(way.half_width)), default=1.0)
        bars = [
            Bar(
                way.name,
                0.0,
                way.half_width,
                f"± {shown_above(way.half_width, 2)}",
                kind="holdout" if way.name == self.recommended.name else "train",
            )
            for way in self.ways
            if way.applies
        ]
        queries = f"{self.asked:,}" if self.queries is not None else f"any number; the first {self.asked:,} here"
        facts = [
            ("records", f"{self.records:,}"),
            ("queries", queries),
            ("likely score", f"{self.anticipated_score:g}"),
            ("confidence", f"{self.confidence:g}"),
        ]
        rows = [
            (way.name, way.call, way.needs if way.applies else f"does not apply: {way.why_not}") for way in self.ways
        ]
        table = Table(("way", "call", "needs"), rows, [way.name for way in self.ways].index(self.recommended.name))
        teams = () if self.leaderboard is None else (str(self.leaderboard),)
        divided = (self.division,) if self.division else ()
        notes = [
            *teams,
            *self.warnings,
            *divided,
            "Bars are half-widths, of the range of a score; orange is recommended.",
        ]
        return Card("Plan", self.recommendation, facts, bars, axis=(0.0, most), table=table, notes=notes).html
