"""The checked arguments of `plan`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thresholdout.certificates.prior_queries import PriorQueries, check_prior_queries, confidence_after
from thresholdout.certificates.problem import check_model, declared_confidence, within_limits
from thresholdout.data.arguments import check_count, check_number
from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import ClaimsParameters
from thresholdout.mechanisms.claims.predictor import SHARED
from thresholdout.planning.declaration import SparseVectorBudget, check_limits, declared_epsilon
from thresholdout.planning.privacy_budget import record_budget

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = [
    "ASKED",
    "MOST_RECORDS",
    "QUIET",
    "Family",
    "Use",
    "check_declaration",
    "check_use",
    "independent",
]

MOST_RECORDS: Final = 10**9
"""Records of the largest holdout for which there are plans."""

ASKED: Final = 100
"""Number of queries to which half-widths refer, where none are declared."""

QUIET: Final = 0.05
"""Noise of the default mechanism, in standard deviations: it widens intervals by about one per cent."""

Family: TypeAlias = "Callable[[int], DependenceModel]"
"""A function from a number of records to the model of about as many records of one kind."""

_BELOW_ONE: Final = math.nextafter(1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Use:
    """The checked arguments of `thresholdout.plan`, most of them as given.

    `records` are ``None`` to solve for their number; limits of a fitted model are assumed to hold, and charged to the
    confidence. `family` maps a number of records to their model, to solve for records of a kind. `widths` caches the
    half-widths of claims by use, way, whether quickly, and number of records.
    """

    records: DependenceModel | None
    queries: int | None
    anticipated_score: float
    n_train: float | None
    width: float | None
    adaptive: bool
    budget: int | None
    confidence: float
    prior_queries: PriorQueries | None = None
    family: Family | None = None
    epsilon: float | None = None
    correlation: float | None = None
    similarity: float = SHARED
    normal_limits: bool = False
    widths: dict[tuple[Use, str, bool, int | None], float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def model(self) -> DependenceModel:
        """The records, where they are known."""
        assert self.records is not None
        return self.records

    @property
    def answers(self) -> int:
        """The number of answers of Algorithm 1 from the holdout."""
        if self.budget is not None:
            return self.budget
        return 1 if self.epsilon is None else SparseVectorBudget().answers

    @property
    def asked(self) -> int:
        """The number of queries to which half-widths refer."""
        return ASKED if self.queries is None else self.queries

    @property
    def information_released(self) -> float:
        """Upper bound of the nats that earlier evaluations of the holdout have released."""
        return 0.0 if self.prior_queries is None else self.prior_queries.nats(self.model.n)

    @property
    def after_looks(self) -> float | None:
        """The confidence that answers need where the certificate pays for prior queries; ``None`` where it cannot."""
        try:
            return confidence_after(self.prior_queries, self.model.n, self.confidence)
        except InputError:
            return None

    @property
    def record_epsilon(self) -> float | None:
        """The epsilon under replacing one record; ``None`` without an epsilon."""
        return None if self.epsilon is None else record_budget(self.model, self.epsilon)

    def of(self, model: DependenceModel) -> Use:
        """Return the same for these records."""
        return dataclasses.replace(self, records=model)

    def member(self, n: int) -> tuple[Use, DependenceModel]:
        """Return the same for about `n` records of the family, and their model as the family made it."""
        from graphs import DependenceModel

        assert self.family is not None
        made: Any = self.family(n)
        if not isinstance(made, DependenceModel):
            seen = f"a function that returns a {type(made).__name__}"
            expected = "a function that returns a model of about as many records as it is given"
            advice = "An example is lambda n: MarkovChain(transition, n=n)."
            raise InputTypeError("records", seen, expected, advice)
        assumed, needed = within_limits(made, self.confidence)
        return dataclasses.replace(self, records=assumed, confidence=needed), made

    def asking(self, queries: int) -> Use:
        """Return the same for this number of queries."""
        return dataclasses.replace(self, queries=queries)

    def parameters(self, n: int | None = None) -> ClaimsParameters:
        """Return the parameters of a guard that makes claims; for `n` records with the model's effective share."""
        size = self.model.n if n is None else n
        plain = ClaimsParameters(
            queries=self.queries,
            budget=self.budget,
            noise=QUIET,
            n_train=self.n_train,
            epsilon=self.record_epsilon,
            information_released=0.0 if self.prior_queries is None else self.prior_queries.nats(size),
            correlation=self.correlation,
            normal_limits=self.normal_limits,
        )
        found = _for_records(plain, self.model, self.confidence)
        if size == self.model.n or found.effective is None:
            return found
        sizes, blocks = (
            None if counts is None else _scaled(counts, size, self.model.n) for counts in (found.sizes, found.blocks)
        )
        return dataclasses.replace(found, effective=found.effective * size / self.model.n, sizes=sizes, blocks=blocks)


