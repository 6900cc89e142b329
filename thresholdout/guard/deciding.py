"""Decisions of one bit: planned from public numbers, then tested on the holdout and stored in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from thresholdout.guard.answering import Answering, Worth, as_asked, check_labels, check_texts
from thresholdout.guard.question import Question
from thresholdout.ledger.entry_checks import check_repeat
from thresholdout.mechanisms.base import refuse_if
from thresholdout.mechanisms.claims.gate_states import FREE, PROVED, Verdict

if TYPE_CHECKING:
    from thresholdout.ledger.entry import Entry
    from thresholdout.noise.sources import NoiseSource

__all__ = ["Decides", "Move"]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Counting(Protocol):
    """The state of a mechanism that decides."""

    @property
    def asked(self) -> int:
        """Questions so far."""

    @property
    def log_risk(self) -> float:
        """Logarithm of the risk that is left."""


State = TypeVar("State", bound=Counting)


class Move(Protocol[State, T_contra]):
    """What is done about a candidate, as it was planned: public, but for what it is given of the holdout."""

    @property
    def looks(self) -> bool:
        """Whether the holdout is looked at."""

    def made(self, state: State, test: T_contra) -> tuple[State, Verdict]:
        """Return the state after it, and how it ended."""


class Decides(Answering):
    """The part of an interaction that decides about candidates and proposals."""

    def decide(
        self,
        question: Question,
        plan: Callable[[State], Move[State, T]],
        read: Callable[[], Callable[[NoiseSource], T]],
        blank: T,
        least: float,
        gain: float,
        worth: Callable[[], Worth],
    ) -> tuple[Entry, bool]:
        """Decide about a candidate, and store the decision.

        Parameters
        ----------
        question : Question
            About the candidate.
        plan : callable
            From the guard's state to what is done: from public numbers.
        read : callable
            Computes both models' values on the holdout and returns what makes a test of them; fails as in `look`.
        blank : object
            A test that has seen nothing, for moves without a look.
        least : float
            What a confirmed claim says of the gain: that it is larger.
        gain : float
            What is expected of the gain that a claim is about.
        worth : callable
            As for `look`.

        Returns
        -------
        entry : Entry
            As stored.
        repeated : bool
            Whether it was stored before.
        """
        mechanism, asked = self._mechanism, as_asked(question)
        check_texts([question])
        stored = None if asked.key is None else self._ledger.find(self._id, asked.key, asked.client)
        if stored is not None:
            check_repeat(stored, question.shown)
            question.check(stored, repeated=True)
            return stored, True
        before = self.state(asked.client)
        refuse_if(mechanism.refusal(before) or mechanism.client_refusal(before, question.known))
        move = plan(before)
        make: Callable[[NoiseSource], T] = lambda noise: blank  # noqa: E731
        if move.looks:
            make, entry = self._computed("candidate", question, read, worth)
            if entry is not None:
                question.check(entry, repeated=True)
                return entry, True

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            refuse_if(mechanism.refusal(before.mechanism) or mechanism.client_refusal(before.mechanism, question.known))
            check_labels(before, question)
            after, verdict = move.made(before.mechanism, make(self._noise))
            claimed = (least if verdict in PROVED else question.limits[0], question.limits[1])
            value = question.shown if verdict in FREE else gain
            left = mechanism.remaining(after)
            made = question.decided(verdict, claimed, value, after.asked, remaining=left, risk=after.log_risk)
            return replace(before, mechanism=after).to_text(), made

        entry, repeated = self._ledger.ask(
            self._id,
            asked.key,
            asked.train,
            asked.name,
            compute,
            client=asked.client,
            quota=asked.quota,
            since=asked.since,
        )
        question.check(entry, repeated)
        return entry, repeated
