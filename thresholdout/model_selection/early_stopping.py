"""When to stop an iterative learner, and which few of its rounds are worth a query to a guard.

An early stopping that scores the holdout in every round spends one query a round, most of them on rounds that
nobody would pick. `EarlyStopping` follows a *free* signal instead, a score on records that cost nothing, such as a part
cut from the training records. It wants a query asked only

- when the signal *claims* an improvement that would matter: it has risen by at least a step since the last claim; and
- once at the end, about the round that the signal prefers, unless it has been asked about already.

Since the steps are a fixed share of what the signal can still rise, the number of queries is bounded by a number that
is stated beforehand, whatever the signal does and however many rounds there are; see `EarlyStopping`.

Everything here is pure: numbers in, round numbers out. `GuardedStopping` puts a guard behind it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from graphs.numerics.arguments import as_real
from thresholdout.data.arguments import check_count
from thresholdout.errors import InputError, InputTypeError

__all__ = ["EarlyStopping", "EveryRound", "StoppingRule"]


class StoppingRule(ABC):
    """What decides when a loop stops, and which rounds a guard is asked about. Rounds count from 0.

    Call `update` once a round. When it returns the number of a round, ask about that round, and `tell` the answer.
    When `stopped` is true, or the loop ends by itself, call `finish`, and `tell` once more if it returns a round.

    Attributes
    ----------
    rounds : int
        How many rounds there were.
    stopped : bool
        Whether the loop should end.
    signal_round : int or None
        The round with the best signal so far, the one that may be asked about later: keep its model.
    answers : dict of int to float
        Answers by round, without NaN.
    """

    def __init__(self, patience: int, min_delta: float) -> None:
        self.patience = check_count("patience", patience)
        self.min_delta = _amount("min_delta", min_delta)
        self.rounds = 0
        self.stopped = False
        self.signal_round: int | None = None
        self.answers: dict[int, float] = {}
        self._best_signal = -math.inf

    @property
    def best_round(self) -> int | None:
        """The round with the best answer, the earliest of equals; without any answer the one with the best signal."""
        if self.answers:
            return max(self.answers, key=lambda k: (self.answers[k], -k))
        return self.signal_round

    @abstractmethod
    def update(self, signal: float) -> int | None:
        """Take the signal of one more round, greater is better, and return the round to ask about, if any."""

    @abstractmethod
    def tell(self, answer: float) -> None:
        """Take the answer about the round that was last asked for; NaN when there was none."""

    @abstractmethod
    def finish(self) -> int | None:
        """End the loop, and return the round that is still to be asked about, if any."""

    def _follow(self, signal: float) -> bool:
        """Count a round, and say whether its signal is the best so far."""
        better = signal > self._best_signal + (self.min_delta if self.rounds else 0.0)
        if better:
            self._best_signal, self.signal_round = signal, self.rounds
        self.rounds += 1
        return better


class EarlyStopping(StoppingRule):
    """Early stopping on a free signal that spends a query only when it needs one.

    Parameters
    ----------
    upper : float
        The largest value that the signal can take.
    patience : int, default=10
        Stop after so many rounds in which the signal did not improve.
    queries : int, default=6
        Largest number of queries: all but one of them for claims, the last one for the end.
    worth : float, default=0
        An improvement of the signal that is worth a query, where it is more than the step below.
    min_delta : float, default=0
        A smaller rise of the signal is no improvement.
    doubts : int, default=2
        Stop after so many claims in succession that the guard does not confirm: its answer is not above its best one.

    Notes
    -----
    *Number of queries.* Let s be the signal of the first round, and ``step = max(worth, (upper - s) / (queries -
    1))``. A claim is a signal that lies at least a step above that of the last claim (at first, above s). After k
    claims the signal has been at ``s + k * step`` or more, and it is never above ``upper``: there are at most
    ``(upper - s) / step <= queries - 1`` claims, and at most one query at the end. Rounding could let one more
    through, so claims are counted too. The bound holds for any signal, any answers and any number of rounds.

    *What the answers are worth.* A guard's half-widths hold for all its queries at once, however each was chosen. So,
    with the guard's confidence, the score of every round that was asked about is within the half-width of its answer,
    the chosen round's among them, although it was chosen for its answer; and no round that was asked about is truly
    better than the chosen one by more than the sum of the two half-widths. About rounds that were not asked about
    nothing is promised: the signal passed over them. The signal must not be computed from holdout records.

    Examples
    --------
    >>> rule = EarlyStopping(1.0, patience=2, queries=3)
    >>> [rule.update(signal) for signal in (0.5, 0.6, 0.8)]  # a claim is a rise by (1 - 0.5) / 2
    [None, None, 2]
    >>> rule.tell(0.78)
    >>> [rule.update(signal) for signal in (0.85, 0.84, 0.83)], rule.stopped
    ([None, None, 3], True)
    >>> rule.tell(0.81)
    >>> rule.best_round, rule.answers
    (3, {2: 0.78, 3: 0.81})
    """

    def __init__(
        self,
        upper: float,
        *,
        patience: int = 10,
        queries: int = 6,
        worth: float = 0.0,
        min_delta: float = 0.0,
        doubts: int = 2,
    ) -> None:
        super().__init__(patience, min_delta)
        self.upper = float(upper)
        self.queries = check_count("queries", queries)
        self.worth = _amount("worth", worth)
        self.doubts = check_count("doubts", doubts)
        self._step = math.inf
        self._level = math.nan  # the signal of the last claim; at first that of the first round
        self._claims = 0
        self._doubted = 0
        self._waited = 0
        self._asked: set[int] = set()
        self._open: int | None = None
        self._ended = False

    def update(self, signal: float) -> int | None:
        """Follow the signal, and return the round to ask about when it claims an improvement or ends the loop."""
        if self._follow(signal):
            self._waited = 0
            if math.isnan(self._level):
                self._level = signal
                if self.queries > 1:
                    self._step = max(self.worth, (self.upper - signal) / (self.queries - 1))
            elif self._claims < self.queries - 1 and signal > self._level and signal - self._level >= self._step:
                self._level = signal
                self._claims += 1
                return self._ask(self.rounds - 1)
            return None
        self._waited += 1
        if self._waited < self.patience:
            return None
        self.stopped = True
        return self.finish()

    def tell(self, answer: float) -> None:
        """Take the answer, and stop when too many claims in succession were not confirmed."""
        number, self._open = self._open, None
        if number is None:
            raise InputError("answer", "an answer", "none before update() or finish() returned a round to ask about")
        if math.isnan(answer):
            return
        best = max(self.answers.values(), default=-math.inf)
        self.answers[number] = answer
        self._doubted = 0 if answer > best else self._doubted + 1
        self.stopped = self.stopped or self._doubted >= self.doubts

    def finish(self) -> int | None:
        """End the loop, and return the signal's best round unless it is known, or the claims were doubted."""
        ended, self._ended = self._ended, True
        if ended or self._doubted >= self.doubts or self.signal_round is None or self.signal_round in self._asked:
            return None
        return self._ask(self.signal_round)

    def _ask(self, number: int) -> int:
        self._asked.add(number)
        self._open = number
        return number


