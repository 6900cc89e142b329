"""The common interface of all mechanisms, and the values that pass through it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from thresholdout.data.arguments import check_count
from thresholdout.data.parts.totals import Totals
from thresholdout.data.values import UnitSums
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.noise.sources import NoiseSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from thresholdout.limits.group_sums import GroupSizes
    from thresholdout.limits.normal_limits import TrainingGroups
    from thresholdout.mechanisms.claims.evidence import Evidence
    from thresholdout.mechanisms.claims.statistic_claims import Layout

__all__ = [
    "ALIKE",
    "UNKNOWN",
    "About",
    "AnswerSource",
    "AnswersLists",
    "Blocks",
    "Grouped",
    "Known",
    "Mechanism",
    "MechanismState",
    "Outcome",
    "PairedCounts",
    "Part",
    "Past",
    "SharesErrorBudget",
    "Source",
    "refuse_if",
]


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """Records of one part on which exactly one of two models is right: wins and losses of the first, of all records."""

    wins: int
    losses: int
    records: int

    def __post_init__(self) -> None:
        if self.wins < 0 or self.losses < 0 or self.wins + self.losses > check_count("records", self.records):
            seen = f"{self.wins} wins and {self.losses} losses of {self.records} records"
            raise InputError("wins", seen, "a count of at least 0, and with losses at most the number of records")

    @property
    def share(self) -> float:
        """Estimate of the win rate, strictly between 0 and 1."""
        return (self.wins + 1.0) / (self.wins + self.losses + 2.0)


@dataclass(frozen=True, slots=True)
class Past:
    """Counts of a guard's history, against which the stored state of its mechanism is checked.

    Attributes
    ----------
    asked : int
        Number of queries.
    sources : mapping of str to int
        Number of answers of each source, such as "train" and "holdout".
    """

    asked: int
    sources: Mapping[str, int]

    @property
    def charged(self) -> int:
        """Number of answers from the holdout, with failed queries and candidates that the holdout did not confirm."""
        return sum(self.sources.get(source, 0) for source in ("holdout", "failed", "reject", "unconfirmed"))

    @property
    def free(self) -> int:
        """Number of candidates that cross-validation alone decided."""
        return self.sources.get("skip", 0) + self.sources.get("step", 0)


class MechanismState(Protocol):
    """State of a mechanism between two queries. It is secret and must not be shown, logged or printed."""

    @property
    def asked(self) -> int:
        """Number of queries so far. Public."""

    def agrees(self, past: Past) -> bool:
        """Return whether the counts of the state are those of a history. Public."""

    def to_text(self) -> str:
        """Return the state as text for a ledger; `Mechanism.restore` reads it."""


StateT = TypeVar("StateT", bound=MechanismState)
ValuesT = TypeVar("ValuesT")
AskedT = TypeVar("AskedT", contravariant=True)


@dataclass(frozen=True, slots=True)
class Part:
    """Records on which a query can be different from 0, if public numbers show that it is 0 on all others.

    Attributes
    ----------
    records : int
        Number of these records.
    effective : float or None
        Effective sample size of these records for limits by relative entropy, if they depend on each other. None for
        independent records.
    training : float
        Number of training records of the same kind.
    """

    records: int
    effective: float | None = None
    training: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """The groups of the records of a query. Public.

    `index` has the group of each record, `sizes` and `counts` their sizes, `correlation` that of training values inside
    groups. `training` and `training_groups` are effective numbers of training records and groups, and `trained` are the
    groups' sums. Where single values are not known, `correlation` and `trained` are ``None``; where no record is in
    memory, `counts` is.
    """

    index: NDArray[np.int64] = field(repr=False)
    sizes: GroupSizes
    correlation: float | None
    training: float
    training_groups: float
    trained: TrainingGroups | None = field(default=None, repr=False)
    counts: NDArray[np.float64] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a series of a query: those that are not neighbours are independent. Public.

    `index` has the block of each record, `sizes` and `counts` their sizes, `correlation` that of training values inside
    blocks. `inflation` is the estimated design effect of a mean of the `training` values in `training_blocks` blocks.
    """

    index: NDArray[np.int64] = field(repr=False)
    counts: NDArray[np.float64] = field(repr=False)
    sizes: GroupSizes
    correlation: float
    training: float
    inflation: float
    training_blocks: float


