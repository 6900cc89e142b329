"""One bit for a client: whether a proposal is certified to be better than the client's present model.

A claim "it is better" is tested at the level ``w = q R``. *Keep* leaves w of the remaining error budget R, *reject*
leaves ``(1 - q) R`` and claims nothing, and a little is set aside for failures. q is a function of the number of the
client's kept proposals, which is public. Clients know the training labels, so their training values decide nothing.
Where no outcome could be certified, because both tables agree on nearly all records, the proposal is rejected without
an evaluation, free of charge. PROOFS.md, "Comparisons and gates" (G9).

The tests take no training value for evidence: the exact sign test has no parameter, and bets are a fixed mixture. Each
test gives a number that is at most ln w with probability at most w where the claim "better" is false. The least number
that it can give is public: where that is more than ln w, no evaluation is needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from thresholdout.data.client_states import client_key
from thresholdout.data.values import record_rounding
from thresholdout.errors import BudgetExhausted
from thresholdout.limits.bets import log_wealth
from thresholdout.limits.binomial import log_one_law_tail
from thresholdout.limits.entropy import coin_divergence
from thresholdout.limits.group_bets import difference_bets
from thresholdout.limits.group_sums import GroupSums
from thresholdout.mechanisms.claims.clients import client_of, credited
from thresholdout.mechanisms.claims.gate_states import FREE, Verdict
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, lowered
from thresholdout.mechanisms.claims.state import ClaimsState

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.data.values import UnitRecords
    from thresholdout.noise.sources import NoiseSource

__all__ = [
    "Betting",
    "DifferenceTest",
    "Divergence",
    "GroupBetting",
    "Inflated",
    "Proposed",
    "Proposer",
    "Signs",
    "proposal_refusal",
    "proposer_of",
]

_BOLDEST: Final = 0.9  # of the stake: a record that is lost then costs ln 10
_LN_2: Final = math.log(2.0)
_SLACK: Final = 1e-9  # nats


@dataclass(frozen=True, slots=True)
class DifferenceTest(ABC):
    """A test of "better on average", from each record's difference z in [-1, 1] as ``(z + 1) / 2``.

    `records` is the number of those on which both tables differ, where that is public; that of all otherwise.
    """

    records: int

    name: ClassVar[str]

    @abstractmethod
    def log_p(self, values: UnitRecords, noise: NoiseSource) -> float:
        """Return a number that is at most ln w with probability at most w where the claim is false. Secret."""

    @property
    @abstractmethod
    def least(self) -> float:
        """The least number that `log_p` can return, or less; public."""


@dataclass(frozen=True, slots=True)
class Signs(DifferenceTest):
    """The exact sign test, for independent records of any laws on each of which exactly one of both is right.

    Hoeffding's theorem gives it for levels below a half only, so anything above is returned as 0.
    """

    name: ClassVar[str] = "sign test"

    def log_p(self, values: UnitRecords, noise: NoiseSource) -> float:
        """Return the tail of the binomial law of fair coins; values between become coins."""
        return self._tail(int(np.count_nonzero(values.coins(noise))))

    @property
    def least(self) -> float:
        """The number for wins on all records."""
        return self._tail(self.records)

    def _tail(self, wins: int) -> float:
        found = log_one_law_tail(wins, self.records, 0.5)
        return found if found < -_LN_2 - _SLACK else 0.0


@dataclass(frozen=True, slots=True)
class Betting(DifferenceTest):
    """A mixture of constant bets, for independent records of any laws and any bounded losses.

    The bets are 0.9, 0.45, 0.225, ... down to about one over the root of the number of records, in equal parts: one of
    them is within a factor of the root of two of the best possible one, for any law.
    """

    name: ClassVar[str] = "bets"

    @property
    def bets(self) -> tuple[float, ...]:
        """The bets on each record, as shares of the wealth."""
        halvings = math.ceil(0.5 * math.log2(max(2, self.records)))
        return tuple(_BOLDEST * 0.5**k for k in range(halvings + 1))

    def log_p(self, values: UnitRecords, noise: NoiseSource) -> float:
        """Return one over the wealth, at most 1."""
        return self._mixed(values.unit())

    @property
    def least(self) -> float:
        """The number for wins on all records."""
        top = math.log(sum((1.0 + bet) ** min(self.records, 1000) for bet in self.bets) / len(self.bets))
        return -top - max(0, self.records - 1000) * math.log1p(_BOLDEST) - _SLACK

    def _mixed(self, values: NDArray[np.float64]) -> float:
        null = 0.5 + record_rounding(self.records)  # to which the rounding of values may have moved the mean
        logs = np.array([log_wealth(values, 2.0 * bet, null) for bet in self.bets])
        wealth = float(np.logaddexp.reduce(logs)) - math.log(len(self.bets)) - _SLACK
        return min(0.0, -wealth)


@dataclass(frozen=True, slots=True)
class GroupBetting(DifferenceTest):
    """A mixture of constant bets on the sums of independent groups, with any dependence inside.

    Bets and weights are those of an evaluation set's differences: functions of the groups' sizes alone.
    """

    index: NDArray[np.int64] = field(repr=False, compare=False)

    name: ClassVar[str] = "bets on groups"

    def log_p(self, values: UnitRecords, noise: NoiseSource) -> float:
        """Return one over the wealth, at most 1."""
        sums = np.bincount(self.index, weights=values.unit()).astype(np.float64, copy=False)
        null = 0.5 + record_rounding(self.records)  # to which the rounding of values may have moved the mean
        return min(0.0, -self._mixed(GroupSums(sums, self._sizes(), values.bits), null))

    @property
    def least(self) -> float:
        """The number for wins on all records."""
        sizes = self._sizes()
        # less by more than `log_wealth` takes off for rounding
        return -self._mixed(GroupSums(sizes, sizes, 0), 0.5) - 1e-6 - 1e-9 * sizes.size

    def _sizes(self) -> NDArray[np.float64]:
        return np.bincount(self.index).astype(np.float64)

    def _mixed(self, sums: GroupSums, null: float) -> float:
        sizes = self._sizes()
        largest = float(sizes.max())
        bets, weights = difference_bets(sizes.size, largest, float(self.records), null)
        logs = np.array([sums.log_wealth(float(bet) / largest, null) for bet in bets])
        return float(np.logaddexp.reduce(logs + np.log(weights))) - _SLACK


@dataclass(frozen=True, slots=True)
class Divergence(DifferenceTest):
    """Relative entropy, for records that depend on each other, with effective sample size N."""

    effective: float

    name: ClassVar[str] = "relative entropy"

    def log_p(self, values: UnitRecords, noise: NoiseSource) -> float:
        """Return the exponent of the limit."""
        return self._exponent(values.exact_mean().mean() - record_rounding(self.records))

    @property
    def least(self) -> float:
        """The number for wins on all records."""
        return self._exponent(1.0)

    def _exponent(self, mean: float) -> float:
        return -self.effective * coin_divergence(mean, 0.5) * (1.0 - _SLACK) if mean > 0.5 else 0.0


@dataclass(frozen=True, slots=True)
class Inflated(DifferenceTest):
    """Hoeffding's limit, for records with a known variance inflation; `effective` is ``n / Lambda``."""

    effective: float

    name: ClassVar[str] = "Hoeffding's inequality"

    def log_p(self, values: UnitRecords, noise: NoiseSource) -> float:
        """Return the exponent of the limit."""
        return self._exponent(values.exact_mean().mean() - record_rounding(self.records) - 0.5)

    @property
    def least(self) -> float:
        """The number for wins on all records."""
        return self._exponent(0.5)

    def _exponent(self, above: float) -> float:
        return -2.0 * self.effective * above * above * (1.0 - _SLACK) if above > 0.0 else 0.0


