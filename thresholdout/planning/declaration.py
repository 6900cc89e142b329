"""The declared arguments of a guard, and their form in a ledger."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from thresholdout.certificates.prior_queries import PriorQueries
from thresholdout.certificates.problem import check_confidence
from thresholdout.data.arguments import check_count, check_number
from thresholdout.errors import InputError, LedgerDamaged, LedgerUnusable
from thresholdout.mechanisms import SparseVectorParameters
from thresholdout.mechanisms.catalogue import kind_named, parameters_from_json, parameters_to_json
from thresholdout.mechanisms.kind import Parameters

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = [
    "BudgetMethod",
    "BudgetSetting",
    "Claims",
    "Declaration",
    "Limits",
    "MechanismChoice",
    "MechanismName",
    "Sampling",
    "SparseVector",
    "SparseVectorBudget",
    "check_limits",
    "check_mechanism",
    "declared_epsilon",
    "read_declaration",
]

Sampling: TypeAlias = Literal["independent", "iid", "fixed_features"]
"""Sampling of the holdout's records; see `thresholdout.Thresholdout`."""

MechanismName: TypeAlias = Literal["claims", "leaderboard", "ladder"]

Limits: TypeAlias = Literal["exact", "normal"]
"""The test of means over groups; "normal" is approximate."""

BudgetMethod: TypeAlias = Literal["best", "group", "quilt", "spectral", "messages"]
"""The route by which a dependence model turns an epsilon into that of one record."""

BudgetSetting: TypeAlias = Literal["certified", "published"]
"""Threshold and noise with the narrowest certificate, or those of [Z17, Theorem 2]."""


