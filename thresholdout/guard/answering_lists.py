"""Lists of questions that were fixed together: answered as a whole or not at all, or only the best of them is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError
from thresholdout.guard.answering import FAILED, Answering, Worth, as_asked, check_labels, check_texts
from thresholdout.guard.question import Question
from thresholdout.guard.scan import scanned
from thresholdout.ledger.entry_checks import MADE, ContentKey
from thresholdout.mechanisms.base import SharesRisk, refuse_if
from thresholdout.silence import silence

if TYPE_CHECKING:
    from thresholdout.guard.answer import Answer
    from thresholdout.ledger.entry import Entry

__all__ = ["AnswersLists", "key_of_list"]

AskedTogether: TypeAlias = "tuple[Question, Callable[[], Any]]"
"""A question of a list, and what reads the holdout's values for it."""


class AnswersLists(Answering):
    """The part of an interaction that answers lists."""

    def answer_all(
        self, argument: str, asked: Sequence[AskedTogether], keep: float, worth: Callable[[], Worth]
    ) -> list[Answer]:
        """Answer questions that were fixed together: all in one transaction, or none.

        Parameters
        ----------
        argument : str
            What is at fault when one of them fails on the holdout.
        asked : sequence of (Question, callable)
            Each with what reads the holdout's values for it.
        keep : float
            Share of the risk for what comes after the list.
        worth : callable
            As for `look`.
        """
        mechanism = self._lists()
        check_texts([question for question, _ in asked])
        known = [self.find(question) for question, _ in asked]
        if all(answer is not None for answer in known):
            return [answer for answer in known if answer is not None]
        whole = _whole("list", asked)
        self.find(whole)  # of which one has failed
        new = [place for place, answer in enumerate(known) if answer is None]
        found = self._read_all(argument, [asked[place] for place in new], len(new), whole, worth)
        readings = dict(zip(new, found, strict=True))

        def compute(text: str, positions: tuple[int, ...]) -> tuple[str, list[Entry]]:
            before = self._restored(text)
            check_labels(before, *(question for question, _ in asked))
            some = [(asked[k][0].train, readings[k]) for k in positions]
            state, outcomes = mechanism.step_all(before.mechanism, some, self._noise, keep)
            left = mechanism.remaining(state)
            entries = [
                asked[k][0].entry(outcome, None if left is None else left + len(positions) - 1 - place)
                for place, (k, outcome) in enumerate(zip(positions, outcomes, strict=True))
            ]
            return replace(before, mechanism=state).to_text(), entries

        stored = self._ledger.ask_all(self._id, [as_asked(question) for question, _ in asked], compute)
        return [
            self._told(question, entry, repeated)
            for (question, _), (entry, repeated) in zip(asked, stored, strict=True)
        ]

    def answer_best(
        self,
        argument: str,
        asked: Sequence[AskedTogether],
        keep: float,
        greatest: bool,
        worth: Callable[[], Worth],
    ) -> Answer:
        """Answer which of some questions has the best value on the holdout, and with which value; one entry."""
        mechanism, whole = self._lists(), _whole("best", asked)
        check_texts([question for question, _ in asked])
        known = self.find(whole)
        if known is not None:
            return known
        readings = self._read_all(argument, asked, 1, whole, worth)

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            check_labels(before, *(question for question, _ in asked))
            some = [(question.train, reading) for (question, _), reading in zip(asked, readings, strict=True)]
            state, outcome, place = mechanism.step_best(before.mechanism, some, self._noise, keep, greatest)
            entry = whole.about(asked[place][0].candidate).entry(outcome, mechanism.remaining(state))
            return replace(before, mechanism=state).to_text(), entry

        entry, repeated = self._ledger.ask(self._id, whole.key, whole.shown, whole.name, compute)
        return self._told(whole, entry, repeated)

    def _lists(self) -> SharesRisk[Any, Any]:
        return self._sharing("a list of questions")

    def _read_all(
        self,
        argument: str,
        asked: Sequence[AskedTogether],
        answers: int,
        whole: Question,
        worth: Callable[[], Worth],
    ) -> list[Any]:
        """Compute all questions of a list on the holdout; a failure of one is charged once for the whole list."""
        refuse_if(self._lists().refusal(self.state(), answers))
        scanned(*(read for _, read in asked))
        try:
            with silence():
                bar = progress_bar(asked, doing="scores of the holdout", unit="questions")
                return [read() for _, read in bar]
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
        _, repeated = self._fail(whole, worth())
        if interrupted:
            if repeated:
                self._fail(whole.without_key(), worth())
            raise KeyboardInterrupt("a list was interrupted on the holdout; charged as an answer from the holdout")
        raise InputError(argument, FAILED, "questions that work on both parts")


def key_of_list(how: str, keys: Sequence[str | None], names: Sequence[str]) -> str | None:
    """Return the key of the question that stands for all of a list; ``None`` where one of them has none.

    Parameters
    ----------
    how : {"list", "best"}
        What is told.
    keys, names : sequence of str
        Of all questions. The name of the best is told, so that names are a part of that question.
    """
    if not all(keys):
        return None
    digest = sha256(json.dumps([how, *keys, *(names if how == "best" else ())]).encode()).hexdigest()
    return ContentKey(MADE + digest) if any(isinstance(key, ContentKey) for key in keys) else digest


def _whole(how: str, asked: Sequence[AskedTogether]) -> Question:
    """Return a question that stands for all of a list, with a key where all of them have one."""
    first = asked[0][0]
    names = [question.candidate for question, _ in asked]
    key = key_of_list(how, [question.key for question, _ in asked], names)
    return Question(first.train, first.limits, f"{how} of {len(asked)}: {first.name}", key, first.known)
