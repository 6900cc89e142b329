"""A stand-in for the guard's mechanism, whose state proves which answers it gave.

The state is a running digest of every answer, so a lost, doubled or changed entry, or a state that an entry
does not belong to, shows when the digest is computed again from the history.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from thresholdout.errors import BudgetExhausted
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry import JSON, Entry

SECRET = "s3cr3t-threshold"
FIRST = f"{SECRET}:0:{'0' * 64}"
PARAMETERS: dict[str, JSON] = {"threshold": 0.1, "budget": 10, "grid": None, "bounds": [0.0, 1.0], "name": "größe"}
GUARD = hashlib.sha256(b"holdout").hexdigest()


def next_state(state: str, value: float) -> str:
    secret, asked, digest = state.split(":")
    return f"{secret}:{int(asked) + 1}:{hashlib.sha256(f'{digest}{value!r}'.encode()).hexdigest()}"


def state_after(entries: Iterable[Entry]) -> str:
    state = FIRST
    for entry in entries:
        state = next_state(state, entry.value)
    return state


def assert_consistent(ledger: Ledger, guard: str = GUARD) -> None:
    """Every answer was charged, every charge was answered, and the numbers have no gap."""
    checkpoint = None
    while checkpoint != (
        checkpoint := ledger.checkpoint(guard)
    ):  # a server may still be at work for a client that was killed
        entries, state = ledger.entries(guard), ledger.state(guard)
    assert state == state_after(entries)
    assert [entry.query for entry in entries] == list(range(1, len(entries) + 1))
    assert len({entry.key for entry in entries}) == len(entries)


@dataclass
class Mechanism:
    """Answers with random numbers, and remembers which states it was given."""

    budget: int | None = None
    states: list[str] = field(default_factory=list)

    def __call__(self, state: str) -> tuple[str, Entry]:
        asked = int(state.split(":")[1])
        if self.budget is not None and asked >= self.budget:
            raise BudgetExhausted("budget", asked, self.budget)
        self.states.append(state)
        value = int.from_bytes(os.urandom(6)) / 2**48
        remaining = None if self.budget is None else self.budget - asked - 1
        entry = Entry(asked + 1, "", "", 0.0, value, value - 0.05, value + 0.05, "holdout", remaining, 0.0, 1.0)
        return next_state(state, value), entry

    def all(self, state: str, new: Sequence[int]) -> tuple[str, list[Entry]]:
        """Answer a list of queries."""
        entries = []
        for _ in new:
            state, entry = self(state)
            entries.append(entry)
        return state, entries
