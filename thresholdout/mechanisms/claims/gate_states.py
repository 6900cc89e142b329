"""Gates in the state of a guard: what is done about a candidate is fixed before the holdout is looked at.

A *move* is planned at a public state: which test, at which share of the error budget, or none. It is carried out in the
ledger's transaction, where others may have asked meanwhile: the share stays what was planned, and is one of the risk
that is left then. So a candidate of which the holdout was looked at is always tested, whatever that costs by then, and
one of which it was not never fails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from thresholdout.data.parts.totals import GroupTotals, Joint, Totals
from thresholdout.data.values import record_rounding
from thresholdout.limits.group_sums import GroupSums
from thresholdout.mechanisms.base import ALIKE
from thresholdout.mechanisms.claims.gate import (
    Decision,
    GateState,
    History,
    chance,
    checkpoint,
    climb,
    last_evaluation,
    propose,
    settle,
    share_of_error_budget,
    tolerated_shares,
    worth_a_checkpoint,
)
from thresholdout.mechanisms.claims.gate_tests import (
    BetGate,
    EntropyGate,
    GateTest,
    GroupGate,
    HoeffdingGate,
    Proposal,
    SignGate,
    TrinomialGate,
)
from thresholdout.mechanisms.claims.reading import bet_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from thresholdout.data.values import UnitRecords
    from thresholdout.limits.bets import Sums
    from thresholdout.mechanisms.base import Grouped
    from thresholdout.mechanisms.claims.grouped_records import GroupedRecords
    from thresholdout.mechanisms.claims.parameters import ClaimsParameters
    from thresholdout.mechanisms.claims.state import ClaimsState
    from thresholdout.noise.sources import NoiseSource

__all__ = [
    "FREE",
    "PROVED",
    "AtGate",
    "Candidate",
    "Climb",
    "Gains",
    "LastEvaluation",
    "Move",
    "Rules",
    "Tolerated",
    "Verdict",
    "advanced",
    "at_gate",
    "remembered_by",
]

TestName: TypeAlias = Literal[
    "sign test",
    "trinomial test",
    "bets",
    "bets on groups",
    "normal limits",
    "relative entropy",
    "Hoeffding's inequality",
]
"""Which test the holdout is put to; "normal limits" are bets on groups where public numbers do not allow them."""

Verdict: TypeAlias = Literal["keep", "reject", "skip", "step", "milestone", "unconfirmed", "worse", "unsettled"]
"""How an entry of a gate ended: *keep* and *milestone* are claims that were confirmed; *reject* and *unconfirmed* were
not; *skip* (rejected) and *step* (taken on the way) were decided by cross-validation alone. With a
tolerance, *keep* is "not worse by more", *worse* is confirmed too, and *unsettled* claims nothing."""

PROVED: Final = frozenset({"keep", "milestone"})
FREE: Final = frozenset({"skip", "step"})

#: Hoeffding's inequality tests where it has more than so many times the effective records of relative entropy.
MANY: Final = 2.0


@dataclass(frozen=True, slots=True)
class Gains:
    """By how much training records are better, in units of the metric's range. Public.

    Attributes
    ----------
    records : int
        Their number.
    mean, square : float
        Means of the gains and of their squares.
    groups : Grouped or None
        The records' groups, where these are declared.

    Examples
    --------
    >>> Gains.of(np.array([1.0, 0.0, -1.0, 1.0]))
    Gains(records=4, mean=0.25, square=0.75, groups=None)
    """

    records: int
    mean: float
    square: float
    groups: Grouped | None = None

    @classmethod
    def of(cls, gains: NDArray[np.float64], grouped: GroupedRecords | None = None) -> Gains:
        """Return what is needed of the gains of records in memory."""
        groups = None if grouped is None else grouped.known(gains, (-1.0, 1.0))
        return cls(gains.size, float(np.mean(gains)), float(np.mean(gains * gains)), groups)

    @classmethod
    def of_totals(cls, difference: Totals, groups: Grouped | None) -> Gains:
        """Return the same of a difference in ``(-1, 1)`` that an engine added up, each number rounded once."""
        total, squares, n, top = difference.mean.total, difference.sum_of_squares, difference.n, 1 << difference.bits
        mean = (2 * total - n * top) / (n * top)
        return cls(n, mean, (4 * squares - 4 * top * total + n * top * top) / (n * top * top), groups)


@dataclass(frozen=True, slots=True)
class Rules:
    """How a guard's gate tests candidates. Public.

    Parameters
    ----------
    parameters : ClaimsParameters
        The guard's.
    n : int
        Number of holdout records.
    delta : float
        By how much a candidate has to be better, in units of the metric's range, in (-1, 1): negative for a tolerance.
    sign : bool
        Whether the sign test may be used: values are 0 or 1, and the records were declared to have one law.
    grouped : bool
        Whether groups of both parts are declared.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.parameters import ClaimsParameters
    >>> Rules(ClaimsParameters(), 1000, 0.0, sign=True).test_name
    'sign test'
    >>> Rules(ClaimsParameters(), 1000, 0.01, sign=True).test_name
    'trinomial test'
    >>> Rules(ClaimsParameters(effective=500.0, inflation=2.0), 1000, 0.0, sign=True).test_name
    'relative entropy'
    >>> Rules(ClaimsParameters(effective=20.0, inflation=2.0), 1000, 0.0, sign=True).test_name  # a few share much
    "Hoeffding's inequality"
    """

    parameters: ClaimsParameters
    n: int
    delta: float
    sign: bool
    grouped: bool = False

    @property
    def approximate(self) -> bool:
        """Whether tests are approximate."""
        return self.parameters.normal_limits

    @property
    def test_name(self) -> TestName:
        """Which test confirms a claim."""
        if self.grouped:
            return "normal limits" if self.approximate else "bets on groups"
        if self.parameters.independent:
            if not self.sign:
                return "bets"
            return "sign test" if self.delta == 0.0 else "trinomial test"
        return "relative entropy" if self._entropy is not None else "Hoeffding's inequality"

    @property
    def effective(self) -> float:
        """Effective number of holdout records."""
        return self._entropy or self.n / self.parameters.inflation

    @property
    def _entropy(self) -> float | None:
        """Return the effective records for relative entropy, unless Hoeffding's inequality has many more."""
        found = self.parameters.effective
        return found if found is not None and MANY * found >= self.n / self.parameters.inflation else None

    def proposal(self, gains: Gains) -> Proposal:
        """Return what the training part says.

        Examples
        --------
        >>> from thresholdout.mechanisms.claims.parameters import ClaimsParameters
        >>> rules = Rules(ClaimsParameters(n_train=4.0), 1000, 0.0, sign=True)
        >>> rules.proposal(Gains.of(np.array([1.0, 0.0, 0.0, 0.0])))
        Proposal(difference=0.25, variance=0.4375, n_train=4.0, holdout_records=1000.0, delta=0.0)
        """
        mean, least, groups = gains.mean, 1.0 / gains.records, gains.groups
        variance = max(gains.square + least - mean * mean, least)  # as if one more record differed
        if groups is not None:
            effective = groups.sizes.effective(ALIKE if groups.correlation is None else groups.correlation)
            return Proposal(mean, variance, groups.training or effective, effective, self.delta, groups)
        return Proposal(mean, variance, self.parameters.n_train or self.effective, self.effective, self.delta)

    def foreseen(self, gains: Gains, log_level: float) -> float:
        """Return the probability, by the training part alone, that a test at a level confirms a candidate.

        Examples
        --------
        >>> from thresholdout.mechanisms.claims.parameters import ClaimsParameters
        >>> rules = Rules(ClaimsParameters(), 1000, 0.0, sign=True)
        >>> better, same = Gains(1000, 0.3, 0.3), Gains(1000, 0.0, 0.0)
        >>> rules.foreseen(better, -3.0) > 0.999 > rules.foreseen(same, -3.0)
        True
        """
        proposal = self.proposal(gains)
        needed = self.blank().needed(proposal, log_level)
        return chance(proposal.difference, proposal.train_deviation, proposal, needed)

    def blank(self) -> GateTest:
        """Return a test that has seen nothing, for what is foreseen of it."""
        half = np.full(self.n, 0.5) if self.test_name == "bets" else np.empty(0)
        return self._test(0, 0, half)

    def holdout(
        self,
        candidate: UnitRecords,
        champion: UnitRecords,
        noise: NoiseSource,
        grouped: GroupedRecords | None = None,
    ) -> GateTest:
        """Return the test of the holdout."""
        if grouped is not None:
            gains = grouped.sums(candidate.unit() - champion.unit())
            sizes = grouped.holdout_sizes
            return GroupGate(GroupSums(0.5 * (sizes + gains), sizes, candidate.bits + 1), self.approximate)
        if self.test_name in ("sign test", "trinomial test"):
            new, old = candidate.coins(noise), champion.coins(noise)
            return self._test(int(np.count_nonzero(new & ~old)), int(np.count_nonzero(old & ~new)), np.empty(0))
        return self._test(0, 0, 0.5 * (1.0 + candidate.unit() - champion.unit()))

    def holdout_of_totals(self, found: Joint | GroupTotals) -> GateTest:
        """Return the test of a holdout that an engine counted: of two models, or of their difference by group."""
        if isinstance(found, GroupTotals):
            return GroupGate(GroupSums(found.sums, found.sizes, found.bits), self.approximate)
        return self._test(found.more, found.less, bet_on(found))

    def _test(self, wins: int, losses: int, values: NDArray[np.float64] | Sums) -> GateTest:
        match self.test_name:
            case "sign test":
                return SignGate(wins, losses, one_law=True)
            case "trinomial test":
                return TrinomialGate(wins, losses, self.n)
            case "bets":
                return BetGate(values)
            case "bets on groups" | "normal limits":
                return GroupGate(None, self.approximate)
        mean, rounding = float(values.mean()) if values.size else 0.5, 2.0 * record_rounding(self.n)
        if self.test_name == "relative entropy":
            return EntropyGate(mean, self.effective, rounding)
        return HoeffdingGate(mean, self.effective, rounding)


