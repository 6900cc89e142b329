"""One question after another: a guard's mechanism, its ledger, and what its answers are worth.

What is computed on the holdout here can fail, and a failure is a function of the whole holdout. So a stored answer is
looked up before anything is computed; a failure, and an interrupt is one, is charged before it shows, and nothing shows
but which of the two it is: the kind of an error could be made of labels. Every failure makes later half-widths wider,
by the number of places where failures can be (PROOFS.md, "Failures").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from thresholdout.errors import BudgetExhausted, InputError, LedgerDamaged
from thresholdout.guard.answer import Answer
from thresholdout.guard.guard_state import GuardState, corrected_of
from thresholdout.guard.question import Question
from thresholdout.guard.scan import scanned
from thresholdout.ledger.entry import Asked, Entry
from thresholdout.ledger.entry_checks import ContentKey, check_questions, check_repeat, check_short_texts
from thresholdout.mechanisms import Known, Mechanism, Outcome
from thresholdout.mechanisms.base import AnswerSource, SharesRisk, refuse_if
from thresholdout.silence import silence

if TYPE_CHECKING:
    from thresholdout.certificates import Certificate
    from thresholdout.ledger import Ledger
    from thresholdout.mechanisms.base import Duel
    from thresholdout.mechanisms.claims.evidence import Evidence
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.noise.sources import NoiseSource

__all__ = [
    "FAILED",
    "FAILURES",
    "LOOKS",
    "Answering",
    "LabelsCorrected",
    "Worth",
    "as_asked",
    "check_labels",
    "check_texts",
    "failure_share",
]

FAILURES: Final = 2.0**-20
"""Share of beta that interactions with failures have; the others have the rest."""

LOOKS: Final = FAILURES / 4.0
"""Share of beta for looks with a delta beside Algorithm 1, a part of `FAILURES` that failures leave (LOOKS.md, L6)."""


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
        ``FAILURES (4 m)^-f`` for declared m, ``FAILURES 4^-f prod 6/(pi i)^2 >= FAILURES 4^-f (6/(pi asked)^2)^f``
        otherwise; the shares of all arrangements, of errors and interrupts, have a sum of at most 0.65 ``FAILURES``.

    Examples
    --------
    >>> failure_share(1, 10, 1000) == FAILURES / 4000
    True
    """
    one = 1.0 / queries if queries is not None else 6.0 / (math.pi * asked) ** 2 * (1.0 - 2.0**-50)
    return FAILURES * (0.25 * one) ** failures


FAILED: Final = (
    "it failed on the holdout, though not on the training part (how is not told: it could show records); charged as an "
    "answer from the holdout"
)

Worth: TypeAlias = "tuple[Certificate, Callable[[float], Certificate | None]]"
"""What answers are worth while nothing has failed, and a function that tells it for a smaller share of beta (``None``
where nothing is proved) and does not use the ledger."""