def _scaled(sizes: tuple[tuple[int, int], ...], n: int, of: int) -> tuple[tuple[int, int], ...]:
    """Return groups of the same sizes with n records; single records fill up."""
    counts = {size: number * n // of for size, number in sizes}
    counts[1] = counts.get(1, 0) + n - sum(size * number for size, number in counts.items())
    return tuple(sorted((size, number) for size, number in counts.items() if number))


def check_use(
    records: object,
    queries: object,
    anticipated_score: object,
    n_train: object,
    width: object,
    adaptive: object,
    budget: object,
    confidence: object,
    prior_queries: object = None,
    epsilon: object = None,
    correlation: object = None,
    similarity: object = SHARED,
    limits: object = "exact",
) -> Use:
    """Return the checked arguments of `thresholdout.plan`; InputError or InputTypeError for unusable ones."""
    from graphs.models.out_of_fold import OutOfFold

    if records is None and width is None:
        expected = "a number of records, a model of graphs, or width= for the half-width to reach"
        raise InputError("records", "nothing", expected)
    family: Any = records if callable(records) and not isinstance(records, type) else None
    if family is not None and width is None:
        advice = "Pass width=, the half-width to reach, or a model of the given records."
        raise InputError("records", "a function of the number of records", "a number or a model without width=", advice)
    model = None if records is None or family is not None else _model(records)
    if isinstance(model, OutOfFold):
        seen = "out-of-fold values of a cross-validation"
        advice = "A KFoldGuard has no plan."
        raise InputError("records", seen, "the records of a holdout, such as Independent(n)", advice)
    check_limits(limits)
    use = Use(
        records=model,
        queries=None if queries is None else check_count("queries", queries),
        anticipated_score=check_number("anticipated_score", anticipated_score, 0.0, _BELOW_ONE, "a score in (0, 1)"),
        n_train=None if n_train is None else float(check_count("n_train", n_train)),
        width=None if width is None else check_number("width", width, 0.0, 0.5, "a half-width in (0, 0.5]"),
        adaptive=_check_flag("adaptive", adaptive, "False means that all queries are fixed before the first answer."),
        budget=None if budget is None else check_count("budget", budget),
        confidence=declared_confidence(confidence),
        prior_queries=check_prior_queries(prior_queries),
        family=family,
        epsilon=None if epsilon is None else declared_epsilon(epsilon),
        correlation=None
        if correlation is None
        else check_number("correlation", correlation, -math.ulp(0.0), 1.0, "a number from 0 to 1"),
        similarity=check_number("similarity", similarity, -math.ulp(0.0), 1.0, "a number from 0 to 1"),
        normal_limits=limits == "normal",
    )
    if use.epsilon is not None and use.width is not None:
        advice = "Pass records=, whose half-widths are planned for an epsilon."
        raise InputError("epsilon", repr(epsilon), "None beside width=", advice)
    if model is not None and model.n > MOST_RECORDS:
        advice = "Their intervals are about as narrow."
        raise InputError("records", f"{model.n:,} records", f"at most {MOST_RECORDS:,}", advice)
    if model is not None and use.anticipated_score * model.n < 1.0:
        expected = f"at least {1 / model.n:g}, the smallest positive score of {model.n} records"
        raise InputError("anticipated_score", anticipated_score, expected)
    if model is None and family is None and use.normal_limits:
        advice = "Pass groups=, or a model of groups."
        raise InputError("limits", "'normal'", "'exact' for independent records", advice)
    if model is None:
        return use
    assumed, needed = within_limits(model, use.confidence)
    use = dataclasses.replace(use, records=assumed, confidence=needed)
    if use.normal_limits:
        use.parameters()  # refuses a model without groups, and an epsilon
    return use


@lru_cache(maxsize=64)
def independent(n: int) -> DependenceModel:
    """Return a model of independent records, the same one for the same number."""
    from graphs import Independent

    return Independent(n)


@lru_cache(maxsize=2)  # a search over numbers of records takes the same model many times
def _for_records(plain: ClaimsParameters, model: DependenceModel, confidence: float) -> ClaimsParameters:
    return plain.for_records(model, confidence)


def check_declaration(identically_distributed: object) -> bool:
    """Return whether all records are declared to have one law; InputTypeError for anything but true or false."""
    advice = "True means that all records have one law and each query is the same function of every record."
    return _check_flag("identically_distributed", identically_distributed, advice)


def _check_flag(argument: str, value: object, advice: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InputTypeError(argument, f"a {type(value).__name__}", "True or False", advice)


def _model(records: object) -> DependenceModel:
    from graphs import DependenceModel

    if isinstance(records, (DependenceModel, str, type)):
        return check_model(records)
    return independent(check_count("records", records))
