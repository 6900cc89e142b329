"""Gates in the state of a guard: the move about a candidate is fixed before the holdout is evaluated.

A *move* is planned at a public state: a test at a share of the error budget, or none. It is carried out in the ledger's
transaction, and others may have sent queries meanwhile. The planned share then is one of the remaining error budget. So
a candidate that was evaluated on the holdout is always tested, at any price by then, and one that was not never fails.
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
"""The test of the holdout; "normal limits" are bets on groups where public numbers do not allow them."""

Verdict: TypeAlias = Literal["keep", "reject", "skip", "step", "milestone", "unconfirmed", "worse", "unsettled"]
"""The end of a gate's entry: *keep* and *milestone* are claims that were confirmed; *reject* and *unconfirmed* were
not; *skip* (rejected) and *step* (taken on the way) were decided by cross-validation alone. With a tolerance, *keep* is
"not worse by more", *worse* is confirmed too, and *unsettled* claims nothing."""

PROVED: Final = frozenset({"keep", "milestone"})
FREE: Final = frozenset({"skip", "step"})

#: Hoeffding's inequality tests where it has more than so many times the effective records of relative entropy,
#: which needs fewer away from a mean of 1/2.
MANY: Final = 2.0


@dataclass(frozen=True, slots=True)
class Gains:
    """Gains of training records, in units of the metric's range: their number, means of them and of squares. Public."""

    records: int
    mean: float
    square: float
    groups: Grouped | None = None

    @classmethod
    def of(cls, gains: NDArray[np.float64], grouped: GroupedRecords | None = None) -> Gains:
        """Return the numbers of the gains of records in memory."""
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
    """The tests of a guard's gate. Public.

    `delta` is the required gain, in units of the metric's range, in (-1, 1): negative for a tolerance. `sign` allows
    the sign test: values are 0 or 1, and the records were declared to have one law.
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
        """The test that confirms a claim."""
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
        """Return the training part's evidence."""
        mean, least, groups = gains.mean, 1.0 / gains.records, gains.groups
        variance = max(gains.square + least - mean * mean, least)  # as if one more record differed
        if groups is not None:
            effective = groups.sizes.effective(ALIKE if groups.correlation is None else groups.correlation)
            return Proposal(mean, variance, groups.training or effective, effective, self.delta, groups)
        return Proposal(mean, variance, self.parameters.n_train or self.effective, self.effective, self.delta)

    def foreseen(self, gains: Gains, log_level: float) -> float:
        """Return the probability, by the training part alone, that a test at a level confirms a candidate."""
        proposal = self.proposal(gains)
        needed = self.blank().needed(proposal, log_level)
        return chance(proposal.difference, proposal.train_deviation, proposal, needed)

    def blank(self) -> GateTest:
        """Return a test without values, for its predicted power."""
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
    """A planned step about a candidate. Public, except for the test that it is given."""

    evaluates: bool
    """Whether the holdout is evaluated."""

    @abstractmethod
    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Return the state after it, and its verdict."""


@dataclass(frozen=True, slots=True)
class Candidate(Move):
    """Keep a candidate if the holdout confirms that it is better, or reject it; without a share it is not evaluated."""

    proposal: Proposal
    share: float | None

    @classmethod
    def planned(cls, state: GateState, proposal: Proposal, blank: GateTest) -> Candidate:
        """Decide whether an evaluation is worth its price."""
        return cls(proposal, share_of_error_budget(state, proposal, blank))

    @property
    def evaluates(self) -> bool:  # type: ignore[override]
        """Whether the holdout is evaluated."""
        return self.share is not None

    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Carry it out; see `Move.made`."""
        decision = propose(state, self.proposal, test, self.share)
        return decision.state, "skip" if self.share is None else decision.outcome


@dataclass(frozen=True, slots=True)
class Climb(Move):
    """Take a candidate or not by cross-validation, and certify a milestone when that is likely to succeed.

    `whole` is the evidence against the last certified model, which is another one than the champion if `on_the_way`.
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
    """Test the champion against the last certified model at nearly all of the error budget."""

    whole: Proposal

    @property
    def evaluates(self) -> bool:  # type: ignore[override]
        """Whether the holdout is evaluated."""
        return True

    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Carry it out; see `Move.made`."""
        return _milestone(last_evaluation(state, self.whole, test))


@dataclass(frozen=True, slots=True)
class Tolerated(Move):
    """Test whether a candidate is worse, and whether it is not worse by more than a tolerance: `tolerated_shares`."""

    proposal: Proposal
    shares: tuple[float, float]

    @classmethod
    def planned(cls, state: GateState, proposal: Proposal, blank: GateTest, left: float) -> Tolerated:
        """Fix the shares."""
        return cls(proposal, tolerated_shares(state, proposal, blank, left))

    @property
    def evaluates(self) -> bool:  # type: ignore[override]
        """Whether the holdout is evaluated: always, since harmless proposals say nothing of the next one."""
        return True

    def made(self, state: GateState, test: GateTest) -> tuple[GateState, Verdict]:
        """Carry it out; see `Move.made`."""
        decision = settle(state, self.proposal, test, self.shares)
        return decision.state, "unsettled" if decision.outcome == "reject" else decision.outcome


@dataclass(frozen=True, slots=True)
class AtGate:
    """A move of a gate in the state of its guard."""

    gate: str
    move: Move

    @property
    def evaluates(self) -> bool:
        """Whether the holdout is evaluated."""
        return self.move.evaluates

    def made(self, state: ClaimsState, test: GateTest) -> tuple[ClaimsState, Verdict]:
        """Carry it out; see `Move.made`."""
        after, verdict = self.move.made(remembered_by(state, self.gate), test)
        return advanced(state, self.gate, after, verdict), verdict


def at_gate(gate: str, plan: Callable[[GateState], Move]) -> Callable[[ClaimsState], AtGate]:
    """Return a plan for the state of a guard, given one for its memory of a gate."""
    return lambda state: AtGate(gate, plan(remembered_by(state, gate)))


def remembered_by(state: ClaimsState, gate: str) -> GateState:
    """Return a guard's memory of a gate."""
    numbers = state.climbs.get(_tag(gate))
    if numbers is None:
        return GateState(state.log_error_budget)
    count, *sums = numbers[:4]
    return GateState(state.log_error_budget, History(int(count), *sums), *numbers[4:])


def advanced(state: ClaimsState, gate: str, after: GateState, verdict: Verdict) -> ClaimsState:
    """Return the guard's state after a move of a gate that ended in a verdict; see `remembered_by`."""
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