class Move(ABC):
    """What is done about a candidate. Public, but for the test that it is given."""

    evaluates: bool
    """Whether the holdout is looked at."""

    @abstractmethod
    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Return the state after it, and how it ended."""


@dataclass(frozen=True, slots=True)
class Candidate(Move):
    """Keep a candidate if the holdout confirms that it is better, or reject it.

    Parameters
    ----------
    proposal : Proposal
        What the training part says of it against the champion.
    share : float or None
        Of the risk; ``None`` for a rejection without a look.
    """

    proposal: Proposal
    share: float | None

    @classmethod
    def planned(cls, state: GateState, proposal: Proposal, blank: GateTest) -> Candidate:
        """Decide whether a look is worth its price."""
        return cls(proposal, share_of_error_budget(state, proposal, blank))

    @property
    def evaluates(self) -> bool:  # type: ignore[override]
        """Whether the holdout is looked at."""
        return self.share is not None

    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Carry it out; see `Move.made`."""
        decision = propose(state, self.proposal, test, self.share)
        return decision.state, "skip" if self.share is None else decision.outcome


@dataclass(frozen=True, slots=True)
class Climb(Move):
    """Take a candidate or not by cross-validation, and certify a milestone when that is likely to succeed.

    Parameters
    ----------
    proposal : Proposal
        What the training part says of the candidate against the champion.
    whole : Proposal
        The same against the last certified model.
    on_the_way : bool
        Whether the champion is another one than the last certified model.
    evaluates : bool
        Whether the candidate is taken and tested against the last certified model.
    """

    proposal: Proposal
    whole: Proposal
    on_the_way: bool
    evaluates: bool

    @classmethod
    def planned(
        cls, state: GateState, proposal: Proposal, whole: Proposal, blank: GateTest, *, on_the_way: bool
    ) -> Climb:
        """Decide whether a milestone is worth a checkpoint."""
        taken, after = climb(_from_here(state, on_the_way), proposal)
        return cls(proposal, whole, on_the_way, taken and worth_a_checkpoint(after, whole, blank))

    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Carry it out; see `Move.made`."""
        taken, after = climb(_from_here(state, self.on_the_way), self.proposal)
        if not self.evaluates:
            return after, "step" if taken else "skip"
        return _milestone(checkpoint(after, self.whole, test))


@dataclass(frozen=True, slots=True)
class LastEvaluation(Move):
    """Test the champion against the last certified model at nearly all of the risk.

    Parameters
    ----------
    whole : Proposal
        What the training part says of it.
    """

    whole: Proposal

    @property
    def evaluates(self) -> bool:  # type: ignore[override]
        """Whether the holdout is looked at."""
        return True

    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Carry it out; see `Move.made`."""
        return _milestone(last_evaluation(state, self.whole, test))


