"""What all mechanisms have in common."""

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
    """Records of one part on which exactly one of two models is right.

    Parameters
    ----------
    wins, losses : int
        Records on which the one is right and the other wrong, and the reverse.
    records : int
        All records of the part.

    Examples
    --------
    >>> PairedCounts(30, 10, 1000).share
    0.738...
    """

    wins: int
    losses: int
    records: int

    def __post_init__(self) -> None:
        if self.wins < 0 or self.losses < 0 or self.wins + self.losses > check_count("records", self.records):
            seen = f"{self.wins} wins and {self.losses} losses of {self.records} records"
            raise InputError("wins", seen, "counts that are not negative, together at most the number of records")

    @property
    def share(self) -> float:
        """Estimate of the win rate, strictly between 0 and 1."""
        return (self.wins + 1.0) / (self.wins + self.losses + 2.0)


@dataclass(frozen=True, slots=True)
class Past:
    """What a guard's history says about its state.

    Attributes
    ----------
    asked : int
        Number of queries.
    sources : mapping of str to int
        How many of them have an answer of each source.
    """

    asked: int
    sources: Mapping[str, int]

    @property
    def charged(self) -> int:
        """Answers from the holdout, failures among them, and candidates that the holdout did not confirm."""
        return sum(self.sources.get(source, 0) for source in ("holdout", "failed", "reject", "unconfirmed"))

    @property
    def free(self) -> int:
        """Candidates about which cross-validation alone decided."""
        return self.sources.get("skip", 0) + self.sources.get("step", 0)


class MechanismState(Protocol):
    """Everything that a mechanism remembers between two queries. Secret: never shown, logged or printed."""

    @property
    def asked(self) -> int:
        """Queries so far. Public."""

    def agrees(self, past: Past) -> bool:
        """Whether what the state counts is what a history says. Public."""

    def to_text(self) -> str:
        """Return the state as text for a ledger; `Mechanism.restore` reads it."""


StateT = TypeVar("StateT", bound=MechanismState)
ValuesT = TypeVar("ValuesT")
AskedT = TypeVar("AskedT", contravariant=True)


