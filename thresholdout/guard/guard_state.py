"""The state of a guard: its mechanism's state, failures, and corrected labels.

Digests chain the history but not the state, which is secret. The state's counts are public and follow from the history,
so a budget that was refilled by hand is detected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from thresholdout.data.client_states import client_key, join_state
from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.mechanisms import Past
from thresholdout.mechanisms.base import MechanismState
from thresholdout.mechanisms.catalogue import parameters_from_json, read_state
from thresholdout.mechanisms.claims.score import start_error_budget
from thresholdout.planning.declaration import check_mechanism

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.ledger.entry import Entry
    from thresholdout.mechanisms import Mechanism

__all__ = ["GuardState", "check_clients", "check_standing", "corrected_of"]

S = TypeVar("S", bound=MechanismState)

_FAILURES: Final = "failures "
_CORRECTED: Final = "corrected "
_MOST_DIGITS: Final = 19  # of a 64-bit integer


@dataclass(frozen=True, slots=True)
class GuardState(Generic[S]):
    r"""The ledger's record of a guard between two answers. Secret.

    ``corrected`` names labels that were corrected since the guard was made, in one line of text that its keeper
    chooses; values that were computed with other labels belong to another query.

    Examples
    --------
    >>> from thresholdout.mechanisms import LadderState
    >>> GuardState(LadderState(log_error_budget=-3.0, asked=7), failures=2).to_text().partition("\n")[0]
    'failures 2'
    """

    mechanism: S
    failures: int = 0
    corrected: str = ""

    def to_text(self) -> str:
        """Return the ledger's text, with lines for failures and corrections if there are any."""
        failures = f"{_FAILURES}{self.failures}\n" if self.failures else ""
        corrected = f"{_CORRECTED}{self.corrected}\n" if self.corrected else ""
        return failures + corrected + self.mechanism.to_text()

    @classmethod
    def from_text(cls, text: str, read: Callable[[str], S]) -> GuardState[S]:
        """Return the state of a text; ``read`` returns the mechanism's state of its text."""
        failures, corrected, rest = _parted(text)
        if not (failures.isascii() and failures.isdecimal() and len(failures) <= _MOST_DIGITS):
            raise InputError("state", "a text without a number of failures", "the text of a guard's state")
        return cls(read(rest), int(failures), corrected)


def corrected_of(text: str) -> str:
    r"""Return the corrections in a state's text without parsing the rest.

    Examples
    --------
    >>> corrected_of("failures 2\ncorrected here\nladder/1 7 2"), corrected_of("ladder/1 7 2")
    ('here', '')
    """
    return _parted(text)[1]


def _parted(text: str) -> tuple[str, str, str]:
    """Return the number of failures, the corrections and the mechanism's state as texts."""
    found = {_FAILURES: "0", _CORRECTED: ""}
    for name in found:
        if text.startswith(name):
            found[name], _, text = text[len(name) :].partition("\n")
    return found[_FAILURES], found[_CORRECTED], text


_SLICE: Final = 5000
"""Entries read at once, which bounds the memory."""

_NONE: Final = (0.0, 0.0, 0.0, 0.0, 0.0)
_ADDED: Final[dict[str, tuple[float, ...]]] = {
    "train": (1.0, 0.0, 0.0, 0.0),
    "holdout": (1.0, 1.0, 0.0, 0.0),
    "reject": (0.0, 0.0, 1.0, 0.0),
    "keep": (0.0, 0.0, 1.0, 1.0),
    "failed": (0.0, 0.0, 0.0, 0.0),
}
"""Increments of a client's numbers by an entry: queries, wrong guesses, tested proposals, and certified ones."""


def check_standing(ledger: Ledger, guard: str, mechanism: Mechanism[Any, Any] | None = None) -> None:
    """Refuse a guard whose state does not fit its history; with its mechanism, compare the remaining budget, too.

    The ledger may be in use meanwhile. A message shows nothing of the state.
    """
    stored: Any = ledger.parameters(guard)
    before, text = ledger.count(guard), ledger.state(guard)
    if "chosen" not in stored or (not text and ledger.closed(guard) is not None):
        return  # not a guard of this package, or the copy of a history
    check_mechanism(ledger, stored)
    try:
        found = GuardState.from_text(text, partial(read_state, parameters_from_json(stored["chosen"])))
    except InputError:
        found = None
    if found is None:
        raise LedgerDamaged(ledger.location, None, f"The state of guard {guard[:12]!r}... cannot be read.")
    # Entries never change, so the state was computed from those up to its own number. Later ones make no difference.
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
            f"The state of guard {guard[:12]!r}... does not match its history. It was changed, or restored from "
            "an earlier time: do not use the holdout again.",
        )


def check_clients(ledger: Ledger, guard: str) -> None:
    """Refuse a guard whose rows of clients do not fit its history; it may be in use meanwhile.

    A client's expected guesses are not checked: no interval needs them to be right.
    """
    stored: Any = ledger.parameters(guard)
    main = ledger.state(guard)
    if "chosen" not in stored or not main:
        return
    parameters: Any = parameters_from_json(stored["chosen"])
    if not parameters.anticipates:
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
    for key in replay(_entries(ledger, guard, count + 1, ledger.count(guard))):  # entries of the time since then
        if rows.get(key) == told[key]:
            unlike.discard(key)
    if unlike:
        reason = f"The rows of {len(unlike):,} clients of guard {guard[:12]!r}... do not match its history."
        raise LedgerDamaged(ledger.location, None, reason)


def _entries(ledger: Ledger, guard: str, start: int, last: int) -> Iterator[Entry]:
    """Yield entries without holding all of them in memory."""
    for first in range(start, last + 1, _SLICE):
        yield from ledger.entries(guard, first, min(_SLICE, last + 1 - first))


def _numbers(parameters: Any, main: str, key: str, line: str) -> tuple[float, ...]:
    """Return the numbers in a client's row; empty if it is unreadable."""
    from thresholdout.mechanisms.claims.clients import Client

    try:
        state: Any = GuardState.from_text(join_state(main, {key: line}), partial(read_state, parameters)).mechanism
        client = Client(*state.climbs[f"client:{key}"])
        tested, kept = state.climbs.get(f"proposals:{key}", (0.0, 0.0))[:2]
    except (InputError, KeyError, TypeError):
        return ()
    return client.asked, client.wrong, tested, kept, client.released