class Answering:
    """The interaction of a mechanism with whoever asks; every step is stored in a ledger before its answer is told.

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
    parameters : Parameters
        Of the mechanism.
    confidence : float
        Probability with which all answers hold at once.
    """

    def __init__(
        self,
        ledger: Ledger,
        identity: str,
        mechanism: Mechanism[Any, Any],
        noise: NoiseSource,
        parameters: Parameters,
        confidence: float,
    ) -> None:
        self.ledger = self._ledger = ledger
        self.identity = self._id = identity
        self.parameters = self._parameters = parameters
        self.confidence = self._confidence = confidence
        self._mechanism = mechanism
        self._noise = noise
        self._last: tuple[str, GuardState[Any]] | None = None

    def state(self, client: str = "") -> Any:
        """Return the mechanism's state, with what it keeps of one client. Secret."""
        return self._restored(self._ledger.state(self._id, client)).mechanism

    def _restored(self, text: str) -> GuardState[Any]:
        """Return the state that the ledger keeps; one that was read or written last is not read again."""
        last = self._last
        if last is not None and last[0] == text:
            return last[1]
        try:
            state: GuardState[Any] = GuardState.from_text(text, self._mechanism.restore)
            self._last = text, state
            return state
        except InputError:
            pass
        raise LedgerDamaged(self._ledger.location, None, "its state can't be read")

    def refusal(self) -> BudgetExhausted | None:
        """Return why no new question is answered, or ``None``."""
        return self._mechanism.refusal(self.state())

    def remaining(self) -> int | None:
        """Return how many answers from the holdout are left."""
        return self._mechanism.remaining(self.state())

    def log_risk(self) -> float | None:
        """Return the logarithm of the risk that is left, where the mechanism has such a number."""
        return self._mechanism.log_risk(self.state())

    def log_risk_before(self, entry: Entry) -> float:
        """Return the logarithm of the risk before an entry, for mechanisms with such a number."""
        if entry.query > 1:
            (before,) = self._ledger.entries(self._id, entry.query - 1, 1)
            assert before.risk is not None
            return before.risk
        return math.log1p(-self._confidence) - self._parameters.told

    def failures(self) -> int:
        """Return how many questions have failed."""
        return self._restored(self._ledger.state(self._id)).failures

    def read(self, values: object, n: int, question: Question, argument: str) -> Any:
        """Check the holdout's values and return what the mechanism needs of them."""
        return self._mechanism.read(values, n, question.limits, argument, question.known)

    def statistic(self, evidence: Sequence[Evidence], known: Known) -> Any:
        """Return what the mechanism needs of a statistic that is no mean."""
        return self._mechanism.statistic(evidence, known)

    def duel(self, counts: Duel, known: Known) -> Any:
        """Return what the mechanism needs of a share of wins."""
        return self._mechanism.shares_risk("a share of wins").duel(counts, known)

    def find(self, question: Question) -> Answer | None:
        """Return the answer that the question's key has already; nothing is computed or charged.

        Raises
        ------
        InputError
            When the key belongs to another question.
        """
        stored = None if question.key is None else self._ledger.find(self._id, question.key, question.known.client)
        if stored is None:
            return None
        check_repeat(stored, question.shown)
        return self._told(question, stored, repeated=True)

    def recall(self, key: str | None, truth: str = "") -> Answer | None:
        """Return the answer of a question that is known by its content; nothing else is needed of it.

        Parameters
        ----------
        key : str or None
            Its key; any but one that the guard has made is passed over.
        truth : str
            What its interval is about; empty for means.

        Raises
        ------
        InputError
            When it failed on the holdout.
        """
        stored = self._ledger.find(self._id, key) if isinstance(key, ContentKey) else None
        if stored is None:
            return None
        return self._told(Question.recalled(stored, cast(str, key), truth), stored, repeated=True)

    def look(
        self,
        argument: str,
        question: Question,
        compute: Callable[[], Any],
        worth: Callable[[], Worth],
        *,
        final: bool = False,
    ) -> Answer:
        """Compute something on the holdout, and answer.

        Parameters
        ----------
        argument : str
            What is at fault when it fails.
        question : Question
            What is asked.
        compute : callable
            Returns what the mechanism needs; a `Scan` lets an engine count first, and is not charged where that fails.
            Its warnings are not shown, nor the texts and types of its errors, which
            could show records; only whether it was an interrupt.
        worth : callable
            Tells what answers are worth.
        final : bool
            Whether it is the last question, which takes all of the risk that is left.

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
        check_texts([question])
        stored = self.find(question)
        if stored is not None:
            return stored
        self._check(self.state(question.known.client), question, final)
        scanned(compute)
        found, entry = self._computed(argument, question, compute, worth, final=final)
        if entry is not None:  # somebody else has asked it meanwhile
            return self._told(question, entry, repeated=True)
        return self._answered(question, found, worth(), final=final)  # whatever has become of its width meanwhile

    def _computed(
        self,
        argument: str,
        question: Question,
        compute: Callable[[], Any],
        worth: Callable[[], Worth],
        *,
        final: bool = False,
    ) -> tuple[Any, Entry | None]:
        """Compute something on the holdout; what fails is charged before that shows.

        Returns what was found; or ``None`` and the answer that somebody else has got for this question meanwhile, where
        it fails here.
        """
        try:
            with silence():
                return compute(), None
        except BaseException as error:  # also an exit, an interrupt, or a panic of an extension module
            interrupted = isinstance(error, KeyboardInterrupt)
        entry, repeated = self._fail(question, worth(), final=final)
        if interrupted:
            if repeated:  # an answer that somebody else has paid for does not pay for what an interrupt tells
                self._fail(question.without_key(), worth(), final=final)
            raise KeyboardInterrupt("a question was interrupted on the holdout; charged as an answer from the holdout")
        if repeated:
            return None, entry
        raise InputError(
            argument,
            FAILED,
            "a question that works on both parts",
        )

    def answer(self, question: Question, holdout: Any, worth: Worth) -> Answer:
        """Charge and store one question, then return its answer.

        Raises
        ------
        BudgetExhausted
            When it is not answered; nothing is charged then.
        """
        return self._answered(question, holdout, worth, lambda state: self._check(state, question))

    def _answered(
        self,
        question: Question,
        holdout: Any,
        worth: Worth,
        check: Callable[[Any], None] = lambda state: None,
        *,
        final: bool = False,
    ) -> Answer:
        """Take a step, charge and store it, and return the answer."""

        def step(state: Any) -> tuple[Any, Outcome]:
            check(state)
            if final:
                return self._sharing("a final check").final(state, question.train, holdout, self._noise)
            return self._mechanism.step(state, question.train, holdout, self._noise)

        entry, repeated = self._store(question, step, worth)
        return self._told(question, entry, repeated)

    def _check(self, state: Any, question: Question, final: bool = False) -> None:
        """Refuse a question that is not answered, whatever its value on the holdout."""
        if final:
            refuse_if(self._sharing("a final check").refuses_final(state))
        else:
            refuse_if(self._mechanism.refuses(state, question.train, question.known))

    def final_half_width(self, expected: float) -> float:
        """Return the half-width of a final check now; see `ClaimsMechanism.final_half_width`."""
        mechanism = self._sharing("a final check")
        return mechanism.final_half_width(mechanism.log_risk(self.state()), expected)

    def _sharing(self, what: str) -> SharesRisk[Any, Any]:
        return self._mechanism.shares_risk(what, "; or ask one after another")

    def look_elsewhere(self, name: str, nats: Callable[[float, bool], float], least: float) -> None:
        """Charge another private look at the holdout, durably; for mechanisms that have a price for it.

        Parameters
        ----------
        name : str
            What is looked at.
        nats : callable
            Its price for a risk, see `ClaimsMechanism.look`, and whether truths are given the labels by now (PROOFS.md,
            B9).
        least : float
            Logarithm of the smallest risk that may be left.

        Raises
        ------
        InputError
            When less would be left; nothing is charged then.
        """
        mechanism = self._mechanism

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            given = bool(getattr(before.mechanism, "given", False))
            state, outcome = mechanism.look(before.mechanism, lambda risk: nats(risk, given))
            if state.log_risk < least:
                seen = f"{name}: intervals could be the whole range afterwards, which says nothing"
                raise InputError("event", seen, "a look that leaks less, or void=True to record it all the same")
            entry = Question(0.0, (0.0, 1.0), name, None).entry(outcome, mechanism.remaining(state))
            return replace(before, mechanism=state).to_text(), entry

        self._ledger.ask(self._id, None, 0.0, name, compute)

    def corrected(self) -> str:
        """Return which labels were corrected since the guard was made, as `GuardState` says it. Secret."""
        return corrected_of(self._ledger.state(self._id))

    def correct(self, name: str, change: Callable[[str], tuple[str, float]]) -> Entry:
        """Put other labels in place of those that questions were answered with; the history notes it.

        Parameters
        ----------
        name : str
            What the history calls it: public, and no function of the labels.
        change : callable
            From what was corrected before to what is now, as `GuardState` says it, and by which part of the range that
            can have moved a mean: the value of the note, public, 1 where nothing is known of it.

        Raises
        ------
        InputError
            Where the mechanism's history has no notes; nothing is stored then.
        """
        mechanism = self._mechanism

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            state, outcome = mechanism.noted(before.mechanism)
            corrected, moved = change(before.corrected)
            outcome = replace(outcome, value=moved)
            entry = Question(0.0, (0.0, 1.0), name, None).entry(outcome, mechanism.remaining(state))
            return replace(before, mechanism=state, corrected=corrected).to_text(), entry

        return self._ledger.ask(self._id, None, 0.0, name, compute)[0]

    def _fail(self, question: Question, worth: Worth, *, final: bool = False) -> tuple[Entry, bool]:
        """Charge and store a question that failed; a final check also where declared numbers are used up."""

        def step(state: Any) -> tuple[Any, Outcome]:
            if final:
                return self._sharing("a final check").fail(state, question.train, self._noise, final=True)
            after, outcome = self._mechanism.fail(state, question.train, self._noise)
            return self._mechanism.failed(state, after, question.known), outcome

        return self._store(question, step, worth, failed=True)

    def _told(self, question: Question, entry: Entry, repeated: bool) -> Answer:
        return question.answer(entry, repeated, self._mechanism.about)

    def _store(
        self, question: Question, step: Callable[[Any], tuple[Any, Outcome]], worth: Worth, *, failed: bool = False
    ) -> tuple[Entry, bool]:
        """Take one step of the mechanism in the ledger."""
        certificate, for_share = worth

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            refuse_if(self._mechanism.client_refusal(before.mechanism, question.known))
            if not failed:
                check_labels(before, question)
            state, outcome = step(before.mechanism)
            failures = before.failures + failed
            interval = outcome.interval
            if certificate.chosen is None and not self._parameters.prices_looks:
                interval = (0.0, 1.0)  # claims pay for looks; others know nothing of them
            if interval is None:
                sure: Certificate | None = certificate
                if failures:
                    asked = 1 << (outcome.asked - 1).bit_length()  # at least the questions so far; few different ones
                    sure = for_share(failure_share(failures, asked, self._parameters.queries))
                interval = self._interval(sure, outcome)
            entry = question.entry(outcome, self._mechanism.remaining(state), interval)
            after = GuardState(state, failures, before.corrected)
            text = after.to_text()
            self._last = text, after
            return text, entry

        return self._ledger.ask(
            self._id,
            question.key,
            question.shown,
            question.name,
            compute,
            client=question.known.client,
            quota=question.quota,
            since=question.since,
        )

    def _interval(self, certificate: Certificate | None, outcome: Outcome) -> tuple[float, float]:
        """Return the interval of an answer by a certificate."""
        if certificate is None:
            return 0.0, 1.0
        source: AnswerSource = "train" if outcome.source == "train" else "holdout"
        try:
            return certificate.interval(outcome.asked, outcome.hits, source, outcome.value)
        except InputError:
            pass
        raise LedgerDamaged(self._ledger.location, None, "its state can't be read")


class LabelsCorrected(Exception):
    """Labels were corrected while a question was computed with the earlier ones; nothing was told or charged."""


def check_labels(before: GuardState[Any], *questions: Question) -> None:
    """Refuse values that were computed with other labels than those that a guard has now.

    Raises
    ------
    LabelsCorrected
        When labels were corrected meanwhile. Whoever asks computes the question again.
    """
    if any(question.corrected != before.corrected for question in questions):
        raise LabelsCorrected


def check_texts(questions: Sequence[Question]) -> None:
    """Refuse what no ledger could store before anything is computed on the holdout.

    Afterwards, a refusal instead of *raised*, or of the answer, would be a letter that keeps all of R (PROOFS.md, B2).
    """
    check_questions(map(as_asked, questions))
    for question in questions:
        check_short_texts(candidate=question.candidate)


def as_asked(question: Question) -> Asked:
    """Return what a ledger is told of a question."""
    client = question.known.client
    return Asked(question.key, question.shown, question.name, client, question.quota, question.since)