def check_limits(limits: object) -> None:
    """Refuse an unknown name of limits."""
    if not isinstance(limits, str) or limits not in get_args(Limits):
        raise InputError("limits", repr(limits), "'exact' or 'normal'", "Normal limits are approximate.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """Set parameters of the default mechanism of a guard, for ``Thresholdout(..., mechanism=Claims(...))``.

    A guard that makes claims tests an interval hypothesis around the training value. If the holdout accepts it, the
    answer is the training value. Otherwise the guard retries with a wider interval and spends error budget. A guard
    without ``mechanism=`` uses the defaults below.

    Parameters
    ----------
    max_half_width : float, optional
        Largest allowed half-width, in units of the range. A query whose interval would be wider is refused at no cost,
        except that the first query of a statistic that is not a mean is charged even if it is refused. If None, no
        query is refused for its width.
    epsilon : float, optional
        Bound on the privacy loss of one record through all answers of the guard together, in nats, against an attacker
        who knows any other records. For independent records this is differential privacy. With a dependence model it is
        Bayesian differential privacy, and a single record has the smaller ``model.budget(epsilon)``. Intervals are much
        wider, since the noise moves their edges by tens of records. The guard then answers only means, one query at a
        time. If None, records are not protected.
    holdout_answers : int, optional
        Limit on the number of queries that are answered from the holdout because it disagrees with the training value.
        If None, there is no limit.
    noise : float, default 0.05
        Scale of the Laplace noise in the edges of an interval, in standard deviations of the holdout's value. With 0,
        answers are a deterministic function of the data. It has no effect together with ``epsilon``.
    limits : {"exact", "normal"}, default "exact"
        Confidence limits. "exact" limits are guaranteed. "normal" is for groups of records: intervals are about as
        narrow as Student's on cluster means, and APPROXIMATE. Nothing bounds their error rate, and the guard is never
        called guaranteed. Small numbers of groups, or of groups with wrong predictions, and levels below 1e-5 keep
        exact tests. A ledger keeps the choice for the guard's life.

    Examples
    --------
    >>> Claims(max_half_width=0.05)
    Claims(max_half_width=0.05, epsilon=None, holdout_answers=None, noise=0.05, limits='exact')
    """

    max_half_width: float | None = None
    epsilon: float | None = None
    holdout_answers: int | None = None
    noise: float = 0.05  # widens intervals by about one per cent
    limits: Limits = "exact"

    def __post_init__(self) -> None:
        def fix(name: str, lower: float, upper: float, expected: str) -> None:
            value = getattr(self, name)
            if value is not None:
                number = check_number(name, value, lower, upper, expected)
                # A fraction between two floats becomes the lower one: no declared limit is exceeded.
                number = math.nextafter(number, -math.inf) if number > value else number
                object.__setattr__(self, name, number)

        fix("max_half_width", 0.0, 1.0, "a number in (0, 1], in units of the range")
        fix("epsilon", 0.0, 1e6, "a positive number")
        fix("noise", -math.ulp(0.0), 16.0, "a number from 0 to 16")
        check_limits(self.limits)
        if self.holdout_answers is not None:
            object.__setattr__(self, "holdout_answers", check_count("holdout_answers", self.holdout_answers))


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Choose Algorithm 1 of the papers, with parameters set by hand, as the mechanism of a guard.

    Pass it as ``Thresholdout(..., mechanism=SparseVector(...))``. Algorithm 1 compares the training value with the
    holdout's through a noisy threshold, and releases a noisy holdout value only where they disagree. Its answers are
    valid by privacy, also where a dependence model bounds no deviation of a mean. The default mechanism is `Claims`.
    Choose Algorithm 1 for dependence that claims do not support, or to compare with the papers. All parameters are in
    units of a query's range. `for_budget` computes them from a privacy budget.

    Parameters
    ----------
    threshold : float
        Distance from the holdout's value within which, up to the noise, a training value is returned as the answer.
    noise_scale : float
        Scale of the Laplace noise in the threshold. The noise of comparisons is twice, and that of answers from the
        holdout four times, as large.
    budget : int, optional
        Number of answers from the holdout in all. If None, there is no limit, and no epsilon is finite.
    grid : float, optional
        Step of the grid to which answers from the holdout are rounded: 1/(K - 1) for K possible answers. If None, they
        are not rounded further than the noise.

    Examples
    --------
    >>> SparseVector(0.04, 0.0025, budget=1)
    SparseVector(threshold=0.04, noise_scale=0.0025, budget=1, grid=None)
    """

    threshold: float
    noise_scale: float
    budget: int | None = None
    grid: float | None = None

    def __post_init__(self) -> None:
        checked = self.parameters(None)
        for name in ("threshold", "noise_scale", "budget", "grid"):
            object.__setattr__(self, name, getattr(checked, name))

    def parameters(self, queries: int | None) -> SparseVectorParameters:
        """Return the full parameters of the mechanism for a declared number of queries (None for any number)."""
        return SparseVectorParameters(self.threshold, self.noise_scale, self.budget, queries, self.grid)

    @staticmethod
    def for_budget(
        epsilon: float = 0.5,
        answers: int = 5,
        queries: int | None = None,
        *,
        method: BudgetMethod = "best",
        quiet_margin: float = 0.0,
        setting: BudgetSetting = "certified",
    ) -> SparseVectorBudget:
        """Choose Algorithm 1 by a privacy budget, for which the guard computes noise and threshold.

        Parameters
        ----------
        epsilon : float, default 0.5
            Bound on the privacy loss of one record through all answers together, in nats, against an attacker who knows
            any other records.
        answers : int, default 5
            Number of queries that may be answered from the holdout.
        queries : int, optional
            Number of queries in all. If None, the number that the guard declares, or 100 if it declares none.
        method : {"best", "group", "quilt", "spectral", "messages"}, default "best"
            Route from epsilon to that of a single record under the dependence model: "best" takes the best proved one,
            the others name one (see `graphs.DependenceModel.explain`). "spectral" is [Z17, Lemma 4], capped at the best
            proved budget.
        quiet_margin : float, default 0.0
            A training value within this distance of the holdout's spends no answer, in units of the range.
        setting : {"certified", "published"}, default "certified"
            "certified" chooses noises and threshold with the narrowest certificate. "published" chooses, for
            comparison, those of [Z17, Theorem 2] with c = 1/2.

        Returns
        -------
        SparseVectorBudget
            The choice, for ``Thresholdout(..., mechanism=...)``.

        Raises
        ------
        InputError
            If an argument is out of range.

        Examples
        --------
        >>> SparseVector.for_budget(0.5, answers=2).answers
        2
        """
        return SparseVectorBudget(epsilon, answers, queries, method, quiet_margin, setting)


@dataclass(frozen=True, slots=True)
class SparseVectorBudget:
    """Algorithm 1 for a privacy budget; see `SparseVector.for_budget`."""

    epsilon: float = 0.5
    answers: int = 5
    queries: int | None = None
    method: BudgetMethod = "best"
    quiet_margin: float = 0.0
    setting: BudgetSetting = "certified"

    def __post_init__(self) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        fix("epsilon", declared_epsilon(self.epsilon))
        fix("answers", check_count("answers", self.answers))
        fix("queries", None if self.queries is None else check_count("queries", self.queries))
        zero, below = -math.ulp(0.0), math.nextafter(1.0, 0.0)
        margin = check_number("quiet_margin", self.quiet_margin, zero, below, "a number in [0, 1)")
        fix("quiet_margin", margin)
        for name, kind in (("method", BudgetMethod), ("setting", BudgetSetting)):
            value, words = getattr(self, name), [repr(word) for word in get_args(kind)]
            if not isinstance(value, str) or repr(value) not in words:
                raise InputError(name, repr(value), f"{', '.join(words[:-1])} or {words[-1]}")


MechanismChoice: TypeAlias = (
    MechanismName | Literal["algorithm-1"] | Claims | SparseVector | SparseVectorBudget | Parameters
)
"""Values of ``mechanism=``; "algorithm-1" only beside an epsilon."""


def declared_epsilon(epsilon: object) -> float:
    """Return an epsilon as a float that does not exceed it."""
    number = check_number("epsilon", epsilon, 0.0, 1e6, "a positive number")
    # A fraction between two floats becomes the lower one: no declared limit is exceeded.
    return math.nextafter(number, -math.inf) if number > cast(Any, epsilon) else number


_DECLARABLE: Final[dict[str, type[Claims | SparseVector | SparseVectorBudget]]] = {
    "Claims": Claims,
    "SparseVector": SparseVector,
    "SparseVectorBudget": SparseVectorBudget,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """The arguments of a guard on which its answers depend, checked by their makers; fixed for the guard's life."""

    # A ledger keeps the fields in this order.
    queries: int | None = None
    confidence: float = 0.95
    mechanism: MechanismChoice | None = None
    sampling: Sampling = "independent"
    final_check: bool = False
    development: float | None = None  # the share of the records that is open, where the guard split it off
    dependence: str = ""  # the model's fingerprint
    for_release: bool = True  # whether noise is drawn from the operating system's entropy, and not from a seed
    prior_queries: PriorQueries | None = None

    @property
    def iid(self) -> bool:
        """Whether all records have one law, and every query is the same function of each of them."""
        return self.sampling == "iid"

    @property
    def fixed_features(self) -> bool:
        """Whether the features of the holdout's records are public."""
        return self.sampling == "fixed_features"

    def to_json(self) -> dict[str, Any]:
        """Return the ledger's form: names and values."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if isinstance(self.mechanism, (Claims, SparseVector, SparseVectorBudget)):
            found["mechanism"] = {"declared": type(self.mechanism).__name__, **dataclasses.asdict(self.mechanism)}
        elif isinstance(self.mechanism, Parameters):
            found["mechanism"] = parameters_to_json(self.mechanism)
        if self.prior_queries is not None:
            found["prior_queries"] = dataclasses.asdict(self.prior_queries)
        return found

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Declaration:
        """Return a declaration from the ledger's form."""
        fields = {field.name: kept[field.name] for field in dataclasses.fields(cls)}
        if fields["queries"] is not None:
            check_count("queries", fields["queries"])
        check_confidence(fields["confidence"])
        if not isinstance(fields["for_release"], bool) or fields["sampling"] not in get_args(Sampling):
            raise TypeError
        mechanism = fields["mechanism"]
        if isinstance(mechanism, Mapping):
            values = dict(mechanism)
            declared = values.pop("declared", None)
            fields["mechanism"] = (
                parameters_from_json(mechanism) if declared is None else _DECLARABLE[declared](**values)
            )
        if fields["prior_queries"] is not None:
            fields["prior_queries"] = PriorQueries(**fields["prior_queries"])
        return cls(**fields)

    def difference(self, other: Declaration) -> tuple[str, Any, Any] | None:
        """Return the first argument that differs, with both values; ``None`` where all are the same."""
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                return field.name, mine, theirs
        return None


def read_declaration(ledger: Ledger, guard: str) -> tuple[Declaration, Parameters]:
    """Return the declaration of a guard, and its mechanism's parameters."""
    stored: Any = ledger.parameters(guard)
    check_mechanism(ledger, stored)
    try:
        return Declaration.from_json(stored["declared"]), parameters_from_json(stored["chosen"])
    except (KeyError, TypeError, ValueError):
        pass
    raise LedgerDamaged(ledger.location, None, f"The parameters of guard {guard[:12]!r}... cannot be read.")


def check_mechanism(ledger: Ledger, stored: Any) -> None:
    """Refuse a guard whose mechanism this program does not have."""
    chosen = stored.get("chosen") if isinstance(stored, Mapping) else None
    name = chosen.get("mechanism") if isinstance(chosen, Mapping) else None
    if isinstance(name, str) and kind_named(name) is None:
        raise LedgerUnusable(
            ledger.location,
            f"Its guard uses the mechanism {name[:80]!r}, which this version does not have. Use the version that "
            "created it, or a new guard with new records.",
        )
