"""From a query to its claim: its prediction, the tests of claims about it, and the place of the first one.

All of it is fixed by public numbers, before the holdout is evaluated; only a test with values sees them.

*Win rates*: among the records on which exactly one of two models is right, the share of the first. For independent
records of one law, the wins of a model are Bin(K, theta) given the number K of such records. theta is the probability
to win given that the models differ: a number that the law and the models fix. K is a function of the holdout and
secret. It neither is shown nor places a claim: claims are intervals of theta, placed by the training part's wins and
losses. A test compares exact binomial tails at both ends with the level,

    theta is refuted where   P(Bin(K, theta) >= wins) <= w   (from above)   or   P(Bin(K, theta) <= wins) <= w.

A claim whose outside is refuted on both sides is *confirmed*. If the estimand is below the lower end, the first tail at
the estimand is at most that at the end, so the test passes with at most the probability w, given K and hence on
average. PROOFS.md, "Comparisons and gates" (G5), has the rest. For records of different laws there is no such estimand:
the win rate given K is no fixed number. A population difference by bets has one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from graphs.numerics.rounding import shown_above
from thresholdout.data.arguments import check_count
from thresholdout.errors import InputError
from thresholdout.limits.bets import Sums, ThreeValues
from thresholdout.limits.binomial import log_one_law_tail
from thresholdout.limits.group_sums import BlockSums, GroupSizes, GroupSums
from thresholdout.limits.normal_limits import ExpectedGroups
from thresholdout.mechanisms.base import ALIKE, Blocks, Grouped, Known, PairedCounts
from thresholdout.mechanisms.claims.final import reserving_window
from thresholdout.mechanisms.claims.group_tests import BlockBetTest, GroupBetTest, GroupNormalTest, own_sizes
from thresholdout.mechanisms.claims.grouped_records import bets_win
from thresholdout.mechanisms.claims.interval import (
    UNITS,
    BetTest,
    Claim,
    ClaimOutcome,
    MeanTest,
    Noise,
    Scales,
    TwoEnds,
    better,
    entropy,
    hoeffding,
    ones,
)
from thresholdout.mechanisms.claims.parameters import ClaimsParameters
from thresholdout.mechanisms.claims.predictor import Prediction, PredictorState, predict
from thresholdout.mechanisms.claims.reading import FINE, Reading, grid_steps, variance_of
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, Window, first_window, lowered
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.mechanisms.claims.trinomial_claims import TrinomialTest
from thresholdout.noise.sources import NoiseSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "EdgeNoise",
    "FirstClaim",
    "Private",
    "QueryClaims",
    "WinsTest",
    "check_covered",
    "predicted_wins",
    "private_noise",
    "refuse_private",
]

_NO_NOISE: Final = 1 << 20  # exponent of a state without noise
_COARSEST: Final = -1
_FINEST: Final = -30  # exponents of noise scales, in the range

_OUTCOMES: Final = 10  # that share the declared epsilon, where no budget is declared
_EACH: Final = 4  # outcomes of one query, at most: it then is answered by the whole possible range
_FOR_EACH: Final = 2  # outcomes for each answer from the holdout
_FINE: Final = 64  # grid steps for each record, so that rounding adds a 64th to the sensitivity
_INSTEAD: Final = "It covers guard.ask and guard.score about means over records, one query after another."


@dataclass(frozen=True, slots=True)
class Private:
    """Noise that makes all answers together private; PROOFS.md, P6.

    `scale` is that of the noise that both edges share, in units of ``2**-40`` of the range; the noise of each test has
    twice this scale. After `outcomes` outcomes other than *confirmed* nothing is tested any more. `moved` is D, the
    sensitivity of a mean to one record in the same units, rounded up, with its rounding to a grid.
    """

    scale: int
    outcomes: int
    moved: int

    @property
    def epsilon(self) -> float:
        """Bound on the privacy loss of all answers together, under replacing one record."""
        exact = Fraction(2 * self.moved * self.outcomes, self.scale)
        found = float(exact)
        return found if Fraction(found) >= exact else math.nextafter(found, math.inf)

    def most(self, outcomes: int) -> int:
        """Return the limit on one query's outcomes after so many, so that a misleading one leaves some."""
        return min(_EACH, self.outcomes - outcomes)

    def steps(self, steps: int, n: int) -> int:
        """Return a power of two of grid steps that is fine enough for D."""
        return max(steps, 1 << math.ceil(math.log2(_FINE * n)))