class EveryRound(StoppingRule):
    """Early stopping as it is usually done: ask in every round, stop when the answers no longer improve.

    For comparison, and for learners with few, long rounds. The number of queries grows with the rounds.

    Parameters
    ----------
    patience : int, default=10
        Stop after so many rounds without a better answer.
    min_delta : float, default=0
        A smaller rise of the answer is no improvement.

    Examples
    --------
    >>> rule, asked = EveryRound(patience=2), []
    >>> for answer in (0.5, 0.7, 0.6, 0.65, 0.9):
    ...     if not rule.stopped:
    ...         asked.append(rule.update(answer))
    ...         rule.tell(answer)
    >>> asked, rule.best_round
    ([0, 1, 2, 3], 1)
    """

    def __init__(self, *, patience: int = 10, min_delta: float = 0.0) -> None:
        super().__init__(patience, min_delta)
        self._best = -math.inf
        self._waited = 0

    def update(self, signal: float) -> int | None:
        """Return the present round: each one is asked about."""
        self._follow(signal)
        return self.rounds - 1

    def tell(self, answer: float) -> None:
        """Take the answer, and stop when too many did not improve."""
        if not math.isnan(answer):
            self.answers[self.rounds - 1] = answer
        self._waited += 1
        if answer > self._best + (self.min_delta if len(self.answers) > 1 else 0.0):
            self._best, self._waited = answer, 0
        self.stopped = self.stopped or self._waited >= self.patience

    def finish(self) -> int | None:
        """Return nothing: no round is left to be asked about."""
        return None


def _amount(argument: str, value: object) -> float:
    """Check a finite number that is not negative."""
    amount = as_real(value)
    if amount is None:
        raise InputTypeError(argument, repr(value), "a number")
    if not 0.0 <= amount < math.inf:
        raise InputError(argument, value, "a finite number, not negative")
    return amount
