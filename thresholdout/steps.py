"""One question after another: a guard's mechanism, its ledger, and what its answers are worth.

What is computed on the holdout here can fail, and a failure is a function of the whole holdout. So a stored answer is
looked up before anything is computed; a failure, and an interrupt is one, is charged before it shows, and nothing shows
but which of the two it is: the kind of an error could be made of labels. Every failure makes later half-widths wider,
by the number of places where failures can be (PROOFS.md, "Failures").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thresholdout.answer import Answer, Source
from thresholdout.errors import BudgetExhausted, InputError, LedgerDamaged
from thresholdout.ledger.checks import check_repeat
from thresholdout.mechanisms import Ladder, Mechanism, Outcome
from thresholdout.silence import silence
from thresholdout.standing import joined_state, parted_state

if TYPE_CHECKING:
    from thresholdout.certificates import Certificate
    from thresholdout.ledger import Entry, Ledger
    from thresholdout.noise import NoiseSource
    from thresholdout.question import Question

__all__ = ["FAILURES", "Steps", "Worth", "failure_share"]

FAILURES: Final = 2.0**-20
"""Share of beta that interactions with failures have; the others have the rest."""


def failure_share(failures: int, asked: int, queries: int | None) -> float:
    """Return the share of beta of one arrangement of failures among the questions.

    Parameters
    ----------
    failures : int
        How many questions have failed, at least 1.
    asked : int
        Questions so far.
    queries : int or None
        How many there may be.

    Returns
    -------
    float
        ``FAILURES 4^-f m^-f`` for declared m, ``FAILURES 4^-f prod 6/(pi i)^2 >= FAILURES 4^-f (6/(pi asked)^2)^f``
        otherwise; the shares of all arrangements, with an error or an interrupt at each of f places, have a sum of at
        most ``FAILURES``.

    Examples
    --------
    >>> failure_share(1, 10, 1000) == FAILURES / 4000
    True
    """
    one = 1.0 / queries if queries is not None else 6.0 / (math.pi * asked) ** 2 * (1.0 - 2.0**-50)
    return FAILURES * (0.25 * one) ** failures


Worth: TypeAlias = "tuple[Certificate, Callable[[float], Certificate | None]]"
"""What answers are worth while nothing has failed, and a function that tells it for a smaller share of beta (``None``
where nothing is proved) and does not use the ledger."""


class Steps:
    """A mechanism that takes its steps in a ledger.

    Parameters
    ----------
    ledger : Ledger
        Where the state is.
    identity : str
        Whose.
    mechanism : Mechanism
        What answers.
    noise : NoiseSource
        Where its noise comes from.
    queries : int or None
        How many questions there may be.
    """

    def __init__(
        self,
        ledger: Ledger,
        identity: str,
        mechanism: Mechanism[Any, Any],
        noise: NoiseSource,
        queries: int | None,
    ) -> None:
        self._ledger = ledger
        self._id = identity
        self._mechanism = mechanism
        self._noise = noise
        self._queries = queries

    def state(self) -> Any:
        """Return the mechanism's state. Secret."""
        text = self._ledger.state(self._id)
        return self._restored(text)[1]

    def _restored(self, text: str) -> tuple[int, Any]:
        """Return the number of failures so far, and the mechanism's state, from what the ledger keeps."""
        failures, inner = parted_state(text)
        try:
            return failures, self._mechanism.restore(inner)
        except InputError:
            pass
        raise LedgerDamaged(self._ledger.location, None, "its state can't be read")

    def refusal(self) -> BudgetExhausted | None:
        """Return why no new question is answered, or ``None``."""
        return self._mechanism.refusal(self.state())

    def remaining(self) -> int | None:
        """Return how many answers from the holdout are left."""
        return self._mechanism.remaining(self.state())

    def failures(self) -> int:
        """Return how many questions have failed."""
        return parted_state(self._ledger.state(self._id))[0]

    def read(self, values: object, n: int, limits: tuple[float, float], argument: str) -> Any:
        """Check the holdout's values and return what the mechanism needs of them."""
        return self._mechanism.read(values, n, limits, argument)

    def find(self, question: Question) -> Answer | None:
        """Return the answer that the question's key has already; nothing is computed or charged.

        Raises
        ------
        InputError
            When the key belongs to another question.
        """
        stored = None if question.key is None else self._ledger.find(self._id, question.key)
        if stored is None:
            return None
        check_repeat(stored, question.shown)
        return self._told(question, stored, repeated=True)

    def look(self, argument: str, question: Question, compute: Callable[[], Any], worth: Callable[[], Worth]) -> Answer:
        """Compute something on the holdout, and answer.

        Parameters
        ----------
        argument : str
            What is at fault when it fails.
        question : Question
            What is asked.
        compute : callable
            Returns what the mechanism needs. Its warnings and errors are not shown, nor what kind they are: that could
            tell about records.
        worth : callable
            Tells what answers are worth.

        Raises
        ------
        InputError
            When it fails, after that was charged.
        KeyboardInterrupt
            When it is interrupted, after that was charged: nobody can tell an interrupt from outside from one that the
            question raises.
        BudgetExhausted
            When no new question is answered; nothing is computed then.
        """
        stored = self.find(question)
        if stored is not None:
            return stored
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        try:
            with silence():
                found = compute()
        except BaseException as error:  # also an exit, an interrupt, or a panic of an extension module
            interrupted = isinstance(error, KeyboardInterrupt)
        else:
            return self.answer(question, found, worth())
        entry, repeated = self._fail(question, worth())
        if interrupted:
            if repeated:  # an answer that somebody else has paid for does not pay for what an interrupt tells
                self._fail(question.without_key(), worth())
            raise KeyboardInterrupt("a question was interrupted on the holdout; charged as an answer from the holdout")
        if repeated:  # somebody else has asked it meanwhile
            return self._told(question, entry, repeated)
        raise InputError(
            argument,
            "a question that failed on the holdout, though not on the training part (the error and its kind could tell "
            "about records, and are not shown); charged as an answer from the holdout",
            "a question that works on both parts",
        )

    def answer(self, question: Question, holdout: Any, worth: Worth) -> Answer:
        """Charge and store one question, then return its answer."""
        entry, repeated = self._store(
            question, lambda state: self._mechanism.step(state, question.train, holdout, self._noise), worth
        )
        return self._told(question, entry, repeated)

    def _fail(self, question: Question, worth: Worth) -> tuple[Entry, bool]:
        """Charge and store a question that failed."""
        return self._store(
            question, lambda state: self._mechanism.fail(state, question.train, self._noise), worth, failed=True
        )

    def _told(self, question: Question, entry: Entry, repeated: bool) -> Answer:
        return question.answer(entry, repeated, "best" if isinstance(self._mechanism, Ladder) else "question")

    def _store(
        self, question: Question, step: Callable[[Any], tuple[Any, Outcome]], worth: Worth, *, failed: bool = False
    ) -> tuple[Entry, bool]:
        """Take one step of the mechanism in the ledger."""
        certificate, for_share = worth

        def compute(text: str) -> tuple[str, Entry]:
            failures, before = self._restored(text)
            state, outcome = step(before)
            failures += failed
            half_width = outcome.half_width
            if failures:
                half_width = self._after_failures(failures, outcome, question.spread, for_share)
            elif half_width is None or certificate.chosen is None:
                half_width = _width(certificate, outcome, question.spread)
            entry = question.entry(outcome, half_width, self._mechanism.remaining(state))
            return joined_state(failures, state.to_text()), entry

        return self._ledger.ask(self._id, question.key, question.shown, question.name, compute)

    def _after_failures(
        self, failures: int, outcome: Outcome, spread: float, for_share: Callable[[float], Certificate | None]
    ) -> float:
        """Return a half-width that holds for all arrangements of so many failures at once."""
        if outcome.half_width is not None:  # the mechanism states them for its own beta
            return math.inf
        asked = 1 << (outcome.asked - 1).bit_length()  # at least the questions so far; few different numbers
        return _width(for_share(failure_share(failures, asked, self._queries)), outcome, spread)


def _width(certificate: Certificate | None, outcome: Outcome, spread: float) -> float:
    if certificate is None:
        return math.inf
    source: Source = "train" if outcome.source == "train" else "holdout"
    return certificate.half_width(outcome.asked, outcome.hits, source, spread)
