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
_MOST_WRONG: Final = 0.9
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
    """What is remembered of one client: public numbers.

    Attributes
    ----------
    asked, wrong : float
        Queries, and those whose value was in another cell than the guess.
    shift : float
        By how much the last wrong guess about a score was off.
    last : float
        What was told last of a score.
    released : float
        Nats by which the remaining error budget has fallen with this client's answers.
    scored : float
        Whether there was any score: 0 or 1.

    Examples
    --------
    >>> Client().share(0.01), round(Client(asked=1.0, wrong=1.0).share(0.01), 3)
    (0.01, 0.34)
    """

    asked: float = 0.0
    wrong: float = 0.0
    shift: float = 0.0
    last: float = 0.5
    released: float = 0.0
    scored: float = 0.0

    def share(self, first: float) -> float:
        """Return the share of the error budget for other cells, from that of a client of whom nothing is known."""
        return min(_MOST_WRONG, (first * _BELIEF + self.wrong) / (_BELIEF + self.asked))

    def numbers(self) -> tuple[float, ...]:
        """Return it as a state keeps it."""
        return self.asked, self.wrong, self.shift, self.last, self.released, self.scored


@dataclass(frozen=True, slots=True)
class Newcomers:
    """What first answers to earlier clients say about the next client's first guess: public numbers.

    Examples
    --------
    >>> seen = Newcomers()
    >>> for _ in range(3):
    ...     seen = seen.after(-0.02, 2, 0.85, vague=False)
    >>> seen.shift, seen.answer, seen.share(0.01) > 0.25
    (-0.02, 0.85, True)
    """

    wrong: float = 0.0
    asked: float = 0.0
    lean: float = 0.0
    offsets: tuple[float, ...] = (0.0,) * _TRUSTED
    answers: tuple[float, ...] = ()

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Newcomers:
        """Read what `numbers` returned; nothing for none."""
        if not numbers:
            return cls()
        wrong, asked, lean, count, *rest = numbers
        return cls(wrong, asked, lean, tuple(rest[: int(count)]), tuple(rest[int(count) :]))

    def numbers(self) -> tuple[float, ...]:
        """Return it as a state keeps it."""
        return self.wrong, self.asked, self.lean, float(len(self.offsets)), *self.offsets, *self.answers

    def share(self, first: float) -> float:
        """Return the share of the error budget for other cells, for a client of whom nothing is known."""
        return min(_MOST_WRONG, (first * _BELIEF_IN_ALL + self.wrong) / (_BELIEF_IN_ALL + self.asked))

    @property
    def shift(self) -> float:
        """By how much first guesses were off."""
        return median_low(self.offsets) + self.lean

    @property
    def answer(self) -> float | None:
        """The median first answer, if there is one."""
        return median_low(self.answers) if self.answers else None

    def after(self, off: float, distance: int, answer: float, vague: bool) -> Newcomers:
        """Return it after a first answer that was so much, and so many cells, from where it was expected.

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
    """Return what a state keeps of first answers."""
    return Newcomers.of(state.climbs.get(NEWCOMERS, ()))


def client_of(state: ClaimsState, name: str) -> Client:
    """Return what a state remembers of a client."""
    return Client(*state.climbs.get(kept_as(name), ()))


def kept_as(name: str) -> str:
    """Return what a state calls a client: no text that somebody else chose is in it."""
    return f"client:{client_key(name)}"


def credited(state: ClaimsState, name: str, nats: float) -> ClaimsState:
    """Return the state after a client was told something that says nothing of scores."""
    client = client_of(state, name)
    after = replace(client, released=client.released + nats)
    return replace(state, climbs={**state.climbs, kept_as(name): after.numbers()})
