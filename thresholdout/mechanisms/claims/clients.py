"""The public numbers that a leaderboard's guard keeps of each client, and of the first answers to all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING, Final

from thresholdout.data.client_states import client_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thresholdout.mechanisms.claims.state import ClaimsState

__all__ = ["NEWCOMERS", "Client", "Newcomers", "client_of", "credited", "kept_as", "newcomers_of"]

NEWCOMERS: Final = "newcomers:"
"""Name of the numbers about first answers in a state."""

_BELIEF: Final = 2.0  # queries that the first share of wrong guesses counts for
_BELIEF_IN_ALL: Final = 6.0  # the same of first answers: the next client is somebody else
_MOST_WRONG: Final = 0.9  # leaves a tenth for a right guess, which then costs 2.3 nats
_FADING: Final = 0.8
"""Weight of the first answers before the last one: after a change of habits, some 5 answers count."""
_WINDOW: Final = 9
"""First answers that medians are over: fewer than 5 of 9 junk guesses move none of them."""
_FIRST_STEP: Final = 0.75
"""Of the way into the next cell, where most first values of a window were: more than for one alone."""
_LEAN: Final = 0.05
"""Of the way into the next cell, for each value in it."""
_TRUSTED: Final = 2
"""Exact guesses that count before the first one, so that a single wrong guess moves nobody else's."""


@dataclass(frozen=True, slots=True)
class Client:
    """The memory of one client: public numbers.

    `asked` and `wrong` count queries, and those whose value was in another cell than the guess. `shift` is the error of
    the last wrong guess about a score, `last` the last released score, `released` the nats of this client's answers,
    and `scored` is 1 after any score.
    """

    asked: float = 0.0
    wrong: float = 0.0
    shift: float = 0.0
    last: float = 0.5
    released: float = 0.0
    scored: float = 0.0

    def share(self, first: float) -> float:
        """Return the share of the error budget for other cells, from that of an unknown client."""
        return min(_MOST_WRONG, (first * _BELIEF + self.wrong) / (_BELIEF + self.asked))

    def numbers(self) -> tuple[float, ...]:
        """Return the form in a state."""
        return self.asked, self.wrong, self.shift, self.last, self.released, self.scored


@dataclass(frozen=True, slots=True)
class Newcomers:
    """The expectation of the next client's first guess, from first answers to earlier clients: public numbers."""

    wrong: float = 0.0
    asked: float = 0.0
    lean: float = 0.0
    offsets: tuple[float, ...] = (0.0,) * _TRUSTED
    answers: tuple[float, ...] = ()

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Newcomers:
        """Return the numbers from their form in a state; the start for none."""
        if not numbers:
            return cls()
        wrong, asked, lean, count, *rest = numbers
        return cls(wrong, asked, lean, tuple(rest[: int(count)]), tuple(rest[int(count) :]))

    def numbers(self) -> tuple[float, ...]:
        """Return the form in a state."""
        return self.wrong, self.asked, self.lean, float(len(self.offsets)), *self.offsets, *self.answers

    def share(self, first: float) -> float:
        """Return the share of the error budget for other cells, for an unknown client."""
        return min(_MOST_WRONG, (first * _BELIEF_IN_ALL + self.wrong) / (_BELIEF_IN_ALL + self.asked))

    @property
    def shift(self) -> float:
        """The expected error of a first guess."""
        return median_low(self.offsets) + self.lean

    @property
    def answer(self) -> float | None:
        """The median first answer, if there is one."""
        return median_low(self.answers) if self.answers else None

    def after(self, off: float, distance: int, answer: float, vague: bool) -> Newcomers:
        """Return the numbers after a first answer at an offset, and a distance in cells, from its expected value.

        Where the next cell was right again and again, on one side, guesses lean a little more to that side each time.
        """
        answers = (*self.answers, answer)[-_WINDOW:]
        if vague:
            return replace(self, answers=answers)
        near = distance == 1
        offset = median_low(self.offsets) + (_FIRST_STEP * off if near else off)
        lean = self.lean + (_LEAN * off if near else 0.0)
        offsets = (*self.offsets, offset)[-_WINDOW:]
        return Newcomers(_FADING * self.wrong + (distance > 0), _FADING * self.asked + 1.0, lean, offsets, answers)


def newcomers_of(state: ClaimsState) -> Newcomers:
    """Return a state's numbers of first answers."""
    return Newcomers.of(state.climbs.get(NEWCOMERS, ()))


def client_of(state: ClaimsState, name: str) -> Client:
    """Return a state's memory of a client."""
    return Client(*state.climbs.get(kept_as(name), ()))


def kept_as(name: str) -> str:
    """Return a state's name for a client: no text that somebody else chose is in it."""
    return f"client:{client_key(name)}"


def credited(state: ClaimsState, name: str, nats: float) -> ClaimsState:
    """Return the state after a client received information that says nothing of scores."""
    client = client_of(state, name)
    after = replace(client, released=client.released + nats)
    return replace(state, climbs={**state.climbs, kept_as(name): after.numbers()})