@dataclass(frozen=True, slots=True)
class Known:
    """Public knowledge of a query's values before the holdout is evaluated, which decides how a mechanism tests them.

    Attributes
    ----------
    variance : float or None
        Variance of the training records' values, in units of the range. If None, the variance of a 0-1 variable with
        the same mean is used.
    binary : bool
        Whether every value is 0 or 1: by the metric, by declaration, or because all training values are.
    layout : Layout or None
        Layout of a statistic that is not a mean over records; ``None`` for means.
    difference : bool
        Whether the query is about the difference of two models, which is unrelated to queries about single scores.
    one_law : bool
        Whether the records were declared to have one distribution, so that their order may be random.
    trinomial : bool
        Whether the query is about the difference of two models that are right or wrong, on records of one distribution.
    part : Part or None
        The records on which the query can be different from 0. None if these are all records.
    groups : Grouped or None
        The groups of the records. None if no groups are declared.
    blocks : Blocks or None
        The blocks of the records if they are a series in which distant records are independent. None otherwise.
    paired_counts : PairedCounts or None
        For a win rate: wins and losses of the two models on the training part.
    vague : bool
        Whether nothing is known about the value, so that the training value is a placeholder.
    client : str
        Name of the client. Empty for the organiser.
    proposal : bool
        Whether only one bit is released: whether a proposal is better than the client's present model.
    chosen : bool
        Whether models are chosen by the same records that give their training values, which are then too optimistic.

    Examples
    --------
    >>> Known(binary=True)
    Known(variance=None, binary=True, layout=None, difference=False, ..., client='', ...)
    """

    variance: float | None = None
    binary: bool = False
    layout: Layout | None = None
    difference: bool = False
    one_law: bool = False
    trinomial: bool = False
    part: Part | None = None
    groups: Grouped | None = None
    blocks: Blocks | None = None
    paired_counts: PairedCounts | None = None
    vague: bool = False
    client: str = ""
    proposal: bool = False
    chosen: bool = False


ALIKE: Final = 0.5
"""Expected correlation inside groups without training values: between independent records and copies."""

UNKNOWN: Final = Known()
"""No knowledge."""

AnswerSource = Literal["train", "holdout"]
"""The source of an answer's value."""

About = Literal["query", "best"]
"""Whether an answer is about the present query, or about the best query so far."""

Source = Literal["train", "holdout", "failed", "release", "note"]
"""The source of an answer; "failed" for a query that could not be computed on the holdout, "release" for another
private release about it, which has no answer, and "note" for an event in the guard's life."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one step of a mechanism, which the guard releases as an `Answer`.

    Attributes
    ----------
    value : float
        The answer, in units of the query's range, in [0, 1].
    source : {"train", "holdout", "failed", "release", "note"}
        Source of the value: "train" for the training value, "holdout" for a value from the holdout, "failed" for a
        query that could not be computed on the holdout, "release" for another private release, which has no answer, and
        "note" for an event in the guard's life.
    hits : int
        Number of answers from the holdout *before* this round.
    asked : int
        Number of this round, from 1.
    about : {"query", "best"}
        Subject of value and interval: the present query, or the best query so far.
    interval : tuple of float or None
        The certified interval, in units of the range, where the mechanism proves one itself from its own confidence. It
        stands also after failures. ``None`` where a certificate has it.
    log_error_budget : float or None
        Natural logarithm of the remaining error budget, where the mechanism has one.
    """

    value: float
    source: Source
    hits: int
    asked: int
    about: About = "query"
    interval: tuple[float, float] | None = None
    log_error_budget: float | None = None


