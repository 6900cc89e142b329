"""Whether a ledger is the newest copy of itself, as far as its witness knows, and what is left when it is not.

A ledger that is put back to an earlier copy would answer again what it has answered since, with fresh noise and from
the risk that was left then: its budget is spent twice, and nothing inside of it shows that. The witness does: the last
checkpoint that it was told has to be in the chain of the ledger.

*What an accepted copy is worth (PROOFS.md, "A ledger that is put back").* Unless two copies answered at the same time,
entries up to the last one that is known to be in both lives keep their promise, and so do receipts of answers that are
missing now. What is answered from then on comes from a state that does not know of the missing answers, to people who
know them. Nothing is promised of these.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.ledger.settings import change_setting, read_setting
from thresholdout.service.receipts.checkpoint_comparison import checkpoint_at, compare_checkpoints
from thresholdout.service.receipts.errors import LedgerOutdated, WitnessUnusable
from thresholdout.service.receipts.receipt import written_time
from thresholdout.service.receipts.witness_lines import accepted_line, checkpoint_line, mark_of, started_line
from thresholdout.service.receipts.witnessing import in_parts

if TYPE_CHECKING:
    from thresholdout.errors import ThresholdoutError
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.witness import Witness

__all__ = ["AcceptedCopy", "accepted_copies", "check_newest", "copy_notes", "proved_until", "remember_line"]

_MARK: Final = "witness"
"""Name of the setting that says which line the witness is known to have."""

_ACCEPTED: Final = "accepted_copies"
_LONGEST_REASON: Final = 500
_WAY_OUT: Final = (
    "Bring the witness back as it was; or, if it is lost, start with --accept-rollback REASON, which every board "
    "says from then on"
)


@dataclass(frozen=True, slots=True)
class AcceptedCopy:
    """A time when a ledger went on though its witness did not confirm that it is the newest copy.

    Attributes
    ----------
    time : str
        When, in the form of RFC 3339.
    reason : str
        Why, in the administrator's words.
    seen : str
        What was wrong, in the program's.
    behind : dict
        Of guards that had given answers which are missing: the number of the last one that is known of, and the number
        of the last one that is here and was the same in both lives.
    asked : dict
        How many answers each guard had then.
    """

    time: str
    reason: str
    seen: str
    behind: dict[str, tuple[int, int]]
    asked: dict[str, int]


def check_newest(ledger: SQLLedger, witness: Witness | None, *, accept: str | None = None) -> AcceptedCopy | None:
    """Refuse a ledger that is older than what its witness knows, before it answers anything.

    Parameters
    ----------
    ledger : SQLLedger
        The service's.
    witness : Witness or None
        Where its checkpoints are kept; None where that was never done.
    accept : str, optional
        Why an administrator lets it go on nevertheless. It is recorded in the ledger and at the witness.

    Returns
    -------
    AcceptedCopy or None
        What was accepted, if anything was.

    Raises
    ------
    LedgerOutdated
        The ledger has not the answers that the witness knows of.
    WitnessUnusable
        The witness can't be read or written, or is damaged, cut, missing, or not the one that the ledger had.
    InputError
        Something is accepted, and there is nothing to accept: whoever leaves the option in place would never be warned.
    """
    if accept is not None and not (accept.strip() and accept.isprintable() and len(accept) <= _LONGEST_REASON):
        expected = f"the reason why this copy is accepted, in at most {_LONGEST_REASON} printable characters"
        raise InputError("accept_rollback", repr(accept[:80]), expected)
    problem, behind = _examined(ledger, witness)
    if problem is None:
        if accept is not None:
            seen = "given, and this ledger is the newest copy that its witness knows of"
            raise InputError("accept_rollback", seen, "nothing; leave it out, or the next old copy is accepted unseen")
        accepted = None
    else:
        if accept is None:
            raise problem
        accepted = _accept(ledger, accept, str(problem), behind)
    if witness is not None:
        _tell_all(ledger, witness, accepted)
    return accepted


def accepted_copies(ledger: SQLLedger) -> list[AcceptedCopy]:
    """Return when a ledger went on as an older copy, the first time first.

    Parameters
    ----------
    ledger : SQLLedger
        The service's.
    """
    return _parsed(ledger, read_setting(ledger, _ACCEPTED))


def copy_notes(ledger: SQLLedger, guard: str) -> tuple[str, ...]:
    """Return what a board has to say of accepted copies: what happened, and what is promised since.

    Parameters
    ----------
    ledger : SQLLedger
        The service's.
    guard : str
        What it calls the guard of the board.
    """
    notes = []
    for copy in accepted_copies(ledger):
        when = f"On {copy.time[:10]} this service went on from a copy that its witness did not confirm ({copy.reason})"
        if guard not in copy.asked:  # it was made later
            if not copy.behind or any(other not in copy.asked for other in copy.behind):
                notes.append(
                    f"{when}, and holdouts may be missing in it. If the records of this one were behind one of those, "
                    "nothing is promised of its answers."
                )
            continue
        kept = _kept(copy, guard)
        if kept is None:
            continue
        what = "whether answers were given that are not in it is not known"
        if guard in copy.behind:
            what = f"answers were given that are not in it, up to number {copy.behind[guard][0]} at least"
        notes.append(
            f"{when}: {what}. Unless two copies answered at the same time, answers up to number {kept} keep their "
            f"promise, and so do receipts of answers that are missing; nothing is promised of others after "
            f"number {kept}."
        )
    return tuple(notes)


def proved_until(ledger: SQLLedger, guard: str) -> int | None:
    """Return the number of the last answer that is promised anything; None where no copy was accepted.

    Parameters
    ----------
    ledger : SQLLedger
        The service's.
    guard : str
        What it calls the guard.
    """
    limits = [limit for copy in accepted_copies(ledger) if (limit := _kept(copy, guard)) is not None]
    return min(limits, default=None)


def remember_line(ledger: SQLLedger, line: str) -> None:
    """Let a ledger remember a line that its witness has, so that a witness without it is recognised as cut.

    Parameters
    ----------
    ledger : SQLLedger
        The service's.
    line : str
        The line; nothing is done for an empty one.
    """
    if line:
        change_setting(ledger, _MARK, lambda _: mark_of(line))


def _kept(copy: AcceptedCopy, guard: str) -> int | None:
    """Return the number of a copy's last answer that is promised anything; None where the witness confirmed all."""
    if guard in copy.behind:
        return copy.behind[guard][1]
    return None if copy.behind else copy.asked.get(guard)


