"""Guess and check: an answer is guessed from one part of the records and checked on the other, which says yes or no.

Round i, tolerance tau, guess a, mean c of the records that check::

    the check bounds the truth within tau of a:   answer a, half-width tau                           (costs a bit)
    otherwise:                                    answer c rounded to a grid, with its half-width    (costs the answer)

The part that checks is looked at through yes and no only, and through the few answers after a no. Its history can be
told in few nats as long as guesses are good, so every question is one of few that are fixed given the part that
guesses; see `thresholdout.mechanisms.description`. How a guess is made does not matter for what answers are worth, only
for how often the check passes. It can be the other part's mean with as much Gaussian noise as the check still allows,
an answer of the Gaussian guard or the sparse vector on the other part, or the train value, for which no records have to
be set aside.

References
----------
[R20] R. Rogers, A. Roth, A. Smith, N. Srebro, O. Thakkar, B. Woodworth, "Guaranteed validity for empirical approaches
to adaptive data analysis", AISTATS 2020, for the idea. The bounds here are others: relative entropy and empirical
Bernstein instead of a moment generating function optimised for every question, and failed checks told relative to their
guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, Outcome, Past, Source
from thresholdout.mechanisms.description import FixedQuestion, choice_nats, index_nats
from thresholdout.mechanisms.gaussian import GaussianGuard, GaussianParameters
from thresholdout.mechanisms.parts import equal_groups, group_numbers, shuffled
from thresholdout.mechanisms.precision import check_count, check_grid, check_number
from thresholdout.mechanisms.thresholdout import SparseVector, ThresholdoutParameters
from thresholdout.noise import NoiseSource
from thresholdout.queries import UnitRecords, record_rounding, unit_records

__all__ = ["GuessAndCheck", "GuessAndCheckParameters", "GuessAndCheckState"]

_FORMAT = "guess-and-check/1"
_ONE = 1 << 40  # steps of a noisy guess
_DEVIATIONS = 4.0
_UNIFORM = 0.25  # share of the code for answers after a no that does not look at the guess


@dataclass(frozen=True, slots=True)
class GuessAndCheckParameters:
    """Public parameters of `GuessAndCheck`, in units of the query's range.

    Parameters
    ----------
    tolerance : float
        tau, the half-width of a guess that passes; in (0, 0.5].
    confidence : float
        Probability with which all half-widths hold at once, in (0, 1).
    guess : {"train", "noisy"}, GaussianParameters or ThresholdoutParameters
        How guesses are made. "train": the train value, and all records check. The others set a part of the records
        aside for guesses, so that the rest answers for all; a guard takes them with ``identically_distributed=True``
        only. "noisy": the mean of the guessing part with Gaussian noise of the standard deviation
        ``sqrt(((tau - r)/4)^2 - 1/(4 n_guess) - 1/(4 n_check))``, r the Hoeffding radius of the check at this question,
        but at least tau/100: a guess about something that was not adapted then passes nearly always, and more noise is
        not affordable. Parameters: that mechanism, on the guessing part.
    share : float
        Share of the records that make guesses, in (0, 1); not used when the guess is the train value.
    queries : int or None
        Questions in all; ``None`` for any number, at a cost that grows with their logarithm.
    grid : float or None
        Step of the grid of answers after a failed check, 1/(K-1); ``None`` for about a sixteenth of the tolerance.
    inflation : float
        Lambda of the dependence between records, at least 1; exactly 1 for independent records, sharper than anything
        above it. Above 1 only when the guess is the train value: otherwise the parts have to be independent.

    Raises
    ------
    InputError
        When a parameter is out of range.
    InputTypeError
        When a parameter is not of its kind.

    Examples
    --------
    >>> parameters = GuessAndCheckParameters(0.1)
    >>> parameters.grid, parameters.share
    (0.00625, 0.5)
    """

    tolerance: float
    confidence: float = 0.95
    guess: Literal["noisy", "train"] | GaussianParameters | ThresholdoutParameters = "train"
    share: float = 0.5
    queries: int | None = None
    grid: float | None = None
    inflation: float = 1.0

    def __post_init__(self) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        below = math.nextafter(1.0, 0.0)
        fix("tolerance", check_number("tolerance", self.tolerance, 0.0, 0.5, "a number in (0, 0.5]"))
        fix("confidence", check_number("confidence", self.confidence, 0.0, below, "a number in (0, 1)"))
        fix("share", check_number("share", self.share, 0.0, below, "a number in (0, 1)"))
        fix("queries", None if self.queries is None else check_count("queries", self.queries))
        fix("grid", 1.0 / self.intervals)
        least = math.nextafter(1.0, 0.0)
        fix("inflation", check_number("inflation", self.inflation, least, 1e12, "a number of at least 1"))
        guess: object = self.guess
        expected = "'noisy', 'train', GaussianParameters or ThresholdoutParameters"
        if isinstance(guess, str) and guess not in ("noisy", "train"):
            raise InputError("guess", repr(guess), expected)
        if not isinstance(guess, (str, GaussianParameters, ThresholdoutParameters)):
            raise InputTypeError("guess", f"a {type(guess).__name__}", expected)
        if guess != "train" and self.inflation != 1.0:
            raise InputError("inflation", self.inflation, "1 when a part of the records guesses; give groups by labels")

    @property
    def intervals(self) -> int:
        """Steps of the grid of answers after a failed check, from 0 to 1."""
        return math.ceil(16.0 / self.tolerance) if self.grid is None else check_grid(self.grid)


@dataclass(frozen=True, slots=True)
class GuessAndCheckState:
    """State of `GuessAndCheck`.

    Attributes
    ----------
    asked : int
        Questions so far.
    failures : int
        Checks that failed.
    nats : float
        Code length of the answers after failed checks.
    guess : str
        State of the mechanism that makes the guesses, empty if there is none; may be secret.

    Examples
    --------
    >>> state = GuessAndCheckState(asked=3, failures=1, nats=1.5, guess="gaussian/1 3 3")
    >>> GuessAndCheckState.from_text(state.to_text()) == state
    True
    >>> state
    GuessAndCheckState(asked=3, failures=1, nats=1.5)
    """

    asked: int
    failures: int
    nats: float
    guess: str = field(repr=False)

    def agrees(self, past: Past) -> bool:
        """Whether a history has as many questions, and room for the failures; guesses may be from the holdout, too."""
        return self.asked == past.asked and self.failures <= past.charged

    def to_text(self) -> str:
        """Return the state as one line of text, for a ledger."""
        return f"{_FORMAT} {self.asked} {self.failures} {self.nats!r} {self.guess}"

    @classmethod
    def from_text(cls, text: str) -> GuessAndCheckState:
        """Read what `to_text` wrote.

        Raises
        ------
        InputError
            When the text is something else. The message does not show it.
        """
        try:
            tag, first, second, third, guess = text.split(" ", 4)
            asked, failures, nats = int(first), int(second), float(third)
            if tag != _FORMAT or not (0 <= failures <= asked and 0.0 <= nats < math.inf):
                raise ValueError
        except ValueError:
            raise InputError("state", "a text of another form", f"what a {_FORMAT} state wrote") from None
        return cls(asked, failures, nats, guess)


_FRESH = GuessAndCheckState(0, 0, 0.0, "")


class GuessAndCheck(Mechanism[GuessAndCheckState, UnitRecords]):
    """Guesses, which the records check: the train value, or what another part of the records says.

    Parameters
    ----------
    parameters : GuessAndCheckParameters
        Tolerance, confidence, how guesses are made.
    n : int
        Number of records.
    labels : array-like of shape (n,), optional
        Groups of the records: arbitrary dependence inside a group, none across. Groups stay whole when records are
        parted, and must be of one size then; the inflation is that of the part that checks.

    Attributes
    ----------
    parameters : GuessAndCheckParameters
        As given.
    checking : int
        How many records check.

    Raises
    ------
    InputError
        When there are not enough records (or groups) for two parts, groups of different sizes would have to be parted,
        or the labels do not fit.

    Notes
    -----
    *Guarantee.* With probability at least ``confidence`` every answer is within its own half-width of the truth, for
    all questions at once, however they were chosen: the mean over the checking records of the expected values. With the
    train value as guess all records check. With a guessing part this is the mean over all records only if these (or
    groups of one size) have one law and each question is the same function of every record. A passed check has the
    half-width tau. The guard stops before a question whose failed check might leave a half-width above tau, so all
    half-widths are at most tau.
    It needs independent records or independent groups; with the train value as guess, any dependence with known
    inflation. PROOFS.md, "Guess and check".

    Records (or groups) of the guessing part are chosen by a fixed, public rule that looks random.

    Examples
    --------
    >>> from thresholdout.noise import SeededNoise
    >>> mechanism = GuessAndCheck(GuessAndCheckParameters(0.1, guess="noisy"), n=5000)
    >>> noise = SeededNoise(0)
    >>> values = mechanism.read([0, 1] * 2500, 5000, (0, 1), "holdout_values")
    >>> state, outcome = mechanism.step(mechanism.start(noise), 0.9, values, noise)
    >>> outcome.half_width, abs(outcome.value - 0.5) <= 0.1, state
    (0.1, True, GuessAndCheckState(asked=1, failures=0, nats=0.0))
    """

    name: ClassVar[str] = "guess-and-check"

    def __init__(self, parameters: GuessAndCheckParameters, n: int, labels: ArrayLike | None = None) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        self._guess = _guess_mechanism(parameters)
        numbered = group_numbers if parameters.guess == "train" else equal_groups
        groups = None if labels is None else numbered(labels, n)
        inflation = parameters.inflation
        self._guessers: NDArray[np.intp] | None = None
        self._checkers: NDArray[np.intp] | None = None
        if parameters.guess != "train":
            parted = _guessing(n if groups is None else int(groups.max()) + 1, parameters.share)
            guessing = parted if groups is None else parted[groups]
            self._guessers, self._checkers = np.flatnonzero(guessing), np.flatnonzero(~guessing)
        self.checking = n if self._checkers is None else self._checkers.size
        if groups is not None:
            sizes = np.bincount(groups if self._checkers is None else groups[self._checkers])
            inflation = max(inflation, float(np.sum(sizes.astype(np.float64) ** 2)) / self.checking * (1.0 + 1e-12))
        self._bounds = FixedQuestion(self.checking, 1.0 - parameters.confidence, inflation)
        self._rounding = record_rounding(n) + 2.0**-51
        self._intervals = parameters.intervals
        self._queries = math.inf if parameters.queries is None else parameters.queries
        if not self._affordable(self._nats(_FRESH)):
            least = self._bounds.radius(self._nats(_FRESH))
            expected = f"more than {least:.3g}, what {self.checking} checking records allow; or more records"
            raise InputError("tolerance", parameters.tolerance, expected)

    def start(self, noise: NoiseSource) -> GuessAndCheckState:
        """Return the state before the first question."""
        guess = "" if self._guess is None else self._guess.start(noise).to_text()
        return GuessAndCheckState(0, 0, 0.0, guess)

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> UnitRecords:
        """Check per-record values and keep them, rounded to the grid on which their sums are exact."""
        return unit_records(values, n, bounds, argument)

    def step(
        self, state: GuessAndCheckState, train: float, holdout: UnitRecords, noise: NoiseSource
    ) -> tuple[GuessAndCheckState, Outcome]:
        """Answer one query; see `Mechanism.step`."""
        refusal = self.refusal(state)
        if refusal is not None:
            raise refusal
        nats = self._nats(state)
        if not 0.0 <= train <= 1.0:
            raise InputError("train", train, "a number in [0, 1]")
        if len(holdout) != self._n:
            raise InputError("holdout", f"{len(holdout)} records", f"{self._n}, as declared")
        guess, source, guess_state = self._make_guess(state.guess, train, holdout, nats, noise)
        checking = holdout if self._checkers is None else holdout.part(self._checkers)
        asked, reach = state.asked + 1, self.parameters.tolerance - self._rounding
        mean = checking.exact_mean().mean()
        if self._bounds.within(mean, nats, guess, reach, checking.variance):
            after = GuessAndCheckState(asked, state.failures, state.nats, guess_state)
            return after, Outcome(guess, source, state.failures, asked, self.parameters.tolerance)
        level = round(mean * self._intervals)
        value = level / self._intervals
        half_width = self._bounds.half_width(value, 0.5 / self._intervals + self._rounding, nats) + self._rounding
        told = state.nats + self._level_nats(level, round(guess * self._intervals), nats)
        after = GuessAndCheckState(asked, state.failures + 1, told, guess_state)
        return after, Outcome(value, "holdout", state.failures, asked, half_width)

    def fail(self, state: GuessAndCheckState, train: float, noise: NoiseSource) -> tuple[GuessAndCheckState, Outcome]:
        """Charge a question that could not be computed; see `Mechanism.fail`."""
        refusal = self.refusal(state)
        if refusal is not None:
            raise refusal
        told = state.nats + math.log(self._intervals + 1)
        after = GuessAndCheckState(state.asked + 1, state.failures + 1, told, state.guess)
        return after, Outcome(train, "failed", state.failures, after.asked, 1.0)

    def refusal(self, state: GuessAndCheckState) -> BudgetExhausted | None:
        """Return why no further query is allowed, or ``None``."""
        if state.asked >= self._queries:
            return BudgetExhausted("queries", state.asked, int(self._queries))
        if not self._affordable(self._nats(state)):
            return BudgetExhausted("budget", state.failures, state.failures)
        return None

    def restore(self, text: str) -> GuessAndCheckState:
        """Return the state that `GuessAndCheckState.to_text` wrote."""
        return GuessAndCheckState.from_text(text)

    def remaining(self, state: GuessAndCheckState) -> int | None:
        """Return how many more checks may fail in a row before the guard stops, if each costs as little as it can.

        The code length grows with every failure, so the number is found by bisection.
        """
        least = -math.log(_UNIFORM / (self._intervals + 1) + (1.0 - _UNIFORM) / 4.0)

        def allowed(failures: int) -> bool:
            """Whether a question may follow after so many more failures."""
            asked, failed = state.asked + failures, state.failures + failures
            told = GuessAndCheckState(asked, failed, state.nats + failures * least, "")
            return asked < self._queries and self._affordable(self._nats(told))

        low, high = -1, 1
        while allowed(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if allowed(middle) else (low, middle)
        return low + 1

    def _nats(self, state: GuessAndCheckState) -> float:
        """Code length of the next question: its number, which checks failed, and what was answered then."""
        return (
            index_nats(state.asked + 1, self.parameters.queries)
            + index_nats(state.failures + 1, None)
            + choice_nats(state.asked, state.failures)
            + state.nats
        )

    def _affordable(self, nats: float) -> bool:
        """Whether an answer is within the tolerance also if its check fails."""
        return self._bounds.radius(nats) + 0.5 / self._intervals + 3.0 * self._rounding <= self.parameters.tolerance

    def _level_nats(self, level: int, guess: int, nats: float) -> float:
        """Code length of an answer after a failed check: short just outside of where no check fails.

        A quarter of the code is uniform over all levels; the rest is geometric, of ratio 1/2, to both sides of the
        guess, from the distance at which Hoeffding's bound alone would let a check pass.
        """
        inner = math.floor((self.parameters.tolerance - self._bounds.radius(nats)) * self._intervals)
        weight = _UNIFORM / (self._intervals + 1)
        beyond = abs(level - guess) - max(0, inner)
        if beyond >= 0:
            weight += (1.0 - _UNIFORM) / 4.0 * 0.5**beyond
        return -math.log(weight)

    def _make_guess(
        self, text: str, train: float, holdout: UnitRecords, nats: float, noise: NoiseSource
    ) -> tuple[float, Source, str]:
        if self._guessers is None:
            return train, "train", text
        part = holdout.part(self._guessers).exact_mean()
        if self._guess is None:
            centre = Fraction(part.total * _ONE, part.n << part.bits)
            noisy = noise.rounded_gaussian(centre, Fraction(self._affordable_noise(nats)) * _ONE)
            return min(max(noisy, 0), _ONE) / _ONE, "holdout", text
        if isinstance(self._guess, GaussianGuard):
            after, outcome = self._guess.step(self._guess.restore(text), train, part, noise)
            return outcome.value, outcome.source, after.to_text()
        next_state, compared = self._guess.step(self._guess.restore(text), train, part.mean(), noise)
        return compared.value, compared.source, next_state.to_text()

    def _affordable_noise(self, nats: float) -> float:
        """Return the noise with which four standard deviations of guess less mean fit into what the check allows."""
        tolerance = self.parameters.tolerance
        room = ((tolerance - self._bounds.radius(nats)) / _DEVIATIONS) ** 2
        sampling = 0.25 / self.checking + 0.25 / (self._n - self.checking)
        return max(tolerance / 100.0, math.sqrt(max(0.0, room - sampling)))


def _guess_mechanism(parameters: GuessAndCheckParameters) -> GaussianGuard | SparseVector | None:
    if isinstance(parameters.guess, GaussianParameters):
        return GaussianGuard(parameters.guess)
    return SparseVector(parameters.guess) if isinstance(parameters.guess, ThresholdoutParameters) else None


def _guessing(count: int, share: float) -> NDArray[np.bool_]:
    """Choose a share of things; at least one and not all."""
    chosen = min(max(1, round(count * share)), count - 1)
    if chosen < 1:
        raise InputError("n", count, "at least two records, or groups, one part to guess and one to check")
    guessing = np.zeros(count, dtype=np.bool_)
    guessing[shuffled(count)[:chosen]] = True
    return guessing