@dataclass(frozen=True, slots=True)
class Tolerated(Move):
    """Test whether a candidate is worse, and whether it is not worse by more than a tolerance.

    Parameters
    ----------
    proposal : Proposal
        What the training part says of it, with a delta of minus the tolerance.
    shares : tuple of float
        See `tolerated_shares`.
    """

    proposal: Proposal
    shares: tuple[float, float]

    @classmethod
    def planned(cls, state: GateState, proposal: Proposal, blank: GateTest, left: float) -> Tolerated:
        """Fix the shares."""
        return cls(proposal, tolerated_shares(state, proposal, blank, left))

    @property
    def evaluates(self) -> bool:  # type: ignore[override]
        """Whether the holdout is looked at: always, since harmless proposals say nothing of the next one."""
        return True

    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Carry it out; see `Move.made`."""
        decision = settle(state, self.proposal, test, self.shares)
        return decision.state, "unsettled" if decision.outcome == "reject" else decision.outcome


@dataclass(frozen=True, slots=True)
class AtGate:
    """A move of a gate in the state of its guard.

    Parameters
    ----------
    gate : str
        What the gate is about.
    move : Move
        What is done.
    """

    gate: str
    move: Move

    @property
    def evaluates(self) -> bool:
        """Whether the holdout is looked at."""
        return self.move.evaluates

    def made(self, state: ClaimsState, test: GateTest) -> tuple[ClaimsState, Verdict]:
        """Carry it out; see `Move.made`."""
        after, verdict = self.move.made(remembered_by(state, self.gate), test)
        return advanced(state, self.gate, after, verdict), verdict


def at_gate(gate: str, plan: Callable[[GateState], Move]) -> Callable[[ClaimsState], AtGate]:
    """Return a plan for the state of a guard, given one for what it remembers of a gate."""
    return lambda state: AtGate(gate, plan(remembered_by(state, gate)))


def remembered_by(state: ClaimsState, gate: str) -> GateState:
    """Return what a guard's state remembers of a gate."""
    numbers = state.climbs.get(_tag(gate))
    if numbers is None:
        return GateState(state.log_error_budget)
    count, *sums = numbers[:4]
    return GateState(state.log_error_budget, History(int(count), *sums), *numbers[4:])


