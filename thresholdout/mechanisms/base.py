"""What all mechanisms have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

from thresholdout.noise import NoiseSource

__all__ = ["Mechanism", "MechanismState", "Outcome"]


class MechanismState(Protocol):
    """Everything that a mechanism remembers between two queries. Secret: never shown, logged or printed."""

    def to_text(self) -> str:
        """Return the state as text for a ledger; `Mechanism.restore` reads it."""


StateT = TypeVar("StateT", bound=MechanismState)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step of a mechanism releases.

    Attributes
    ----------
    value : float
        The answer, in units of the query's range, in [0, 1].
    source : {"train", "holdout"}
        Where it comes from.
    hits : int
        Answers from the holdout *before* this round.
    asked : int
        Number of this round, from 1.
    """

    value: float
    source: Literal["train", "holdout"]
    hits: int
    asked: int


class Mechanism(ABC, Generic[StateT]):
    """A state machine that answers queries about a holdout.

    Implementations are immutable, and their steps are pure but for the noise that they draw: the same state, the same
    numbers and the same noise give the same result, and nothing else is remembered. Numbers are in units of the
    query's range: train value, holdout mean and answer lie in [0, 1], and one of n records moves a mean by 1/n.
    """

    name: ClassVar[str]
    """How the mechanism is called in plans, ledgers and messages."""

    @abstractmethod
    def start(self, noise: NoiseSource) -> StateT:
        """Return the state before the first query."""

    @abstractmethod
    def step(self, state: StateT, train: float, holdout: float, noise: NoiseSource) -> tuple[StateT, Outcome]:
        """Answer one query.

        Parameters
        ----------
        state
            The state before the query; it is not changed.
        train, holdout : float
            The value on the training part, and the secret mean on the holdout, both in [0, 1].
        noise : NoiseSource
            Where the noise comes from.

        Returns
        -------
        state
            The state after the query. It must be stored durably before the outcome is shown.
        outcome : Outcome
            What may be shown.

        Raises
        ------
        BudgetExhausted
            When no further query is allowed. No noise has been drawn then.
        InputError
            When a value is not in [0, 1]. No noise has been drawn, and the message does not show the holdout's value.
        """

    @abstractmethod
    def restore(self, text: str) -> StateT:
        """Return the state that `MechanismState.to_text` wrote."""

    @abstractmethod
    def epsilon(self, n: int) -> float:
        """Bound the differential privacy of the whole interaction about means of n records, in nats."""

    @abstractmethod
    def noise_slack(self, n: int) -> float:
        """Bound what integer and floating-point arithmetic add to an answer's error, in units of the range."""
