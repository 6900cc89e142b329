"""Rules of early stopping, which choose the few rounds of an iterative learner that are worth a query.

`EarlyStopping` follows a *free* signal, a score on records that cost nothing, such as a part cut from the training
records. It requests a query if the signal *claims* an improvement of at least a step since the last claim, and once at
the end, about the signal's best round. The steps are a fixed share of the signal's remaining range, so the number of
queries is bounded for every signal. Rules contain no guard: `GuardedStopping` adds it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from graphs.numerics.arguments import as_real
from thresholdout.data.arguments import check_count
from thresholdout.errors import InputError, InputTypeError

__all__ = ["EarlyStopping", "EveryRound", "StoppingRule"]


class StoppingRule(ABC):
    """Decides when a loop stops, and the rounds of queries. Rounds count from 0.

    Call `update` once a round. If it returns a round, query the guard about it, and pass the answer to `tell`. When
    `stopped` is true, or the loop ends by itself, call `finish`, and `tell` once more if it returns a round. Keep the
    model of `signal_round`, the round with the best signal so far: a later query may be about it. `answers` has no NaN.
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
        """The earliest round with the best answer; without answers the one with the best signal."""
        if self.answers:
            return max(self.answers, key=lambda k: (self.answers[k], -k))
        return self.signal_round

    @abstractmethod
    def update(self, signal: float) -> int | None:
        """Take the signal of the next round, greater is better, and return the round of a query, if any."""

    @abstractmethod
    def tell(self, answer: float) -> None:
        """Take the answer about the requested round; NaN if there was none."""

    @abstractmethod
    def finish(self) -> int | None:
        """End the loop, and return the round of a last query, if any."""

    def _follow(self, signal: float) -> bool:
        """Count a round, and return whether its signal is the best so far."""
        better = signal > self._best_signal + (self.min_delta if self.rounds else 0.0)
        if better:
            self._best_signal, self.signal_round = signal, self.rounds
        self.rounds += 1
        return better


class EarlyStopping(StoppingRule):
    """Early stopping on a free signal that spends a query only when it needs one.

    `upper` is the largest possible signal, and `worth` the smallest improvement that is worth a query, if larger than
    the step below. The rule stops after `patience` rounds without a better signal, or after `doubts` successive claims
    that the guard does not accept: its answer is not above its best one.

    Notes
    -----
    *Number of queries.* Let s be the signal of the first round, and ``step = max(worth, (upper - s) / (queries - 1))``.
    A claim is a signal at least a step above that of the last claim (at first, above s). After k claims the signal has
    reached ``s + k * step``, and it is never above ``upper``: there are at most ``(upper - s) / step <= queries - 1``
    claims, and at most one query at the end. Rounding could admit one more, so claims are counted too. The bound holds
    for any signal, any answers and any number of rounds.

    *Guarantee of the answers.* A guard's half-widths hold for all its queries at once, however each was chosen. So,
    with the guard's confidence, the score of every queried round is within the half-width of its answer, including the
    chosen round, although it was chosen for its answer. No queried round is better than the chosen one by more than the
    sum of the two half-widths. Nothing is guaranteed about other rounds. The signal must not be computed from holdout
    records.

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
        self._level = math.nan  # the signal of the last claim, or of the first round before any
        self._claims = 0
        self._doubted = 0
        self._waited = 0
        self._asked: set[int] = set()
        self._open: int | None = None
        self._ended = False

    def update(self, signal: float) -> int | None:
        """Follow the signal, and return the round of a query if it claims an improvement or ends the loop."""
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
        """Take the answer, and stop after too many successive claims that were not accepted."""
        number, self._open = self._open, None
        if number is None:
            expected = "the answer about a round that update() or finish() returned"
            raise InputError("answer", "one without such a round", expected)
        if math.isnan(answer):
            return
        best = max(self.answers.values(), default=-math.inf)
        self.answers[number] = answer
        self._doubted = 0 if answer > best else self._doubted + 1
        self.stopped = self.stopped or self._doubted >= self.doubts

    def finish(self) -> int | None:
        """End the loop, and return the signal's best round unless its answer is known, or the claims were doubted."""
        ended, self._ended = self._ended, True
        if ended or self._doubted >= self.doubts or self.signal_round is None or self.signal_round in self._asked:
            return None
        return self._ask(self.signal_round)

    def _ask(self, number: int) -> int:
        self._asked.add(number)
        self._open = number
        return number


class EveryRound(StoppingRule):
    """Early stopping with a query in every round, until `patience` answers bring no improvement by `min_delta`.

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
        """Return the present round: every round has a query."""
        self._follow(signal)
        return self.rounds - 1

    def tell(self, answer: float) -> None:
        """Take the answer, and stop after too many without an improvement."""
        if not math.isnan(answer):
            self.answers[self.rounds - 1] = answer
        self._waited += 1
        if answer > self._best + (self.min_delta if len(self.answers) > 1 else 0.0):
            self._best, self._waited = answer, 0
        self.stopped = self.stopped or self._waited >= self.patience

    def finish(self) -> int | None:
        """Return None: every round has had its query."""
        return None


def _amount(argument: str, value: object) -> float:
    """Check a finite number that is not negative."""
    amount = as_real(value)
    if amount is None:
        raise InputTypeError(argument, repr(value), "a number")
    if not 0.0 <= amount < math.inf:
        raise InputError(argument, value, "a finite number, not negative")
    return amount