@dataclass(frozen=True, slots=True)
class Part:
    """The records that a query is about, where what is public says that all others have the value 0.

    Attributes
    ----------
    records : int
        Their number.
    effective : float or None
        N of their kl limits, where they depend on each other; ``None`` for independent records.
    training : float
        How many training records are like them.
    """

    records: int
    effective: float | None = None
    training: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """The groups of the records that a query is about. Public.

    Attributes
    ----------
    index : ndarray of int
        Group of each record, from 0.
    sizes : GroupSizes
        Of these groups.
    correlation : float or None
        Inside groups, of the training records' values; ``None`` where single values are not known.
    training : float
        Effective number of training records.
    training_groups : float
        Effective number of training groups; 0 where there are none.
    trained : TrainingGroups or None
        Their sums; ``None`` where single values are not known.
    counts : ndarray or None
        Number of records of each group; ``None`` where no record is in memory.
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
    """The blocks of a series that a query is about: those that are not neighbours are independent. Public.

    Attributes
    ----------
    index : ndarray of int
        Block of each record, from 0.
    counts : ndarray
        Number of records of each block.
    sizes : GroupSizes
        Of the blocks.
    correlation : float
        Inside blocks of the training records' values.
    training : float
        Number of training values.
    inflation : float
        By how much a mean of training values varies more than one of independent values, as it seems.
    training_blocks : float
        Number of training blocks.
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
    """What is known of a query's values before the holdout is looked at.

    Attributes
    ----------
    variance : float or None
        Of the training records' values, in units of the range; ``None`` for that of a coin with their mean.
    binary : bool
        Whether every value is 0 or 1: by the metric, by declaration, or because all training values are.
    layout : Layout or None
        Of a statistic that is no mean over records; ``None`` for means.
    difference : bool
        Whether it is about a difference of two models, which tells nothing about scores, nor they about it.
    one_law : bool
        Whether the records were declared to have one law, so that their order may be drawn.
    trinomial : bool
        Whether it is about a difference of two models that are right or wrong, on records of one law.
    part : Part or None
        The records that it is about, where that is not all of them.
    groups : Grouped or None
        Their groups, where these are declared.
    blocks : Blocks or None
        Their blocks, where they are a series in which records far apart are independent.
    paired_counts : PairedCounts or None
        For a win rate: how often each of two models was the better one on the training part.
    vague : bool
        Whether nothing is known of the value: what is given as the training value is a number in place of none.
    client : str
        Who asks; empty where nobody says.
    proposal : bool
        Whether one bit is told: whether something is better than what the client has.
    chosen : bool
        Whether models are chosen by the very records of their training values, which are too high then.

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
"""Correlation inside groups that is expected where no training values say it."""

UNKNOWN: Final = Known()
"""Nothing."""

AnswerSource = Literal["train", "holdout"]
"""Where the value of an answer comes from."""

About = Literal["query", "best"]
"""Whether an answer is about the query that was asked, or about the best query so far."""

Source = Literal["train", "holdout", "failed", "release", "note"]
"""Where an answer comes from; "failed" for a query that could not be computed on the holdout, "release" for another
private release about it, which has no answer, and "note" for what happened to the guard."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step of a mechanism releases.

    Attributes
    ----------
    value : float
        The answer, in units of the query's range, in [0, 1].
    source : {"train", "holdout", "failed", "release", "note"}
        Where it comes from.
    hits : int
        Answers from the holdout *before* this round.
    asked : int
        Number of this round, from 1.
    about : {"query", "best"}
        What value and interval are about: the query that was asked, or the best query so far.
    interval : tuple of float or None
        The certified interval, in units of the range, where the mechanism proves one itself from its own confidence; it
        stands also after failures. ``None`` where a certificate says it.
    log_error_budget : float or None
        Natural logarithm of the remaining error budget, where the mechanism has such a number.
    """

    value: float
    source: Source
    hits: int
    asked: int
    about: About = "query"
    interval: tuple[float, float] | None = None
    log_error_budget: float | None = None


class Mechanism(ABC, Generic[StateT, ValuesT]):
    """A state machine that answers queries about a holdout.

    Implementations are immutable, and their steps are pure but for the noise that they draw: the same state, the same
    numbers and the same noise give the same result, and nothing else is remembered. Numbers are in units of the
    query's range: train value, holdout values and answer lie in [0, 1], and one of n records moves a mean by 1/n.

    What a mechanism has to know about the holdout differs: the sparse vector needs one mean, others need the records'
    values, to add up exactly or to split. `read` makes of the values what `step` takes.
    """

    name: ClassVar[str]
    """How the mechanism is called in plans, ledgers and messages."""

    statistics: ClassVar[bool] = False
    """Whether it answers queries about statistics that are no means."""

    from_totals: ClassVar[bool] = False
    """Whether it answers queries of which only totals are known: `thresholdout.data.parts.totals.Totals`."""

    about: ClassVar[About] = "query"
    """What its answers are about."""

    expects_spread: ClassVar[bool] = False
    """Whether it uses how much training values vary (`Known.variance`)."""

    @property
    def title(self) -> str:
        """How a guard shows it."""
        return self.name

    def shares_error_budget(
        self, what: str, instead: str = "", *, private: str | None = None
    ) -> SharesErrorBudget[StateT, ValuesT]:
        """Return the mechanism as one whose answers share one risk, from which more than single queries is paid."""
        seen = f"{what}, asked of {self.name}"
        raise InputError("mechanism", seen, f"a guard with mechanism='claims'{instead}")

    def lists(self) -> AnswersLists[StateT, ValuesT]:
        """Return the mechanism as one that answers queries that were fixed together."""
        return self.shares_error_budget("a list of queries", "; or ask one after another")

    @abstractmethod
    def start(self, noise: NoiseSource) -> StateT:
        """Return the state before the first query."""

    def trained(
        self, values: object, n: int | None, bounds: tuple[float, float], argument: str, binary: bool | None
    ) -> tuple[float, Known]:
        """Check the training part's per-record values; return their mean, and what they say about the holdout's."""
        squares: Literal["", "exact"] = "exact" if self.expects_spread and not binary else ""
        sums = values if isinstance(values, Totals) else UnitSums(values, n, bounds, argument, squares)
        ends = sums.ends if binary is None else binary
        return sums.mean.mean(), Known(sums.variance() if self.expects_spread and not ends else None, ends)

    @abstractmethod
    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> ValuesT:
        """Check the holdout's per-record values and return what `step` needs of them. Secret."""

    def needs_squares(self, known: Known) -> bool:
        """Return whether `read` needs the sum of squares, beside the sum, of values of which only totals are known."""
        return False

    def needs_group_sums(self, known: Known) -> bool:
        """Return whether `read` needs the sums of values by group, where single values are not in memory."""
        return False

    def statistic(self, evidence: Sequence[Evidence], known: Known) -> ValuesT:
        """Return what `step` needs of a statistic that is no mean, from the holdout's evidence about its parts."""
        seen = f"a statistic that is no mean over records, asked of {self.name}"
        raise InputError("metric", seen, "a guard with mechanism='claims'")

    @abstractmethod
    def step(self, state: StateT, train: float, holdout: ValuesT, noise: NoiseSource) -> tuple[StateT, Outcome]:
        """Answer one query."""

    @abstractmethod
    def fail(self, state: StateT, train: float, noise: NoiseSource) -> tuple[StateT, Outcome]:
        """Charge a query that could not be computed on the holdout as much as an answer from the holdout.

        Parameters and errors are those of `step`. The outcome's value is the train value, and says nothing.
        """

    @abstractmethod
    def refusal(self, state: StateT) -> BudgetExhausted | None:
        """Return why no further query is allowed, or ``None`` when one is. Public."""

    def refuses(self, state: StateT, train: float, known: Known) -> BudgetExhausted | None:
        """Return why this query is not allowed, or ``None``; before anything is computed on the holdout. Public."""
        return self.refusal(state)

    def client_refusal(self, state: StateT, known: Known) -> BudgetExhausted | None:
        """Return why whoever asks this may ask no more, though others may, or ``None``. Public."""
        return None

    def failed(self, before: StateT, after: StateT, known: Known) -> StateT:
        """Return the state after a query of somebody that failed, given what `fail` made of the one before."""
        return after

    @abstractmethod
    def restore(self, text: str) -> StateT:
        """Return the state that `MechanismState.to_text` wrote."""

    @abstractmethod
    def remaining(self, state: StateT) -> int | None:
        """Return how many more answers from the holdout there are at most; ``None`` without a limit. Public."""

    def pay_release(self, state: StateT, nats: Callable[[float], float]) -> tuple[StateT, Outcome]:
        """Pay for another private release about the holdout."""
        raise InputError("event", f"a look beside {self.name}", "a guard with mechanism='claims'")

    def noted(self, state: StateT) -> tuple[StateT, Outcome]:
        """Write a line into the history that tells nothing of the holdout, and costs nothing."""
        seen = f"a guard that answers by {self.name}"
        raise InputError("mechanism", seen, "one that makes claims, or a ladder, or a new guard of new records")

    def log_error_budget(self, state: StateT) -> float | None:
        """Return the natural logarithm of the remaining error budget, or ``None``. Public."""
        return None

    def first_half_width(self, score: float) -> float | None:
        """Return the half-width of a first answer that goes as expected; ``None`` where the certificate says it."""
        return None

    def epsilon(self, n: int) -> float:
        """Bound the differential privacy of the whole interaction about means of n records, in nats.

        ``inf`` unless a mechanism proves better; guarantees that do not rest on privacy have none.
        """
        return math.inf

    def noise_slack(self, n: int) -> float:
        """Bound what integer and floating-point arithmetic add to an answer's error, in units of the range.

        0 where the mechanism's own half-widths contain it.
        """
        return 0.0


