"""The holdout's side of a gate: tests of the claim that a candidate is better by more than delta.

The declared properties of the records determine the test. PROOFS.md, "Comparisons and gates".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from thresholdout.data.values import record_rounding
from thresholdout.limits.bets import best_bet, wins
from thresholdout.limits.binomial import log_one_law_tail
from thresholdout.limits.entropy import coin_divergence
from thresholdout.limits.group_sums import GroupSums, bet_against
from thresholdout.limits.normal_limits import NormalTest
from thresholdout.limits.own_sizes import own_sizes_lower
from thresholdout.limits.trinomial import difference_refuted
from thresholdout.mechanisms.base import ALIKE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.limits.bets import Sums
    from thresholdout.mechanisms.base import Grouped

__all__ = [
    "BetGate",
    "EntropyGate",
    "GateTest",
    "GroupGate",
    "HoeffdingGate",
    "Proposal",
    "SignGate",
    "TrinomialGate",
]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The training part's evidence on a candidate against the champion; public.

    The records' differences, candidate less champion, are out of fold and in [-1, 1]. Their variance is positive; for
    models that are right or wrong it is about the share of records on which exactly one of them is right. The numbers
    of records are effective ones. `delta` is the required gain, exclusive, in (-1, 1): negative for a tolerance.
    """

    difference: float
    variance: float
    n_train: float
    holdout_records: float
    delta: float = 0.0
    groups: Grouped | None = field(default=None, compare=False, repr=False)

    @property
    def deviation(self) -> float:
        """Standard deviation of the holdout's mean difference."""
        return math.sqrt(self.variance / self.holdout_records)

    @property
    def train_deviation(self) -> float:
        """Standard deviation of the training part's mean difference."""
        return math.sqrt(self.variance / self.n_train)


class GateTest(ABC):
    """The holdout's side of a comparison: whether the claim "better by more than delta" passes at a level.

    A test is an event that the node fixes; under every law with a false claim it has at most the level as probability.
    """

    @abstractmethod
    def passes(self, proposal: Proposal, log_level: float) -> bool:
        """Whether the claim is confirmed. Secret until it is released as an outcome that was paid for."""

    @abstractmethod
    def needed(self, proposal: Proposal, log_level: float) -> float:
        """Return the required distance of the mean above delta in standard deviations, about: public numbers only."""

    @abstractmethod
    def mirrored(self) -> GateTest:
        """Return the test of the opposite difference: of the champion against the candidate."""


@dataclass(frozen=True, slots=True)
class SignGate(GateTest):
    """The exact sign test: wins among the records on which exactly one of both models is right; ties are dropped.

    For delta = 0. Under a false claim and one law of independent records, the wins are binomial given the number of
    such records, with a probability of at most 1/2. For different laws, given the features, the tail of a binomial law
    bounds theirs from half of the records + 1 on, which every test at a level below 1/2 requires. At other levels the
    claim does not pass. `one_law` is false where claims are given the features.
    """

    wins: int = field(repr=False)
    losses: int = field(repr=False)
    one_law: bool

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        """Compare the binomial tail with the level."""
        if proposal.delta != 0.0 or (not self.one_law and log_level >= _HALF):
            return False
        return log_one_law_tail(self.wins, self.wins + self.losses, 0.5) <= log_level

    def needed(self, proposal: Proposal, log_level: float) -> float:
        """Return the normal quantile, and half a record more."""
        if not self.one_law and log_level >= _HALF:
            return math.inf
        return _normal_tail(log_level) + 1.0 / math.sqrt(max(1.0, proposal.variance * proposal.holdout_records))

    def mirrored(self) -> SignGate:
        """Return it with losses as wins."""
        return SignGate(self.losses, self.wins, self.one_law)


@dataclass(frozen=True, slots=True)
class TrinomialGate(GateTest):
    """The exact trinomial test, for independent records of one law and any delta."""

    wins: int = field(repr=False)
    losses: int = field(repr=False)
    records: int

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        """Whether a difference of at most delta is refuted; one of 0 by the sign test, as narrow and quicker."""
        if proposal.delta == 0.0:
            return log_one_law_tail(self.wins, self.wins + self.losses, 0.5) <= log_level
        return difference_refuted(self.wins, self.losses, self.records, proposal.delta, log_level)

    def needed(self, proposal: Proposal, log_level: float) -> float:
        """Return the normal quantile, and half a record more."""
        return _normal_tail(log_level) + 1.0 / math.sqrt(max(1.0, proposal.variance * proposal.holdout_records))

    def mirrored(self) -> TrinomialGate:
        """Return it with losses as wins."""
        return TrinomialGate(self.losses, self.wins, self.records)


@dataclass(frozen=True, slots=True)
class BetGate(GateTest):
    """A constant bet against "better by at most delta", for independent records of any laws and any bounded losses.

    The wealth is ``prod (1 + l (z_i - delta))``, z_i in [-1, 1]; for models that are right or wrong and delta = 0 it is
    the e-value ``exp(u S - K ln cosh u)`` with ``l = tanh u``. The bet is fixed by public numbers. `values` are
    ``(z + 1) / 2``; `swapped` takes ``1 - x`` for x, which is exact on their grid.
    """

    values: NDArray[np.float64] | Sums = field(repr=False)
    swapped: bool = False

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        """Compare the wealth with one over the level."""
        mean = _null(proposal)
        bet, _ = best_bet(mean, 0.25 * proposal.variance, self.values.size, log_level)
        null = mean + record_rounding(self.values.size)  # to which the rounding of values may have moved it
        return wins(self.values, bet, null, -log_level, mirrored=self.swapped)

    def needed(self, proposal: Proposal, log_level: float) -> float:
        """Return the distance at which a good bet wins."""
        mean = _null(proposal)
        _, radius = best_bet(mean, 0.25 * proposal.variance, self.values.size, log_level)
        return 2.0 * radius / proposal.deviation

    def mirrored(self) -> BetGate:
        """Return it with wins as losses."""
        return BetGate(self.values, not self.swapped)


