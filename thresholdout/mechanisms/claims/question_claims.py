"""From a question to its claim: what is forecast of it, how claims about it are tested, and where the first one lies.

All of it is fixed by public numbers, before the holdout is looked at; only a test that is given values sees them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thresholdout.data.arguments import check_count
from thresholdout.limits.moments import Sums, ThreeValues
from thresholdout.mechanisms.base import Known
from thresholdout.mechanisms.claims.edges import EdgeNoise, private_noise
from thresholdout.mechanisms.claims.final import reserving_window
from thresholdout.mechanisms.claims.interval import (
    BetTest,
    Claim,
    MeanTest,
    Scales,
    TwoEnds,
    better,
    entropy,
    hoeffding,
    ones,
)
from thresholdout.mechanisms.claims.paired_models import Duel
from thresholdout.mechanisms.claims.parameters import ClaimsParameters
from thresholdout.mechanisms.claims.predictor import Forecast, Memory, forecast
from thresholdout.mechanisms.claims.reading import FINE, Reading, grid_steps, variance_of
from thresholdout.mechanisms.claims.score import RAISED, Window, first_window, lowered
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.mechanisms.claims.statistic_claims import StatisticTest
from thresholdout.mechanisms.claims.wins import WinsTest, forecast_wins
from thresholdout.noise.sources import NoiseSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FirstClaim", "QuestionClaims"]

_COMMON: Final = 1e-4  # least distance of the most frequent value from the ends of the range


@dataclass(frozen=True, slots=True)
class FirstClaim:
    """The first claim about a question; see `QuestionClaims.first_claim`.

    Attributes
    ----------
    claim : Claim
        What claims about this question say; it has no values to be tested on.
    made : Forecast
        Of the holdout's value.
    window : Window
        Its edges, and the share of the risk that is set aside for directions.
    log_level : float
        Natural logarithm of its level.
    exponent : int
        Of the noise in its edges.
    scales : tuple of float
        Of the noises in an edge, in units of the range.
    """

    claim: Claim
    made: Forecast
    window: Window
    log_level: float
    exponent: int
    scales: Scales

    @property
    def interval(self) -> tuple[float, float]:
        """What it stands for, in units of the range."""
        return self.claim.interval(self.window.lo, self.window.hi, self.log_level, self.scales)


class QuestionClaims:
    """The part of `ClaimsMechanism` that turns questions into claims.

    Parameters
    ----------
    parameters : ClaimsParameters
        Confidence, limits, noise, and how the records depend on each other.
    n : int
        Number of records.
    """

    def __init__(self, parameters: ClaimsParameters, n: int) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        self._hoeffding = n / parameters.inflation
        self._effective = parameters.effective or self._hoeffding
        # one effect that a few records share makes limits by relative entropy wide, not the values uncertain
        self._likely = max(self._effective, self._hoeffding)
        self._training = parameters.train_records or self._likely
        self._queries = math.inf if parameters.queries is None else parameters.queries
        self._budget = math.inf if parameters.budget is None else parameters.budget
        self._private = private_noise(parameters, self._n)
        self._edges = EdgeNoise(parameters, self._private)

    def first_claim(self, state: ClaimsState, train: float, known: Known) -> FirstClaim:
        """Return the first claim about a question with this training value: public numbers only.

        Parameters
        ----------
        state : ClaimsState
            Before the question.
        train : float
            Training value, in [0, 1].
        known : Known
            What is known of the question's values.
        """
        made, variance = self._forecast(state, train, known)
        claim = self._test(made, variance, known)
        window = self._window(state, made, claim)
        level = lowered(state.log_risk + math.log1p(-window.share - 2.0 * RAISED))
        exponent = min(state.exponent, self._exponent(variance, known))
        return FirstClaim(claim, made, window, level, exponent, () if known.duel else self._edges.scales(exponent))

    def _sizes(self, known: Known) -> tuple[int, float, float]:
        """Return the records that a question is about, and how many independent ones vary as these and training do."""
        part = known.part
        if part is None:
            return self._n, self._likely, self._training
        effective = part.records if part.effective is None else part.effective
        return part.records, effective, max(1.0, part.training * effective / part.records)

    def _independent(self, known: Known) -> bool:
        """Whether the question is about a mean of independent records."""
        part = known.part
        return self.parameters.independent if part is None else part.effective is None

    def _bets(self, known: Known) -> bool:
        """Whether claims about a mean of values that are not only 0 or 1 are tested by bets on each of them."""
        return self._independent(known) and self._private is None

    def _forecast(self, state: ClaimsState, train: float, known: Known) -> tuple[Forecast, float]:
        """Forecast the holdout value of a question with this training value."""
        if known.duel is not None:
            return forecast_wins(known.duel, self._n)[0], known.duel.share * (1.0 - known.duel.share)
        _, effective, training = self._sizes(known)
        inside = (train * training + 1.0) / (training + 2.0)
        variance = known.layout.variance if known.layout is not None else variance_of(inside, known, effective)
        memory = Memory() if known.difference else state.memory
        return forecast(memory, train, variance, effective, training), variance

    def _doubt(self, variance: float, known: Known) -> float:
        """Return how far the width of a stated interval is likely to be off, as a share of it."""
        if known.duel is not None:
            number, ratio = forecast_wins(known.duel, self._n)[1], self._n / known.duel.records
        else:
            records, effective, training = self._sizes(known)
            number, ratio = 4.0 * variance * records, effective / training
        return 0.5 * math.sqrt((1.0 + ratio) / number)

    def _claim(
        self, made: Forecast, variance: float, holdout: Reading, noise: NoiseSource, fine: int = FINE
    ) -> MeanTest | TwoEnds:
        """Return how claims about this question are tested on the holdout."""
        known = holdout.known
        if known.duel is not None:
            return self._test(made, variance, known, fine, duel=holdout.duel)
        if known.layout is not None:
            return StatisticTest(grid_steps(made.deviation, fine), known.layout, holdout.evidence)
        if known.binary and self._independent(known):
            return self._test(made, variance, known, fine, value=holdout.count(noise))
        if self._bets(known):
            return self._test(made, variance, known, fine, values=holdout.bet_on)
        return self._test(made, variance, known, fine, value=holdout.on_grid(self._steps(made, fine)))

    def _test(
        self,
        made: Forecast,
        variance: float,
        known: Known,
        fine: int = FINE,
        *,
        value: int = 0,
        values: NDArray[np.float64] | Sums | None = None,
        duel: Duel | None = None,
    ) -> MeanTest | TwoEnds:
        """Return how claims about a question are tested, and what they say; without its value, for the latter only."""
        steps = self._steps(made, fine)
        if known.duel is not None:
            return WinsTest(steps, duel or Duel(0, 0, self._n), forecast_wins(known.duel, self._n)[2])
        if known.layout is not None:
            return StatisticTest(steps, known.layout, ())
        records, effective, _ = self._sizes(known)
        if self._independent(known) and known.binary:
            return MeanTest(records, value, ones(records))
        if self._bets(known):
            common = 0.5 if known.difference else min(max(made.mean, _COMMON), 1.0 - _COMMON)
            return BetTest(steps, ThreeValues(records, 0, 0) if values is None else values, variance, common)
        limit = hoeffding(steps, self._hoeffding if known.part is None else effective)
        if known.part or self.parameters.effective is not None or self._independent(known):
            limit = better(entropy(steps, self._effective if known.part is None else effective), limit)
        return MeanTest(steps, value, limit)

    def _steps(self, made: Forecast, fine: int) -> int:
        steps = grid_steps(made.deviation, fine)
        return steps if self._private is None else self._private.steps(steps, self._n)

    def _window(self, state: ClaimsState, made: Forecast, claim: Claim) -> Window:
        steps = claim.steps
        place = reserving_window if self.parameters.final_check else first_window
        deviation = math.hypot(made.deviation * claim.reach, self._edges.deviation()) * steps
        return place(made.mean * steps, deviation, steps, state.questions, self.parameters.queries)

    def _exponent(self, variance: float, known: Known) -> int:
        """Return the exponent of the edges' noise for values of this variance."""
        return self._edges.exponent(math.sqrt(variance / self._sizes(known)[1]))

    def _pad(self, claim: Claim, scales: Scales) -> int | None:
        """Return how far beyond an edge the value may be after all, in steps."""
        if not scales and isinstance(claim, MeanTest):
            return None
        return math.ceil(3.0 * sum(scales) * claim.steps) + 1