def private_noise(parameters: ClaimsParameters, n: int) -> Private | None:
    """Return the noise of parameters; ``None`` where no epsilon is declared."""
    if parameters.epsilon is None:
        return None
    outcomes = _OUTCOMES if parameters.budget is None else _FOR_EACH * parameters.budget
    moved = -(-(_FINE + 1) * UNITS // (_FINE * n))
    scale = math.ceil(Fraction(2 * moved * outcomes) / Fraction(parameters.epsilon))
    if 8 * scale > UNITS:
        least = 16.0 * moved * outcomes / UNITS  # at which the scale is an eighth of the range
        seen = f"{parameters.epsilon:g} for {n} records and {outcomes} outcomes, whose noise would hide everything"
        advice = "Or pass fewer holdout_answers=, or take more records."
        raise InputError("epsilon", seen, f"at least {shown_above(least)}", advice)
    return Private(scale, outcomes, moved)


def check_covered(known: Known) -> None:
    """Refuse a query whose sensitivity to one record is larger than the proved one."""
    if known.layout is not None or known.difference or known.paired_counts is not None or known.part is not None:
        raise refuse_private(
            "a comparison of models" if known.layout is None else "a statistic that is not a mean over records"
        )


def refuse_private(what: str) -> InputError:
    """Return the refusal of a request that releases more than outcomes."""
    return InputError("epsilon", "a guard with epsilon=", f"None for {what}", _INSTEAD)


class EdgeNoise:
    """The noise of a guard's edges, by its parameters, or private noise of one scale for all queries.

    Scales are powers of two of the range, named by their exponents, which a state keeps; a private one has one scale
    and one exponent.
    """

    def __init__(self, parameters: ClaimsParameters, private: Private | None) -> None:
        self._noise = parameters.noise
        self._private = private

    def exponent(self, deviation: float) -> int:
        """Return the exponent of the scale for values whose mean has this standard deviation."""
        if self._private is not None:
            return 0
        scale = self._noise * deviation
        return min(max(math.floor(math.log2(scale)), _FINEST), _COARSEST) if scale > 0.0 else _NO_NOISE

    def scales(self, exponent: int) -> Scales:
        """Return the scales of the noises in an edge of a test, in units of the range."""
        if exponent == _NO_NOISE:
            return ()
        scale = self._scale(exponent)
        return float(scale / UNITS), float(2 * scale / UNITS)

    def edge(self, exponent: int, noise: NoiseSource) -> int:
        """Draw the noise that both edges share."""
        return 0 if exponent == _NO_NOISE else noise.laplace(self._scale(exponent))

    def tests(self, exponent: int, noise: NoiseSource) -> tuple[int, int]:
        """Draw the noise of both halves of a test."""
        if exponent == _NO_NOISE:
            return 0, 0
        scale = 2 * self._scale(exponent)
        return noise.laplace(scale), noise.laplace(scale)

    def deviation(self) -> float:
        """Return the standard deviation of the noise in an edge, where it is large; else 0."""
        return 0.0 if self._private is None else math.sqrt(10.0) * self._private.scale / UNITS

    def _scale(self, exponent: int) -> Fraction:
        return _units(exponent) if self._private is None else Fraction(self._private.scale)


@cache
def _units(exponent: int) -> Fraction:
    """Return a scale, from its exponent."""
    return Fraction(UNITS) * Fraction(2) ** exponent


_SAFETY: Final = 1.5  # standard deviations by which K is expected to be smaller than in the training part
_WIDER: Final = 0.8  # of the expected K, after a claim that was too narrow
_MORE: Final = 1e-9  # of a probability, far above the rounding of a subtraction and of the inverted tail
_SMALLEST: Final = -690.0  # logarithm of the smallest level at which something is claimed


class WinsTest(TwoEnds):
    """Claims about a win rate, with edges on a grid of shares; `expected` is K by the training part."""

    def __init__(self, steps: int, holdout: PairedCounts, expected: float) -> None:
        self.steps = steps
        self._holdout = holdout
        self._expected = max(1.0, expected)

    def wider(self) -> WinsTest:
        """Return the same test with a smaller number of records to expect."""
        return WinsTest(self.steps, self._holdout, _WIDER * self._expected)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the limits of the edges with the expected number of records."""
        low = _lower(self._expected * lo / self.steps, self._expected, log_level)
        high = _lower(self._expected * (self.steps - hi) / self.steps, self._expected, log_level)
        return low, 1.0 if high <= 0.0 else 1.0 - high

    def ends(self, log_level: float, expected: float) -> tuple[int, int]:
        """Return the exact limits of the wins, rounded conservatively to the grid."""
        wins, losses = self._holdout.wins, self._holdout.losses
        low, high = (_certain(k, wins + losses, log_level) for k in (wins, losses))
        return math.floor(low * self.steps), self.steps - math.floor(high * self.steps)

    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Compare exact tails at both ends with the level; if one is above, compare the win rate with the edges."""
        low, high = self.interval(lo, hi, log_level, scales)
        wins, losses = self._holdout.wins, self._holdout.losses
        number = wins + losses
        # more is refuted than claimed, by more than the rounding of the subtraction from 1
        above = high >= 1.0 or log_one_law_tail(losses, number, 1.0 - high + _MORE) <= log_level
        if above and (low <= 0.0 or log_one_law_tail(wins, number, low) <= log_level):
            return "confirmed"
        if wins * self.steps > hi * number:
            return "above"
        return "below" if wins * self.steps < lo * number else "wide"


def predicted_wins(train: PairedCounts, records: int) -> tuple[Prediction, float, float]:
    """Predict the win rate on the holdout; public numbers only."""
    seen = train.wins + train.losses
    number, ratio = (seen + 1.0) * records / (train.records + 1.0), records / train.records
    made = predict(PredictorState(), train.share, train.share * (1.0 - train.share), number, max(1.0, seen))
    return made, number, number - _SAFETY * math.sqrt(number * (1.0 + ratio))


def _lower(wins: float, number: float, log_level: float) -> float:
    """Return p at which the tail of so many wins is the level; real counts will do."""
    if wins <= 0.0 or log_level < _SMALLEST:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(wins, number - wins + 1.0, math.exp(log_level)))