@dataclass(frozen=True, slots=True)
class GroupGate(GateTest):
    """A bet on the sums of independent groups, or Chernoff's bound from their sizes, by choice of public numbers.

    `values` are sums of ``(z + 1) / 2``, ``None`` for a prediction. `normal` limits, which are approximate, test where
    public numbers allow them.
    """

    values: GroupSums | None = field(default=None, repr=False)
    normal: bool = False
    swapped: bool = False

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        """Compare the wealth, or the limit, with the required one."""
        assert proposal.groups is not None
        assert self.values is not None
        n = self.values.size
        rounding = 2.0 * record_rounding(n)
        null = math.nextafter(_null(proposal), 2.0) + rounding
        normal = self._normal(proposal, log_level)
        if normal is not None:
            return normal.refutes(self.values, null, log_level)
        bet, _ = _placed(proposal, proposal.groups, log_level)
        if bet > 0.0:
            return self.values.log_wealth(bet, null) >= -log_level
        mean = self.values.mean() - rounding
        return mean > null and own_sizes_lower(mean, proposal.groups.sizes, log_level, (), float(n)) >= null

    def needed(self, proposal: Proposal, log_level: float) -> float:
        """Return the distance at which the better of both tests passes."""
        assert proposal.groups is not None
        normal = self._normal(proposal, log_level)
        if normal is None:
            return 2.0 * _placed(proposal, proposal.groups, log_level)[1] / proposal.deviation
        null, groups = _null(proposal), proposal.groups
        correlation = ALIKE if groups.correlation is None else groups.correlation
        mean = bet_against(null, 0.25 * proposal.variance, correlation, groups.sizes, normal.nats(log_level))[1]
        return 2.0 * (mean - null) / proposal.deviation

    def _normal(self, proposal: Proposal, log_level: float) -> NormalTest | None:
        """Return the normal test where public numbers allow it."""
        groups = proposal.groups
        if not self.normal or groups is None or groups.trained is None:
            return None
        test = NormalTest(groups.sizes, groups.trained.mirrored() if self.swapped else groups.trained)
        return test if test.allowed(np.array([_null(proposal)]), log_level)[0] else None

    def mirrored(self) -> GroupGate:
        """Return it with ``1 - x`` for x, which is exact on the grid of the sums."""
        return GroupGate(None if self.values is None else self.values.mirrored(), self.normal, not self.swapped)


def _placed(proposal: Proposal, groups: Grouped, log_level: float) -> tuple[float, float]:
    """Return the bet against the null mean, 0 for the test by sizes, and the required distance of the mean above it."""
    null = _null(proposal)
    bet, mean = bet_against(
        null,
        0.25 * proposal.variance,
        ALIKE if groups.correlation is None else groups.correlation,
        groups.sizes,
        -log_level,
    )
    if own_sizes_lower(min(1.0, mean), groups.sizes, log_level, (), float(groups.sizes.n)) > null:
        bet = 0.0
    return bet, mean - null


@dataclass(frozen=True, slots=True)
class EntropyGate(GateTest):
    """A limit from relative entropy, for dependent records with N effective ones; `rounding` is of the mean."""

    mean: float = field(repr=False)
    effective: float
    rounding: float = 2.0**-50

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        """Compare N times the divergence with the logarithm of one over the level."""
        null = math.nextafter(0.5 * (1.0 + proposal.delta), 2.0)
        mean = self.mean - self.rounding
        # 1e-9 of the divergence is far above its rounding
        return mean >= null and -self.effective * coin_divergence(mean, null) * (1.0 - 1e-9) <= log_level

    def needed(self, proposal: Proposal, log_level: float) -> float:
        """Return Hoeffding's distance in standard deviations."""
        return 2.0 * math.sqrt(-0.5 * log_level / self.effective) / proposal.deviation

    def mirrored(self) -> EntropyGate:
        """Return it for one minus the mean."""
        return replace(self, mean=1.0 - self.mean)


@dataclass(frozen=True, slots=True)
class HoeffdingGate(GateTest):
    """Hoeffding's limit, for records that depend on each other and have only a variance inflation; N is ``n / Lambda``.

    By the dependence model ``ln E exp(u (q - E q)) <= u^2/(8 N)`` for every u, so ``P(q - E q >= t) <= exp(-2 N t^2)``.
    """

    mean: float = field(repr=False)
    records: float
    rounding: float = 2.0**-50

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        """Compare the exponent with the level."""
        above = self.mean - self.rounding - math.nextafter(0.5 * (1.0 + proposal.delta), 2.0)
        return above > 0.0 and -2.0 * self.records * above * above * (1.0 - 1e-9) <= log_level

    def needed(self, proposal: Proposal, log_level: float) -> float:
        """Return the distance in standard deviations."""
        return 2.0 * math.sqrt(-0.5 * log_level / self.records) / proposal.deviation

    def mirrored(self) -> HoeffdingGate:
        """Return it for one minus the mean."""
        return replace(self, mean=1.0 - self.mean)


def _null(proposal: Proposal) -> float:
    """Return the null mean of ``(z + 1) / 2`` for bets, below 1; the tests add rounding."""
    return min(0.5 * (1.0 + proposal.delta), math.nextafter(1.0, 0.0))


_HALF: Final = math.log(0.5)


def _normal_tail(log_level: float) -> float:
    """Return the upper normal quantile of a level."""
    from scipy.special import ndtri_exp

    return -float(ndtri_exp(log_level))
