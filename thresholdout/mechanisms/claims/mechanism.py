"""Thresholdout with one number: claims about the holdout, paid from the risk that is left.

For each question a claim is made: its value is within some distance of what the training value and earlier answers
say. A claim that is confirmed is the answer, and costs only what was set aside for the other outcomes; if it is not,
the direction is told and the next claim is made. PROOFS.md, "The risk that is left", has the theorem: the probability
that any confirmed claim is false is at most beta, whoever asks, whatever, however often, and whenever anyone stops.

References
----------
C. Dwork, V. Feldman, M. Hardt, T. Pitassi, O. Reingold, A. Roth, "Generalization in adaptive data analysis and holdout
reuse", NeurIPS 2015, for the test with noise in threshold and comparison; R. Rogers et al., "Guaranteed validity for
empirical approaches to adaptive data analysis", AISTATS 2020, for guesses that are checked. The accounting is another.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Final

from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms.base import Mechanism, Outcome
from thresholdout.mechanisms.claims.guess import Forecast, Memory, forecast, learn
from thresholdout.mechanisms.claims.interval import (
    UNITS,
    BetTest,
    Claim,
    Letter,
    MeanTest,
    Scales,
    entropy,
    hoeffding,
    ones,
)
from thresholdout.mechanisms.claims.parameters import ClaimsParameters
from thresholdout.mechanisms.claims.reading import Known, Reading, grid_steps, grid_value, read_values, variance_of
from thresholdout.mechanisms.claims.score import RAISED, Found, Window, first_window, search
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.mechanisms.precision import check_count
from thresholdout.noise import NoiseSource
from thresholdout.queries import record_rounding

__all__ = ["Claims"]

_UNKNOWN: Final = Known()
_NO_NOISE: Final = 1 << 20  # exponent of a state without noise
_TYPICAL: Final = 0.0475  # variance of a value that is right 95 times in 100
_COARSEST: Final = -1
_FINEST: Final = -30  # exponents of noise scales, in the range


class Claims(Mechanism[ClaimsState, Reading]):
    """Claims about means, confirmed or not.

    Parameters
    ----------
    parameters : ClaimsParameters
        Confidence, limits, noise, and how the records depend on each other.
    n : int
        Number of records.

    Attributes
    ----------
    parameters : ClaimsParameters
        As given.

    Examples
    --------
    >>> from thresholdout.noise import SeededNoise
    >>> mechanism, noise = Claims(ClaimsParameters(queries=100), n=1000), SeededNoise(0)
    >>> values = mechanism.read([1] * 940 + [0] * 60, 1000, (0, 1), "values", Known(binary=True))
    >>> state, outcome = mechanism.step(mechanism.start(noise), 0.95, values, noise)
    >>> outcome.value, outcome.source, [round(limit, 3) for limit in outcome.interval]
    (0.95, 'train', [0.907, 0.985])
    """

    name: ClassVar[str] = "thresholdout"

    def __init__(self, parameters: ClaimsParameters, n: int) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        self._effective = parameters.effective or n / (parameters.inflation or 1.0)
        self._training = parameters.train_records or self._effective
        self._plain = parameters.effective is None and parameters.inflation is None
        self._queries = math.inf if parameters.queries is None else parameters.queries
        self._budget = math.inf if parameters.budget is None else parameters.budget

    def start(self, noise: NoiseSource) -> ClaimsState:
        """Return the state before the first question."""
        log_risk = math.log1p(-self.parameters.confidence) - 1e-12
        exponent = self._exponent(_TYPICAL)
        return ClaimsState(log_risk, 0, 0, 0, exponent, _edge(exponent, noise), Memory())

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = _UNKNOWN
    ) -> Reading:
        """Check per-record values and reduce them to a count or an exact mean."""
        return read_values(values, n, bounds, argument, known)

    def step(
        self, state: ClaimsState, train: float, holdout: Reading, noise: NoiseSource
    ) -> tuple[ClaimsState, Outcome]:
        """Answer one query; see `Mechanism.step`."""
        refusal = self.refusal(state)
        if refusal is not None:
            raise refusal
        if not 0.0 <= train <= 1.0:
            raise InputError("train", train, "a number in [0, 1]")
        made, variance = self._forecast(state, train, holdout.known)
        claim = self._claim(made, variance, holdout, noise)
        window = self._window(state, made, claim.steps)
        state = self._quieter(state, variance, noise)
        scales = self._scales(state.exponent)
        self._check_width(state, window, claim, scales)
        edge = state.edge

        def ask(lo: int, hi: int, log_level: float) -> Letter:
            nonlocal claim, edge
            letter = claim.letter(lo, hi, log_level, scales, (edge, *self._tests(state.exponent, noise)))
            if letter != "confirmed":
                edge, claim = _edge(state.exponent, noise), claim.wider() if letter == "wide" else claim
            return letter

        found = search(window, claim.steps, state.log_risk, ask, self._pad(claim, scales), claim.others)
        low, high = self._rounded(*claim.interval(found.lo, found.hi, found.log_level, scales))
        after = ClaimsState(
            found.log_risk,
            state.asked + 1,
            state.hits + (found.letters > 0),
            state.letters + found.letters,
            state.exponent,
            edge,
            _learned(state.memory, made, found, claim.steps),
        )
        return after, Outcome(
            value=_told(made, found, low, high, claim.steps),
            source="holdout" if found.letters else "train",
            hits=state.hits,
            asked=after.asked,
            interval=(low, high),
        )

    def fail(self, state: ClaimsState, train: float, noise: NoiseSource) -> tuple[ClaimsState, Outcome]:
        """Tell that a question could not be computed: the letter *raised*; see `Mechanism.fail`."""
        refusal = self.refusal(state)
        if refusal is not None:
            raise refusal
        after = ClaimsState(
            state.log_risk + math.log(RAISED) - 1e-12,
            state.asked + 1,
            state.hits + 1,
            state.letters + 1,
            state.exponent,
            _edge(state.exponent, noise),
            state.memory,
        )
        return after, Outcome(train, "failed", state.hits, after.asked, interval=(0.0, 1.0))

    def refusal(self, state: ClaimsState) -> BudgetExhausted | None:
        """Return why no further query is allowed, or ``None``."""
        if state.hits >= self._budget:
            return BudgetExhausted("budget", state.hits, int(self._budget))
        if state.asked >= self._queries:
            return BudgetExhausted("queries", state.asked, int(self._queries))
        return None

    def restore(self, text: str) -> ClaimsState:
        """Return the state that `ClaimsState.to_text` wrote."""
        return ClaimsState.from_text(text)

    def remaining(self, state: ClaimsState) -> int | None:
        """Return how many more answers from the holdout there are; ``None`` without a budget."""
        return None if self.parameters.budget is None else self.parameters.budget - state.hits

    def _forecast(self, state: ClaimsState, train: float, known: Known) -> tuple[Forecast, float]:
        """Forecast the holdout value of a question with this training value."""
        inside = (train * self._training + 1.0) / (self._training + 2.0)
        variance = variance_of(inside, known, self._effective)
        return forecast(state.memory, train, variance, self._effective, self._training), variance

    def _claim(self, made: Forecast, variance: float, holdout: Reading, noise: NoiseSource) -> Claim:
        """Return how claims about this question are tested."""
        if self._plain and holdout.known.binary:
            return MeanTest(self._n, holdout.count(noise), ones(self._n))
        steps = grid_steps(made.deviation)
        if self._plain:
            return BetTest(steps, holdout.values.unit(), variance)
        value = grid_value(holdout.values.exact_mean(), steps)
        if self.parameters.inflation is not None:
            return MeanTest(steps, value, hoeffding(steps, self._effective))
        return MeanTest(steps, value, entropy(steps, self._effective))

    def _window(self, state: ClaimsState, made: Forecast, steps: int) -> Window:
        return first_window(made.mean * steps, made.deviation * steps, steps, state.asked, self.parameters.queries)

    def _check_width(self, state: ClaimsState, window: Window, claim: Claim, scales: Scales) -> None:
        """Refuse a question whose first claim would be wider than declared: public numbers only."""
        most = self.parameters.at_most
        if most is None:
            return
        level = state.log_risk + math.log1p(-window.share - RAISED)
        low, high = claim.interval(window.lo, window.hi, level, scales)
        if high - low > 2.0 * most:
            raise BudgetExhausted("width", state.asked, state.asked)

    def _rounded(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval for the values as they were given, from one for values that were rounded to a grid."""
        rounding = record_rounding(self._n)
        return max(0.0, low - rounding), min(1.0, high + rounding)

    def _exponent(self, variance: float) -> int:
        """Return the exponent of the edges' noise for values of this variance."""
        scale = self.parameters.noise * math.sqrt(variance / self._effective)
        return min(max(math.floor(math.log2(scale)), _FINEST), _COARSEST) if scale > 0.0 else _NO_NOISE

    def _quieter(self, state: ClaimsState, variance: float, noise: NoiseSource) -> ClaimsState:
        """Draw the edges' noise anew where it is too loud for this question; the question decides, not the records."""
        exponent = self._exponent(variance)
        if exponent >= state.exponent:
            return state
        return ClaimsState(
            state.log_risk, state.asked, state.hits, state.letters, exponent, _edge(exponent, noise), state.memory
        )

    def _scales(self, exponent: int) -> Scales:
        """Return the scales of the noises in an edge of a test, in units of the range."""
        return () if exponent == _NO_NOISE else (math.ldexp(1.0, exponent), math.ldexp(1.0, exponent + 1))

    def _pad(self, claim: Claim, scales: Scales) -> int | None:
        """Return how far beyond an edge the value may be after all, in steps."""
        if not scales and isinstance(claim, MeanTest):
            return None
        return math.ceil(3.0 * sum(scales) * claim.steps) + 1

    def _tests(self, exponent: int, noise: NoiseSource) -> tuple[int, int]:
        """Draw the noise of both halves of a test."""
        if exponent == _NO_NOISE:
            return 0, 0
        scale = _scale(exponent + 1)
        return noise.laplace(scale), noise.laplace(scale)


def _scale(exponent: int) -> Fraction:
    return Fraction(UNITS) * Fraction(2) ** exponent


def _edge(exponent: int, noise: NoiseSource) -> int:
    return 0 if exponent == _NO_NOISE else noise.laplace(_scale(exponent))


def _learned(memory: Memory, made: Forecast, found: Found, steps: int) -> Memory:
    return learn(memory, made, (found.lo - 0.5) / steps, (found.hi + 0.5) / steps)


def _told(made: Forecast, found: Found, low: float, high: float, steps: int) -> float:
    """Return the value that is told: the forecast where it was confirmed, otherwise the middle of the cell."""
    value = made.mean if not found.letters else 0.5 * (found.lo + found.hi) / steps
    return min(max(value, low), high)
