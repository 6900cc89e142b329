"""Whether a guard's state fits its history, so that a budget that was refilled by hand shows.

The history is chained by digests; the state is not, since it is secret. What a state counts is public all the same, and
the history says what it has to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.mechanisms import Past
from thresholdout.mechanisms.catalogue import parameters_from_json, read_state
from thresholdout.planning.declaration import check_mechanism

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.mechanisms import Mechanism

__all__ = ["check_standing", "joined_state", "parted_state", "past_of"]

_FAILURES: Final = "failures "
_PAST: Final = "past "


def parted_state(text: str) -> tuple[int, str]:
    """Return the number of failures so far, and the mechanism's state, from the text that a ledger keeps.

    Examples
    --------
    >>> parted_state(joined_state(2, "gaussian/1 7 2"))
    (2, 'gaussian/1 7 2')
    """
    failures, _, inner = _parts(text)
    return failures, inner


def past_of(text: str) -> str:
    """Return what a certificate has kept of earlier answers; empty where it keeps nothing.

    Examples
    --------
    >>> past_of(joined_state(0, "gaussian/1 7 2", "7 0.25 0.5")), past_of("gaussian/1 7 2")
    ('7 0.25 0.5', '')
    """
    return _parts(text)[1]


def joined_state(failures: int, inner: str, past: str = "") -> str:
    """Return the text that a ledger keeps."""
    return (f"{_FAILURES}{failures}\n" if failures else "") + (f"{_PAST}{past}\n" if past else "") + inner


def _parts(text: str) -> tuple[int, str, str]:
    """Return failures, what is kept of earlier answers, and the mechanism's state."""
    failures, past = 0, ""
    if text.startswith(_FAILURES):
        count, _, text = text[len(_FAILURES) :].partition("\n")
        failures = int(count) if count.isdecimal() and len(count) < 20 else -1
    if text.startswith(_PAST):
        past, _, text = text[len(_PAST) :].partition("\n")
    return failures, past, text


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
    if "chosen" not in stored or (not text and ledger.retired(guard) is not None):
        return  # no guard's, or the copy of a history
    failures, past, inner = _parts(text)
    check_mechanism(ledger, stored)
    try:
        state = read_state(parameters_from_json(stored["chosen"]), inner)
    except InputError:
        state = None
    if state is None:
        raise LedgerDamaged(ledger.location, None, f"guard {guard[:12]!r}...: its state can't be read")
    # Entries never change, so those up to the state's own number are what it was computed from, whoever asks meanwhile.
    sources = ledger.sources(guard, state.asked)
    fits = before <= state.asked <= ledger.count(guard) and state.agrees(Past(state.asked, sources))
    fits = fits and failures == sources.get("failed", 0) and (not past or past.split(" ")[0] == str(state.asked))
    if fits and mechanism is not None and state.asked:
        (last,) = ledger.entries(guard, state.asked, 1)
        restored = mechanism.restore(inner)
        fits = last.remaining == mechanism.remaining(restored) and last.risk == mechanism.log_risk(restored)
    if not fits:
        raise LedgerDamaged(
            ledger.location,
            None,
            f"guard {guard[:12]!r}...: its state does not fit its history; the state was changed, or put back from "
            "an earlier time, so the holdout should not be used again",
        )