_FIRST: Final = 0.1  # share of the error budget of the first proposal
_BELIEF: Final = 2.0  # proposals that it counts for
_MOST: Final = 0.9  # leaves a tenth for a rejection, which then costs 2.3 nats
_KEPT: Final = math.log1p(-2.0 * FAILURE_SHARE)


@dataclass(frozen=True, slots=True)
class Proposer:
    """The memory of one client's proposals; public: the tested ones, and the certified ones among them."""

    asked: float = 0.0
    kept: float = 0.0

    @property
    def share(self) -> float:
        """q, the share of the error budget for the test of the next one."""
        return min(_MOST, (_FIRST * _BELIEF + self.kept) / (_BELIEF + self.asked))


def proposer_of(state: ClaimsState, client: str) -> Proposer:
    """Return a state's memory of a client's proposals."""
    return Proposer(*state.climbs.get(_known_as(client), ())[:2])


def proposal_refusal(state: ClaimsState, client: str, allowance: float | None) -> BudgetExhausted | None:
    """Return why a client may propose no more, or ``None``: the longer outcome must fit the allowance."""
    if not client or allowance is None:
        return None
    proposer, known = proposer_of(state, client), client_of(state, client)
    longest = -math.log(min(proposer.share, 1.0 - proposer.share)) - 2.0 * _KEPT
    asked = round(known.asked + proposer.asked)
    return BudgetExhausted("allowance", asked, asked) if known.released + longest > allowance else None


@dataclass(frozen=True, slots=True)
class Proposed:
    """Keep a client's proposal if the holdout certifies it, or reject it; without an evaluation it is a rejection."""

    client: str
    evaluates: bool

    @classmethod
    def planned(cls, state: ClaimsState, client: str, test: DifferenceTest) -> Proposed:
        """Decide whether an evaluation can certify anything."""
        return cls(client, test.least <= _level(state, proposer_of(state, client).share))

    def made(self, state: ClaimsState, test: float) -> tuple[ClaimsState, Verdict]:
        """Carry it out, with the result of the test; see `thresholdout.guard.query_engine.Move`.

        q is that of the present state, as for the allowance: other proposals may have been decided since the plan.
        """
        if not self.evaluates:
            return _counted(state, "skip"), "skip"
        before = proposer_of(state, self.client)
        level = _level(state, before.share)
        verdict: Verdict = "keep" if test <= level else "reject"
        left = level if verdict == "keep" else _level(state, 1.0 - before.share)
        numbers = (before.asked + 1.0, before.kept + (verdict == "keep"), 0.0, 0.0, 0.0, 0.0)
        after = replace(state, log_error_budget=left, climbs={**state.climbs, _known_as(self.client): numbers})
        return _counted(credited(after, self.client, state.log_error_budget - left), verdict), verdict


def _counted(state: ClaimsState, verdict: Verdict) -> ClaimsState:
    """Count a proposal as `ClaimsState.agrees` finds it in a history."""
    charged = verdict == "reject"
    return replace(
        state,
        asked=state.asked + 1,
        hits=state.hits + charged,
        outcomes=state.outcomes + charged,
        free=state.free + (verdict in FREE),
    )


def _level(state: ClaimsState, share: float) -> float:
    """Return the logarithm of a share of the budget beside the reserve for failures, rounded down."""
    return lowered(state.log_error_budget + math.log(share) + _KEPT)


def _known_as(client: str) -> str:
    """Return a state's name for a client's proposals: no text that somebody else chose is in it."""
    return f"proposals:{client_key(client)}"