def _certain(wins: int, number: int, log_level: float) -> float:
    """Return a p that is refuted together with all smaller ones."""
    low = _lower(wins, number, log_level) * (1.0 - _MORE)
    return low if log_one_law_tail(wins, number, low) <= log_level else 0.0


_ALONG: Final = 1.5  # factor on the correlation in blocks, where it falls evenly over a window
_COMMON: Final = 1e-4  # least distance of the most frequent value from the ends of the range


@dataclass(frozen=True, slots=True)
class FirstClaim:
    """The first claim about a query; see `QueryClaims.first_claim`.

    `claim` has no values to be tested on. `window` are its edges and the share of the error budget for directions,
    `exponent` and `scales` those of the noise in its edges.
    """

    claim: Claim
    made: Prediction
    window: Window
    log_level: float
    exponent: int
    scales: Scales

    @property
    def interval(self) -> tuple[float, float]:
        """Its interval, in units of the range."""
        return self.claim.interval(self.window.lo, self.window.hi, self.log_level, self.scales)


class QueryClaims:
    """The part of `ClaimsMechanism` that turns queries into claims."""

    def __init__(self, parameters: ClaimsParameters, n: int) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        self._groups = None if parameters.sizes is None else GroupSizes(parameters.sizes)
        if self._groups is not None and self._groups.n != n:
            raise InputError("sizes", f"groups of {self._groups.n} records", f"groups of {n} records in all")
        self._hoeffding = n / parameters.inflation
        self._effective = parameters.effective or self._hoeffding
        # one effect that a few records share makes limits by relative entropy wide, not the values uncertain
        self._likely = max(self._effective, self._hoeffding)
        self._training = parameters.n_train or self._likely
        self._queries = math.inf if parameters.queries is None else parameters.queries
        self._budget = math.inf if parameters.budget is None else parameters.budget
        self._private = private_noise(parameters, self._n)
        self._edges = EdgeNoise(parameters, self._private)

    def first_claim(self, state: ClaimsState, train: float, known: Known) -> FirstClaim:
        """Return the first claim about a query with this training value: public numbers only."""
        made, variance = self._predict(state, train, known)
        claim = self._test(made, variance, known)
        window = self._window(state, made, claim)
        level = lowered(state.log_error_budget + math.log1p(-window.share - 2.0 * FAILURE_SHARE))
        exponent = min(state.exponent, self._exponent(variance, known))
        return FirstClaim(
            claim, made, window, level, exponent, () if self.noiseless(known) else self._edges.scales(exponent)
        )

    def _sizes(self, known: Known) -> tuple[int, float, float]:
        """Return the records of a query, and the effective sample sizes of these and of the training part."""
        part, groups = known.part, known.groups
        if groups is not None:
            effective = groups.sizes.effective(ALIKE if groups.correlation is None else groups.correlation)
            return groups.sizes.n, effective, groups.training or effective
        if known.blocks is not None and self._bets_on_blocks(known):
            blocks = known.blocks
            return self._n, self._n / blocks.inflation, max(1.0, blocks.training / blocks.inflation)
        if part is None and self._groups is not None and known.layout is None:
            correlation, number = self.parameters.correlation, self._groups.groups
            effective = self._groups.effective(ALIKE if correlation is None else correlation)
            return self._n, effective, effective * (self.parameters.n_train or number) / number
        if part is None:
            return self._n, self._likely, self._training
        effective = part.records if part.effective is None else part.effective
        return part.records, effective, max(1.0, part.training * effective / part.records)

    def typical(self, score: float) -> Known:
        """Return the public knowledge of right and wrong before any model, except for a likely score."""
        if self._groups is None:
            return Known(binary=True, blocks=self._expected_blocks())
        _, effective, training = self._sizes(Known(binary=True))
        groups, correlation = self._groups.groups * training / effective, self.parameters.correlation
        nobody = np.zeros(0, dtype=np.int64)
        trained = None
        if self.parameters.normal_limits and 0.0 < score < 1.0:
            alike = ALIKE if correlation is None else correlation
            trained = ExpectedGroups.of(self._groups, groups, score, alike)
        return Known(binary=True, groups=Grouped(nobody, self._groups, correlation, training, groups, trained))

    def _expected_blocks(self) -> Blocks | None:
        """Return the blocks of a series whose correlation is given, where bets on them are expected to win."""
        counts, correlation, most = self.parameters.blocks, self.parameters.correlation, self._n / self._effective
        if counts is None or correlation is None:
            return None
        sizes, nothing = GroupSizes(counts), np.zeros(0)
        alike = (sizes.n / sizes.groups - 1.0) * correlation
        if not bets_win(1.0 + alike, most):
            return None
        inflation = min(1.0 + _ALONG * alike, most)
        training = self._n if self.parameters.n_train is None else self.parameters.n_train * inflation
        number = training * sizes.groups / sizes.n
        return Blocks(nothing.astype(np.int64), nothing, sizes, correlation, training, inflation, number)

    def _independent(self, known: Known) -> bool:
        """Whether the query is about a mean of independent records."""
        part = known.part
        return self.parameters.independent if part is None else part.effective is None

    def _bets(self, known: Known) -> bool:
        """Whether claims about a mean of values other than 0 and 1 are tested by bets on each of them."""
        return self._independent(known) and self._private is None

    def _bets_on_groups(self, known: Known) -> bool:
        """Whether claims about a mean are tested by bets on the sums of groups."""
        return known.groups is not None and self._private is None

    def _bets_on_blocks(self, known: Known) -> bool:
        """Whether claims about a mean may be tested by bets on the sums of blocks."""
        whole = known.part is None and known.layout is None and known.paired_counts is None
        return known.blocks is not None and whole and self._private is None and self.parameters.allowance is None

    def trinomial(self, known: Known) -> bool:
        """Whether interval hypotheses are tested by the exact trinomial test."""
        return known.trinomial and self._bets(known)

    def noiseless(self, known: Known) -> bool:
        """Whether tests have no noise in their edges: they compare exact tails, or are approximate."""
        normal = self.parameters.normal_limits and self._bets_on_groups(known)
        return normal or known.paired_counts is not None or self.trinomial(known)

    def _predict(self, state: ClaimsState, train: float, known: Known) -> tuple[Prediction, float]:
        """Predict the holdout value of a query with this training value."""
        if known.paired_counts is not None:
            return predicted_wins(known.paired_counts, self._n)[0], known.paired_counts.share * (
                1.0 - known.paired_counts.share
            )
        _, effective, training = self._sizes(known)
        inside = (train * training + 1.0) / (training + 2.0)
        variance = known.layout.variance if known.layout is not None else variance_of(inside, known, effective)
        memory = PredictorState() if known.difference else state.memory
        return predict(memory, train, variance, effective, training), variance

    def _doubt(self, variance: float, known: Known) -> float:
        """Return the likely error of a stated interval's width, as a share of it."""
        if known.paired_counts is not None:
            number, ratio = predicted_wins(known.paired_counts, self._n)[1], self._n / known.paired_counts.records
        else:
            records, effective, training = self._sizes(known)
            number, ratio = 4.0 * variance * records, effective / training
            units = known.groups or (known.blocks if self._bets_on_blocks(known) else None)
            if units is not None:
                number = 0.5 * units.sizes.groups
        return 0.5 * math.sqrt((1.0 + ratio) / number)

    def _claim(
        self, made: Prediction, variance: float, holdout: Reading, noise: NoiseSource, fine: int = FINE
    ) -> MeanTest | TwoEnds:
        """Return the tests of claims about this query on the holdout."""
        known = holdout.known
        if known.paired_counts is not None:
            return self._test(made, variance, known, fine, paired_counts=holdout.paired_counts)
        if known.layout is not None:
            from thresholdout.mechanisms.claims.statistic_claims import StatisticTest

            return StatisticTest(grid_steps(made.deviation, fine), known.layout, holdout.evidence)
        if self._bets_on_groups(known) or self._bets_on_blocks(known):
            return self._test(made, variance, known, fine, sums=holdout.group_sums)
        if known.binary and self._independent(known):
            return self._test(made, variance, known, fine, value=holdout.count(noise))
        if self.trinomial(known):
            return self._test(made, variance, known, fine, paired_counts=holdout.signs(noise))
        if self._bets(known):
            return self._test(made, variance, known, fine, values=holdout.bet_on)
        return self._test(made, variance, known, fine, value=holdout.on_grid(self._steps(made, fine)))

    def _test(
        self,
        made: Prediction,
        variance: float,
        known: Known,
        fine: int = FINE,
        *,
        value: int = 0,
        values: NDArray[np.float64] | Sums | None = None,
        sums: GroupSums | None = None,
        paired_counts: PairedCounts | None = None,
    ) -> MeanTest | TwoEnds:
        """Return the tests and intervals of claims about a query; without its value, for the latter only."""
        steps = self._steps(made, fine)
        if known.paired_counts is not None:
            return WinsTest(
                steps, paired_counts or PairedCounts(0, 0, self._n), predicted_wins(known.paired_counts, self._n)[2]
            )
        if known.layout is not None:
            from thresholdout.mechanisms.claims.statistic_claims import StatisticTest

            return StatisticTest(steps, known.layout, ())
        records, effective, _ = self._sizes(known)
        if known.groups is not None and self._bets_on_groups(known):
            common = 0.5 if known.difference else min(max(made.mean, _COMMON), 1.0 - _COMMON)
            test = GroupNormalTest if self.parameters.normal_limits else GroupBetTest
            return test(steps, sums, known.groups, None if known.binary else variance, common)
        sizes = self._groups if known.part is None else None
        if known.groups is not None:
            sizes = known.groups.sizes
        if sizes is not None:
            return MeanTest(steps, value, own_sizes(steps, sizes))
        if self._independent(known) and known.binary:
            return MeanTest(records, value, ones(records))
        if self.trinomial(known):
            gain = 2.0 * min(max(made.mean, 0.0), 1.0) - 1.0
            return TrinomialTest(steps, paired_counts or PairedCounts(0, 0, records), 4.0 * variance + gain * gain)
        if self._bets(known):
            common = 0.5 if known.difference else min(max(made.mean, _COMMON), 1.0 - _COMMON)
            return BetTest(steps, ThreeValues(records, 0, 0) if values is None else values, variance, common)
        limit = hoeffding(steps, self._hoeffding if known.part is None else effective)
        if known.part or self.parameters.effective is not None or self._independent(known):
            limit = better(entropy(steps, self._effective if known.part is None else effective), limit)
        if known.blocks is not None and self._bets_on_blocks(known):
            common = 0.5 if known.difference else min(max(made.mean, _COMMON), 1.0 - _COMMON)
            seen = sums if isinstance(sums, BlockSums) else None
            return BlockBetTest(steps, seen, known.blocks, limit, None if known.binary else variance, common)
        return MeanTest(steps, value, limit)

    def _steps(self, made: Prediction, fine: int) -> int:
        steps = grid_steps(made.deviation, fine)
        return steps if self._private is None else self._private.steps(steps, self._n)

    def _window(self, state: ClaimsState, made: Prediction, claim: Claim) -> Window:
        steps = claim.steps
        place = reserving_window if self.parameters.final_check else first_window
        deviation = math.hypot(made.deviation, self._edges.deviation()) * steps
        return place(made.mean * steps, deviation, steps, state.queries, self.parameters.queries)

    def _exponent(self, variance: float, known: Known) -> int:
        """Return the exponent of the edges' noise for values of this variance."""
        return self._edges.exponent(math.sqrt(variance / self._sizes(known)[1]))

    def _pad(self, claim: Claim, scales: Scales) -> int | None:
        """Return the largest distance of the value beyond an edge after a direction, in steps."""
        if not scales and isinstance(claim, MeanTest):
            return None
        return math.ceil(3.0 * sum(scales) * claim.steps) + 1