def refuse_if(refusal: BudgetExhausted | None) -> None:
    """Raise the reason why nothing more is answered, where there is one.

    Examples
    --------
    >>> refuse_if(None)
    >>> refuse_if(BudgetExhausted("budget", 3, 3))
    Traceback (most recent call last):
    thresholdout.errors.BudgetExhausted: all 3 answers from the holdout of this guard are used; ...
    """
    if refusal is not None:
        raise refusal


class AnswersLists(Protocol[StateT, AskedT]):
    """What a mechanism does with queries that were fixed together."""

    def step_all(
        self, state: StateT, asked: Sequence[tuple[float, AskedT]], noise: NoiseSource, reserve: float = 0.2
    ) -> tuple[StateT, list[Outcome]]:
        """Answer queries that were fixed together."""

    def step_best(
        self, state: StateT, asked: Sequence[tuple[float, AskedT]], noise: NoiseSource, reserve: float, greatest: bool
    ) -> tuple[StateT, Outcome, int]:
        """Answer which of some queries has the best value."""

    def refusal(self, state: StateT, more: int = 1) -> BudgetExhausted | None:
        """Return why so many more queries are not allowed, or ``None``. Public."""

    def remaining(self, state: StateT) -> int | None:
        """Return how many more answers from the holdout there are at most. Public."""


class SharesErrorBudget(AnswersLists[StateT, ValuesT], Protocol[StateT, ValuesT]):
    """What a mechanism does beyond single queries whose answers share one risk."""

    def paired_counts(self, counts: PairedCounts, known: Known) -> ValuesT:
        """Return what `step` needs of a win rate."""

    def direct(self, state: StateT, train: float, known: Known) -> tuple[float, float]:
        """Return the half-width and the nats to expect of an interval that is stated directly. Public."""

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