class Mechanism(ABC, Generic[StateT, ValuesT]):
    """Base class of mechanisms, the state machines by which a guard answers queries about a holdout.

    A guard (`thresholdout.Thresholdout`) keeps the state in its ledger and calls `step` for each query. Users choose a
    mechanism by ``mechanism=`` and do not call it.

    Implementations are immutable. A step depends only on the state, the numbers that are passed and the noise that it
    draws. All numbers are in units of the query's range: the training value, the holdout values and the answer lie in
    [0, 1], and replacing one of n records changes a mean by at most 1/n.

    Mechanisms need different summaries of the holdout: the sparse vector technique needs one mean, others need the
    values of single records. `read` reduces the values to the input of `step`.
    """

    name: ClassVar[str]
    """The mechanism's name in plans, ledgers and messages."""

    statistics: ClassVar[bool] = False
    """Whether it answers queries about statistics that are not means."""

    from_totals: ClassVar[bool] = False
    """Whether it answers queries of which only totals are known: `thresholdout.data.parts.totals.Totals`."""

    about: ClassVar[About] = "query"
    """The subject of its answers."""

    expects_spread: ClassVar[bool] = False
    """Whether it uses the variance of training values (`Known.variance`)."""

    @property
    def title(self) -> str:
        """Name of the mechanism in a guard's representation."""
        return self.name

    def shares_error_budget(
        self, what: str, instead: str = "", *, private: str | None = None
    ) -> SharesErrorBudget[StateT, ValuesT]:
        """Return the mechanism as one whose answers share one error budget, or refuse the feature that needs this."""
        raise InputError("mechanism", f"a {self.name}", f"'claims' for {what}", instead)

    def lists(self) -> AnswersLists[StateT, ValuesT]:
        """Return the mechanism as one that answers lists of queries that were fixed together, or refuse."""
        return self.shares_error_budget("a list of queries", "Or send one query after another.")

    @abstractmethod
    def start(self, noise: NoiseSource) -> StateT:
        """Return the state before the first query.

        Parameters
        ----------
        noise : NoiseSource
            Source of the noise that the state contains, such as a noisy threshold.

        Returns
        -------
        MechanismState
            State to pass to the first `step`. It is secret.
        """

    def trained(
        self, values: object, n: int | None, bounds: tuple[float, float], argument: str, binary: bool | None
    ) -> tuple[float, Known]:
        """Compute the mean of the training records' values, and the public knowledge that they provide.

        Parameters
        ----------
        values : array_like
            Value of the query for each training record, or totals of the values.
        n : int or None
            Number of training records. If None, it is not checked.
        bounds : tuple of float
            Lower and upper end of the query's range.
        argument : str
            Name of the argument in messages of errors.
        binary : bool or None
            Whether every value is 0 or 1. If None, the training values decide.

        Returns
        -------
        mean : float
            Training value of the query, in [0, 1].
        known : Known
            Public knowledge about the query.
        """
        squares: Literal["", "exact"] = "exact" if self.expects_spread and not binary else ""
        sums = values if isinstance(values, Totals) else UnitSums(values, n, bounds, argument, squares)
        ends = sums.ends if binary is None else binary
        return sums.mean.mean(), Known(sums.variance() if self.expects_spread and not ends else None, ends)

    @abstractmethod
    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> ValuesT:
        """Check the values of the holdout records and reduce them to the input of `step`.

        Parameters
        ----------
        values : array_like
            Value of the query for each holdout record, or totals of the values.
        n : int
            Number of holdout records.
        bounds : tuple of float
            Lower and upper end of the query's range.
        argument : str
            Name of the argument in messages of errors.
        known : Known
            Public knowledge about the query.

        Returns
        -------
        object
            Summary of the values in the form that `step` requires. It is secret.
        """

    def needs_squares(self, known: Known) -> bool:
        """Return whether `read` needs the sum of squares of values of which only totals are known."""
        return False

    def needs_group_sums(self, known: Known) -> bool:
        """Return whether `read` needs the sums of values by group, where single values are not in memory."""
        return False

    def statistic(self, evidence: Sequence[Evidence], known: Known) -> ValuesT:
        """Return the input of `step` for a statistic that is not a mean, from the holdout's evidence on its parts."""
        advice = "A guard with mechanism='claims' takes other statistics."
        raise InputError("metric", "another statistic", f"a mean over records for a {self.name}", advice)

    @abstractmethod
    def step(self, state: StateT, train: float, holdout: ValuesT, noise: NoiseSource) -> tuple[StateT, Outcome]:
        """Answer one query.

        Parameters
        ----------
        state : MechanismState
            State after the previous query.
        train : float
            Training value of the query, in [0, 1].
        holdout : object
            Summary of the holdout values, as returned by `read`.
        noise : NoiseSource
            Source of the noise.

        Returns
        -------
        state : MechanismState
            The next state. Store it before the outcome is released.
        outcome : Outcome
            The answer with its source and interval.
        """

    @abstractmethod
    def fail(self, state: StateT, train: float, noise: NoiseSource) -> tuple[StateT, Outcome]:
        """Charge a query whose computation on the holdout failed as much as an answer from the holdout.

        The parameters have the meaning that they have in `step`. The value of the outcome is the training value, which
        reveals nothing about the holdout.
        """

    @abstractmethod
    def refusal(self, state: StateT) -> BudgetExhausted | None:
        """Return the reason why no further query is allowed, or None if one is allowed. The result is public."""

    def refuses(self, state: StateT, train: float, known: Known) -> BudgetExhausted | None:
        """Return the reason why this query is not allowed, or None if it is allowed.

        The decision is made before the holdout is evaluated, and is public.
        """
        return self.refusal(state)

    def client_refusal(self, state: StateT, known: Known) -> BudgetExhausted | None:
        """Return the reason why this client may send no more queries although others may, or None. Public."""
        return None

    def failed(self, before: StateT, after: StateT, known: Known) -> StateT:
        """Return the state after a client's failed query, from the states before and after `fail`."""
        return after

    @abstractmethod
    def restore(self, text: str) -> StateT:
        """Return the state from the text that `MechanismState.to_text` wrote."""

    @abstractmethod
    def remaining(self, state: StateT) -> int | None:
        """Return the largest number of further answers from the holdout, or None if there is no limit. Public."""

    def pay_release(self, state: StateT, nats: Callable[[float], float]) -> tuple[StateT, Outcome]:
        """Pay for another private release about the holdout: return the next state and the outcome to record."""
        raise InputError("event", f"a guard with a {self.name}", "recorded in a guard with mechanism='claims'")

    def noted(self, state: StateT) -> tuple[StateT, Outcome]:
        """Add a note to the history, which releases nothing about the holdout and is not charged."""
        advice = "Or make a new guard of new records."
        raise InputError("mechanism", f"a {self.name}", "'claims' or 'ladder' for a note in the history", advice)

    def log_error_budget(self, state: StateT) -> float | None:
        """Return the natural logarithm of the remaining error budget, or None if there is no such budget. Public."""
        return None

    def first_half_width(self, score: float) -> float | None:
        """Return the half-width of a first answer that is as expected, or None if the certificate states it."""
        return None

    def epsilon(self, n: int) -> float:
        """Bound the differential privacy of all answers together.

        Parameters
        ----------
        n : int
            Number of records over which means are taken.

        Returns
        -------
        float
            Epsilon in nats. It is infinite for mechanisms whose guarantee does not rest on differential privacy.
        """
        return math.inf

    def noise_slack(self, n: int) -> float:
        """Bound the part of an answer's error that comes from integer and floating-point arithmetic.

        Parameters
        ----------
        n : int
            Number of records over which means are taken.

        Returns
        -------
        float
            Bound in units of the query's range. It is 0 if the half-widths of the mechanism contain it already.
        """
        return 0.0


