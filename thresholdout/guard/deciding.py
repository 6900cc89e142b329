"""Decisions of gates: planned from public numbers, then tested on the holdout and stored in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from thresholdout.guard.answering import Answering, Worth, check_texts
from thresholdout.guard.guard_state import GuardState
from thresholdout.guard.question import Question
from thresholdout.ledger.entry_checks import check_repeat
from thresholdout.mechanisms.base import refuse_if
from thresholdout.mechanisms.claims.gate_states import FREE, PROVED, Move, advanced, remembered_by

if TYPE_CHECKING:
    from thresholdout.ledger.entry import Entry
    from thresholdout.mechanisms.claims.gate import GateState
    from thresholdout.mechanisms.claims.gate_tests import GateTest
    from thresholdout.noise.sources import NoiseSource

__all__ = ["DecidesForGates"]


class DecidesForGates(Answering):
    """The part of an interaction that decides about the candidates of gates."""

    def decide(
        self,
        question: Question,
        gate: str,
        plan: Callable[[GateState], Move],
        read: Callable[[], Callable[[NoiseSource], GateTest]],
        blank: GateTest,
        least: float,
        gain: float,
        worth: Callable[[], Worth],
    ) -> tuple[Entry, bool]:
        """Decide about a candidate of a gate, and store the decision.

        Parameters
        ----------
        question : Question
            About the candidate.
        gate : str
            What the gate is about.
        plan : callable
            From what the gate remembers to what is done: from public numbers.
        read : callable
            Computes both models' values on the holdout and returns what makes a test of them; fails as in `look`.
        blank : GateTest
            A test that has seen nothing, for moves without a look.
        least : float
            What a confirmed claim says of the gain: that it is larger.
        gain : float
            What the training part says of the gain that a claim is about.
        worth : callable
            As for `look`.

        Returns
        -------
        entry : Entry
            As stored.
        repeated : bool
            Whether it was stored before.
        """
        mechanism = self._mechanism
        check_texts([question])
        stored = None if question.key is None else self._ledger.find(self._id, question.key)
        if stored is not None:
            check_repeat(stored, question.shown)
            question.check(stored, repeated=True)
            return stored, True
        before = self.state()
        refuse_if(mechanism.refusal(before))
        move = plan(remembered_by(before, gate))
        make: Callable[[NoiseSource], GateTest] = lambda noise: blank  # noqa: E731
        if move.looks:
            make, entry = self._computed("candidate", question, read, worth)
            if entry is not None:
                question.check(entry, repeated=True)
                return entry, True

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            refuse_if(mechanism.refusal(before.mechanism))
            gated, verdict = move.made(remembered_by(before.mechanism, gate), make(self._noise))
            after = advanced(before.mechanism, gate, gated, verdict)
            claimed = (least if verdict in PROVED else question.limits[0], question.limits[1])
            value = question.shown if verdict in FREE else gain
            left = mechanism.remaining(after)
            made = question.decided(verdict, claimed, value, after.asked, remaining=left, risk=after.log_risk)
            return GuardState(after, before.failures).to_text(), made

        entry, repeated = self._ledger.ask(self._id, question.key, question.shown, question.name, compute)
        question.check(entry, repeated)
        return entry, repeated
