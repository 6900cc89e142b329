"""Whether a guard's state fits its history, so that a budget that was refilled by hand shows.

The history is chained by digests; the state is not, since it is secret. What a state counts is public all the same, and
the history says what it has to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from thresholdout.data.client_states import client_key, join_state
from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.guard.guard_state import GuardState
from thresholdout.mechanisms import Past
from thresholdout.mechanisms.catalogue import parameters_from_json, read_state
from thresholdout.mechanisms.claims.clients import Client
from thresholdout.mechanisms.claims.score import start_error_budget
from thresholdout.planning.declaration import check_mechanism

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.ledger.entry import Entry
    from thresholdout.mechanisms import Mechanism

__all__ = ["check_clients", "check_standing"]

_SLICE: Final = 5000
"""Entries that are read at once."""

_NONE: Final = (0.0, 0.0, 0.0, 0.0, 0.0)
_ADDED: Final[dict[str, tuple[float, ...]]] = {
    "train": (1.0, 0.0, 0.0, 0.0),
    "holdout": (1.0, 1.0, 0.0, 0.0),
    "reject": (0.0, 0.0, 1.0, 0.0),
    "keep": (0.0, 0.0, 1.0, 1.0),
    "failed": (0.0, 0.0, 0.0, 0.0),
}
"""What an entry adds to a client's numbers: queries, wrong guesses, proposals that were tested, and certified ones."""


def check_standing(ledger: Ledger, guard: str, mechanism: Mechanism[Any, Any] | None = None) -> None:
    """Refuse a guard whose state does not fit its history.

    Parameters
    ----------
    ledger : Ledger
        Where the guard is. It may be asked meanwhile.
    guard : str
        What the ledger calls it.
    mechanism : Mechanism, optional
        What answers; then what remains is compared, too.

    Raises
    ------
    LedgerUnusable
        When this program does not have its mechanism.
    LedgerDamaged
        The state counts other answers than the history has. The message shows nothing of the state.
    """
    stored: Any = ledger.parameters(guard)
    before, text = ledger.count(guard), ledger.state(guard)
    if "chosen" not in stored or (not text and ledger.closed(guard) is not None):
        return  # no guard's, or the copy of a history
    check_mechanism(ledger, stored)
    try:
        found = GuardState.from_text(text, partial(read_state, parameters_from_json(stored["chosen"])))
    except InputError:
        found = None
    if found is None:
        raise LedgerDamaged(ledger.location, None, f"guard {guard[:12]!r}...: its state can't be read")
    # Entries never change, so those up to the state's own number are what it was computed from, whoever asks meanwhile.
    state = found.mechanism
    sources = ledger.sources(guard, state.asked)
    fits = before <= state.asked <= ledger.count(guard) and state.agrees(Past(state.asked, sources))
    fits = fits and found.failures == sources.get("failed", 0)
    if fits and mechanism is not None and state.asked:
        (last,) = ledger.entries(guard, state.asked, 1)
        restored = mechanism.restore(state.to_text())
        fits = last.remaining == mechanism.remaining(restored) and last.log_error_budget == mechanism.log_error_budget(
            restored
        )
    if not fits:
        raise LedgerDamaged(
            ledger.location,
            None,
            f"guard {guard[:12]!r}...: its state does not fit its history; the state was changed, or put back from "
            "an earlier time, so the holdout should not be used again",
        )


def check_clients(ledger: Ledger, guard: str) -> None:
    """Refuse a guard whose rows of clients do not fit its history; it may be asked meanwhile.

    Where a client's guess is expected is no part of this: no interval needs that to be right.

    Raises
    ------
    LedgerDamaged
        A row was changed, removed or put back from an earlier time.
    """
    stored: Any = ledger.parameters(guard)
    main = ledger.state(guard)
    if "chosen" not in stored or not main:
        return
    parameters: Any = parameters_from_json(stored["chosen"])
    if not parameters.guesses:
        return
    risk, told = (
        start_error_budget(parameters.confidence, parameters.information_released),
        dict[str, tuple[float, ...]](),
    )

    def replay(entries: Iterator[Entry]) -> Iterator[str]:
        nonlocal risk
        for entry in entries:
            before, risk = risk, risk if entry.log_error_budget is None else entry.log_error_budget
            added = _ADDED.get(entry.source)
            if entry.client and added is not None:
                key = client_key(entry.client)
                numbers = zip(told.get(key, _NONE), (*added, before - risk), strict=True)
                told[key] = tuple(number + more for number, more in numbers)
                yield key

    count = ledger.count(guard)
    for _ in replay(_entries(ledger, guard, 1, count)):
        pass
    rows = {key: _numbers(parameters, main, key, line) for key, line in ledger.clients(guard).items()}
    unlike = {key for key in rows.keys() | told.keys() if rows.get(key) != told.get(key)}
    for key in replay(_entries(ledger, guard, count + 1, ledger.count(guard))):  # asked since, or while rows were read
        if rows.get(key) == told[key]:
            unlike.discard(key)
    if unlike:
        reason = f"guard {guard[:12]!r}...: what it keeps of {len(unlike):,} clients does not fit its history"
        raise LedgerDamaged(ledger.location, None, reason)


def _entries(ledger: Ledger, guard: str, start: int, last: int) -> Iterator[Entry]:
    """Give entries without holding all of them in memory."""
    for first in range(start, last + 1, _SLICE):
        yield from ledger.entries(guard, first, min(_SLICE, last + 1 - first))


def _numbers(parameters: Any, main: str, key: str, line: str) -> tuple[float, ...]:
    """Return what a client's row says of its queries; nothing where it can't be read."""
    try:
        state: Any = GuardState.from_text(join_state(main, {key: line}), partial(read_state, parameters)).mechanism
        client = Client(*state.climbs[f"client:{key}"])
        tested, kept = state.climbs.get(f"proposals:{key}", (0.0, 0.0))[:2]
    except (InputError, KeyError, TypeError):
        return ()
    return client.asked, client.wrong, tested, kept, client.released
