"""The memory of a guard that makes claims, between two queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from thresholdout.data.client_states import client_key, join_state, split_state
from thresholdout.errors import InputError
from thresholdout.mechanisms.base import Past
from thresholdout.mechanisms.claims.predictor import PredictorState

__all__ = ["ClaimsState"]

_FORMAT = "claims/1"
_OF_CLIENTS: Final = frozenset({"client", "proposals"})
"""Kinds of climbs that belong to one client."""

_NOBODY: Final = client_key("")
"""The organiser, a client without a name; these numbers stand beside those that all share."""

_MEMORY: Final = attrgetter(*PredictorState.__slots__)


@dataclass(frozen=True, slots=True)
class ClaimsState:
    """State of `ClaimsMechanism` between two queries.

    The noise in the edges is secret, and left out of the representation.

    Attributes
    ----------
    log_error_budget : float
        Natural logarithm of R, the remaining error budget.
    asked : int
        Number of queries so far.
    hits : int
        Number of queries whose first claim was not confirmed.
    outcomes : int
        Number of outcomes other than *confirmed*, over all queries.
    exponent : int
        Exponent of the scale of the edges' noise, ``2**exponent`` in units of the range.
    edge : int
        The edges' noise, in units of ``2**-40`` of the range.
    memory : PredictorState
        Information of the answers so far about the next query.
    given : bool
        Whether the price of estimands that are given the labels was paid.
    other_releases : int
        Number of other private releases about the holdout, and of notes, among the queries.
    free : int
        Number of candidates among the queries that cross-validation alone decided.
    climbs : mapping of str to tuple of float
        Memory of gates, by their subjects; see `thresholdout.mechanisms.claims.gate_states`.

    Examples
    --------
    >>> state = ClaimsState(-3.0, 7, 1, 2, -9, 123456, PredictorState())
    >>> state
    ClaimsState(log_error_budget=-3.0, asked=7, hits=1, outcomes=2, exponent=-9, memory=PredictorState(xx=1.0, ...),
    ...)
    >>> ClaimsState.from_text(state.to_text()) == state
    True
    """

    log_error_budget: float
    asked: int
    hits: int
    outcomes: int
    exponent: int
    edge: int = field(repr=False)
    memory: PredictorState
    given: bool = False
    other_releases: int = 0
    free: int = 0
    climbs: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False)

    @property
    def queries(self) -> int:
        """Number of queries to the holdout so far."""
        return self.asked - self.other_releases - self.free

    def agrees(self, past: Past) -> bool:
        """Return whether the counts of the state are those of a history; see `MechanismState.agrees`."""
        return (self.asked, self.hits, self.free) == (past.asked, past.charged, past.free)

    def to_text(self) -> str:
        """Return the state as text for a ledger: one line, and one for each client that has a name."""
        numbers = " ".join(value.hex() for value in (self.log_error_budget, *_MEMORY(self.memory)))
        counts = (
            self.asked,
            self.hits,
            self.outcomes,
            self.exponent,
            self.edge,
            int(self.given),
            self.other_releases,
            self.free,
        )
        shared, clients = "", dict[str, str]()
        for name, climb in self.climbs.items():
            text = f" {name} {' '.join(map(float.hex, climb))}"
            kind, _, key = name.partition(":")
            if kind in _OF_CLIENTS and key != _NOBODY:
                clients[key] = clients.get(key, "") + text
            else:
                shared += text
        lines = {key: text[1:] for key, text in clients.items()}
        return join_state(f"{_FORMAT} {' '.join(map(str, counts))} {numbers}{shared}", lines)

    @classmethod
    def from_text(cls, text: str) -> ClaimsState:
        """Return the state from the text that `to_text` wrote."""
        try:
            main, clients = split_state(text)
            tag, *words = " ".join([main, *clients.values()]).split(" ")
            asked, hits, outcomes, exponent, edge, given, other_releases, free = map(int, words[:8])
            log_error_budget, *memory = map(float.fromhex, words[8:16])
            known = PredictorState(*memory)
            names = [k for k in range(16, len(words)) if "0x" not in words[k]]  # which all numbers have
            ends = [*names[1:], len(words)]
            climbs = {
                words[k]: tuple(map(float.fromhex, words[k + 1 : end])) for k, end in zip(names, ends, strict=False)
            }
            numbers = (log_error_budget, *memory, *(number for climb in climbs.values() for number in climb))
            finite = all(map(math.isfinite, numbers)) and all(climbs.values())
            if (
                tag != _FORMAT
                or given not in (0, 1)
                or (len(words) > 16 and names[:1] != [16])
                or not (other_releases >= 0 and free >= 0 and other_releases + free <= asked)
                or not (0 <= hits <= asked and hits <= outcomes and log_error_budget < 0.0 and finite)
            ):
                raise ValueError
        except (ValueError, TypeError, OverflowError):
            raise InputError("state", "a text of another form", f"the text of a {_FORMAT} state") from None
        return cls(
            log_error_budget, asked, hits, outcomes, exponent, edge, known, bool(given), other_releases, free, climbs
        )
