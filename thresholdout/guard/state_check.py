"""Whether a guard's state fits its history, so that a budget that was refilled by hand shows.

The history is chained by digests; the state is not, since it is secret. What a state counts is public all the same, and
the history says what it has to be.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.guard.guard_state import GuardState
from thresholdout.mechanisms import Past
from thresholdout.mechanisms.catalogue import parameters_from_json, read_state
from thresholdout.planning.declaration import check_mechanism

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.mechanisms import Mechanism

__all__ = ["check_standing"]


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
    fits = fits and (not found.past or found.past.split(" ")[0] == str(state.asked))
    if fits and mechanism is not None and state.asked:
        (last,) = ledger.entries(guard, state.asked, 1)
        restored = mechanism.restore(state.to_text())
        fits = last.remaining == mechanism.remaining(restored) and last.risk == mechanism.log_risk(restored)
    if not fits:
        raise LedgerDamaged(
            ledger.location,
            None,
            f"guard {guard[:12]!r}...: its state does not fit its history; the state was changed, or put back from "
            "an earlier time, so the holdout should not be used again",
        )
