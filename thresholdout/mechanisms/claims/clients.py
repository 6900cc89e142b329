"""What a guard remembers of each of those who ask: public numbers in its state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from thresholdout.mechanisms.claims.state import ClaimsState

__all__ = ["Client", "client_of", "credited", "kept_as"]

_BELIEF: Final = 2.0  # questions that the first share of wrong guesses counts for
_MOST_WRONG: Final = 0.9


@dataclass(frozen=True, slots=True)
class Client:
    """What is remembered of one client: public numbers.

    Attributes
    ----------
    asked, wrong : float
        Questions, and those whose value was in another cell than the guess.
    shift : float
        By how much the last wrong guess about a score was off.
    last : float
        What was told last of a score.
    told : float
        Nats by which the risk that is left has fallen with this client's answers.
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
    told: float = 0.0
    scored: float = 0.0

    def share(self, first: float) -> float:
        """Return the share of the risk for other cells, from that of a client of whom nothing is known."""
        return min(_MOST_WRONG, (first * _BELIEF + self.wrong) / (_BELIEF + self.asked))

    def numbers(self) -> tuple[float, ...]:
        """Return it as a state keeps it."""
        return self.asked, self.wrong, self.shift, self.last, self.told, self.scored


def client_of(state: ClaimsState, name: str) -> Client:
    """Return what a state remembers of a client."""
    return Client(*state.climbs.get(kept_as(name), ()))


def kept_as(name: str) -> str:
    """Return what a state calls a client: no text that somebody else chose is in it."""
    return f"client:{sha256(name.encode()).hexdigest()[:32]}"


def credited(state: ClaimsState, name: str, nats: float) -> ClaimsState:
    """Return the state after a client was told something that says nothing of scores."""
    client = client_of(state, name)
    after = replace(client, told=client.told + nats)
    return replace(state, climbs={**state.climbs, kept_as(name): after.numbers()})