def _examined(
    ledger: SQLLedger, witness: Witness | None
) -> tuple[ThresholdoutError | None, dict[str, tuple[int, int]]]:
    """Return what is wrong, if anything is, and the guards that are behind."""
    mark = read_setting(ledger, _MARK) or None
    if witness is None:
        if mark is None:
            return None, {}
        reason = f"this ledger's checkpoints were kept by a witness, and none is named. {_WAY_OUT}"
        return WitnessUnusable("(none)", reason), {}
    found = compare_checkpoints(ledger, witness, mark)
    if found.damaged:
        return WitnessUnusable(witness.location, f"{found.damaged}: it was changed or damaged. {_WAY_OUT}"), {}
    if mark is not None and (found.behind() or not found.marked):
        whole = compare_checkpoints(ledger, witness, None)  # also what fitted before, to know how far it did
    else:
        whole = found
    behind = whole.behind()
    if behind:
        return LedgerOutdated(ledger.location, behind), behind
    if not found.marked:
        lost = "it was cut, or put back from an earlier copy" if found.known else "it is missing, new, or another one"
        reason = f"a line that it had of ledger {ledger.location} is not in it: {lost}. {_WAY_OUT}"
        return WitnessUnusable(witness.location, reason), {}
    return None, {}


def _accept(ledger: SQLLedger, reason: str, seen: str, behind: dict[str, tuple[int, int]]) -> AcceptedCopy:
    """Record in a ledger that it goes on."""
    asked = {guard: ledger.count(guard) for guard in ledger.guards()}
    accepted = AcceptedCopy(written_time(time.time()), reason, seen, behind, asked)

    def change(text: str | None) -> str:
        return json.dumps([asdict(copy) for copy in (*_parsed(ledger, text), accepted)])

    change_setting(ledger, _ACCEPTED, change)
    change_setting(ledger, _MARK, lambda _: "")  # it remembers no line of a witness that is given up
    return accepted


def _tell_all(ledger: SQLLedger, witness: Witness, accepted: AcceptedCopy | None) -> None:
    """Tell a witness all checkpoints, and remember the last line."""
    identity, now = ledger.identity(), written_time(time.time())
    lines = [] if accepted is None else [accepted_line(identity, accepted.reason, accepted.time)]
    guards = ledger.guards()
    for guard in guards:
        count = ledger.count(guard)
        lines.append(checkpoint_line(identity, guard, count, checkpoint_at(ledger, guard, count), now))
    lines.append(started_line(identity, len(guards), now))
    for part in in_parts(lines):
        witness.append(part)
    remember_line(ledger, lines[-1])


def _parsed(ledger: SQLLedger, text: str | None) -> list[AcceptedCopy]:
    try:
        return [
            AcceptedCopy(**{**one, "behind": {guard: tuple(pair) for guard, pair in one["behind"].items()}})
            for one in json.loads(text or "[]")
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    raise LedgerDamaged(ledger.location, None, "its record of accepted copies can't be read")