def refuse_if(refusal: BudgetExhausted | None) -> None:
    """Raise a refusal, where there is one."""
    if refusal is not None:
        raise refusal


class AnswersLists(Protocol[StateT, AskedT]):
    """A mechanism that answers queries that were fixed together."""

    def step_all(
        self, state: StateT, asked: Sequence[tuple[float, AskedT]], noise: NoiseSource, reserve: float = 0.2
    ) -> tuple[StateT, list[Outcome]]:
        """Answer queries that were fixed together."""

    def step_best(
        self, state: StateT, asked: Sequence[tuple[float, AskedT]], noise: NoiseSource, reserve: float, greatest: bool
    ) -> tuple[StateT, Outcome, int]:
        """Release which of some queries has the best value, and its value."""

    def refusal(self, state: StateT, more: int = 1) -> BudgetExhausted | None:
        """Return why so many more queries are not allowed, or ``None``. Public."""

    def remaining(self, state: StateT) -> int | None:
        """Return the largest number of further answers from the holdout. Public."""


class SharesErrorBudget(AnswersLists[StateT, ValuesT], Protocol[StateT, ValuesT]):
    """A mechanism whose error budget pays for more than single queries."""

    def paired_counts(self, counts: PairedCounts, known: Known) -> ValuesT:
        """Return the input of `step` for a win rate."""

    def direct(self, state: StateT, train: float, known: Known) -> tuple[float, float]:
        """Return the expected half-width and nats of an interval that is stated directly. Public."""

    def few_left(self, state: StateT, train: float, known: Known) -> float | None:
        """Return the share to reserve where a query is to be stated directly, as one of few declared. Public."""

    def final(self, state: StateT, train: float, holdout: ValuesT, noise: NoiseSource) -> tuple[StateT, Outcome]:
        """Answer the last query, with all of the remaining error budget."""

    def refuses_final(self, state: StateT) -> BudgetExhausted | None:
        """Return why there is no last query, or ``None``. Public."""

    def final_half_width(self, log_error_budget: float, expected: float, *, chosen: bool = False) -> float:
        """Return the half-width of a last query at a likely score. Public."""

    def fail(self, state: StateT, train: float, noise: NoiseSource, *, final: bool = False) -> tuple[StateT, Outcome]:
        """Charge a query that could not be computed, also the last one."""

    def restore(self, text: str) -> StateT:
        """Return the state that `MechanismState.to_text` wrote."""

    def log_error_budget(self, state: StateT) -> float:
        """Return the natural logarithm of the remaining error budget. Public."""