def advanced(state: ClaimsState, gate: str, after: GateState, verdict: Verdict) -> ClaimsState:
    """Return the guard's state after a move of a gate that ended in a verdict; see `remembered_by`.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.predictor import PredictorState
    >>> from thresholdout.mechanisms.claims.state import ClaimsState
    >>> before = ClaimsState(-3.0, 0, 0, 0, -9, 0, PredictorState())
    >>> moved = advanced(before, "accuracy", GateState(-3.5, History(1, 0.5, 0.25, 0.01)), "reject")
    >>> moved.hits, moved.free, remembered_by(moved, "accuracy")
    (1, 0, GateState(log_error_budget=-3.5, history=History(count=1, total=0.5, squares=0.25, noise=0.01), ahead=0.0,
    ...))
    """
    charged = verdict in ("reject", "unconfirmed")
    count, *sums = astuple(after.history)
    return replace(
        state,
        log_error_budget=after.log_error_budget,
        asked=state.asked + 1,
        hits=state.hits + charged,
        outcomes=state.outcomes + charged,
        free=state.free + (verdict in FREE),
        climbs={**state.climbs, _tag(gate): (float(count), *sums, after.ahead, after.uncertain)},
    )


def _tag(gate: str) -> str:
    return sha256(gate.encode()).hexdigest()[:16]


def _from_here(state: GateState, on_the_way: bool) -> GateState:
    """Forget a lead that belongs to another climb."""
    return state if on_the_way else replace(state, ahead=0.0, uncertain=0.0)


def _milestone(decision: Decision) -> tuple[GateState, Verdict]:
    return decision.state, "milestone" if decision.outcome == "keep" else "unconfirmed"
