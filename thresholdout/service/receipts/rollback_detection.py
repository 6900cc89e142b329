"""Rollback detection: whether a ledger is the newest copy of itself, as far as its witness knows.

A ledger that is restored from an earlier copy would answer again, with fresh noise and from its earlier error budget:
its budget is spent twice, and nothing inside of it shows that. The witness does: its last checkpoint has to be in the
chain of the ledger.

*Guarantee of an accepted copy (PROOFS.md, "Rollback of a ledger").* Unless two copies answered at the same time,
entries up to the last one that is known to be in both histories keep their guarantee, and so do receipts of answers
that are missing now. Later answers come from a state without the missing answers, and go to people who know these.
Nothing is guaranteed about them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.ledger.digest_chain import first_digest
from thresholdout.service.receipts.errors import LedgerOutdated, WitnessUnusable
from thresholdout.service.receipts.receipt import written_time
from thresholdout.service.receipts.witness import accepted_line, checkpoint_line, mark_of, read_lines, started_line
from thresholdout.service.receipts.witnessing import in_parts

if TYPE_CHECKING:
    from thresholdout.errors import ThresholdoutError
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.witness import Said, Witness

__all__ = [
    "AcceptedCopy",
    "CheckpointComparison",
    "accepted_copies",
    "check_newest",
    "checkpoint_at",
    "compare_checkpoints",
    "copy_notes",
    "proved_until",
    "remember_line",
]

# Checkpoints that are held in memory.
_AT_ONCE: Final = 10_000

# A slice spans at most so many missing numbers in a row, and so many entries.
_GAP: Final = 50
_SLICE: Final = 5000


class CheckpointComparison:
    """Comparison of a witness's lines with a ledger.

    Notes
    -----
    `mark` is the ledger's digest of a line: checkpoints before that line were compared earlier. `wrong` gives, for
    guards whose history is known to differ, the least number of a checkpoint that is not in it. `marked` says whether
    the line was met, `known` whether any line is about the ledger, and `damaged` the error of a line since the last
    acceptance.
    """

    def __init__(self, ledger: SQLLedger, mark: str | None, wrong: dict[str, int] | None = None) -> None:
        self.marked = mark is None
        self.known = False
        self.damaged = ""
        self._ledger = ledger
        self._identity = ledger.identity()
        self._mark = mark
        self._guards = set(ledger.guards())
        self._checkpoints: dict[str, dict[int, set[str]]] = {}
        self._held = 0
        self._last: dict[str, int] = {}
        self._wrong: dict[str, int] = {}
        self._known_wrong = wrong or {}
        self._right: dict[str, int] = {}

    def take(self, said: Said) -> None:
        """Take the next line."""
        if said.about == "damaged":
            self.damaged = self.damaged or said.reason
        if said.ledger != self._identity:
            return
        self.known = True
        if said.mark == self._mark:
            self.marked = True
        if said.about == "accepted":
            self.damaged = ""
            self._forget()
        elif said.about == "checkpoint" and self.marked:
            self._checkpoints.setdefault(said.guard, {}).setdefault(said.query, set()).add(said.checkpoint)
            self._held += 1
            if self._held >= _AT_ONCE:
                self.finish()

    def finish(self) -> None:
        """Compare the held checkpoints."""
        for guard, checkpoints in self._checkpoints.items():
            self._last[guard] = max(self._last.get(guard, 0), *checkpoints)
            found = self._found(guard, sorted(checkpoints)) if guard in self._guards else {}
            wrong = [query for query, told in checkpoints.items() if told != {found.get(query)}]
            if wrong:
                self._wrong[guard] = min(self._wrong.get(guard, wrong[0]), *wrong)
            before = min(one.get(guard, max(checkpoints) + 1) for one in (self._wrong, self._known_wrong))
            right = [query for query in checkpoints if query < before]
            self._right[guard] = max([self._right.get(guard, 0), *right])
        self._checkpoints = {}
        self._held = 0

    def wrong_before(self) -> dict[str, int] | None:
        """Return the first wrong numbers if one came after right checkpoints of larger ones; ``None`` otherwise."""
        early = any(self._right[guard] >= wrong for guard, wrong in self._wrong.items())
        return self._wrong if early else None

    def behind(self) -> dict[str, tuple[int, int]]:
        """Return the guards whose history differs: the last known number, and the number up to which it is the same.

        Closed guards answer nothing twice, and are not among them.
        """
        return {
            guard: (self._last[guard], self._right[guard])
            for guard in self._wrong
            if guard not in self._guards or self._ledger.closed(guard) is None
        }

    def _forget(self) -> None:
        """Begin anew: earlier lines no longer count."""
        for held in (self._checkpoints, self._last, self._wrong, self._right):
            held.clear()
        self._held = 0

    def _found(self, guard: str, queries: list[int]) -> dict[int, str]:
        """Return the checkpoints of a history after sorted queries, without those that it lacks."""
        found = {}
        if queries[0] == 0:
            found[0] = first_digest(guard, self._ledger._extent(guard)[0])
        for first, last in _runs([query for query in queries if query]):
            links = self._ledger._links(guard, first, last + 1 - first)
            found.update((entry.query, digest) for entry, digest in links)
        return found


def compare_checkpoints(ledger: SQLLedger, witness: Witness, mark: str | None) -> CheckpointComparison:
    """Compare the lines of a witness with a ledger."""
    found = _compared(ledger, witness, CheckpointComparison(ledger, mark))
    wrong = found.wrong_before()
    return found if wrong is None else _compared(ledger, witness, CheckpointComparison(ledger, mark, wrong))


def _compared(ledger: SQLLedger, witness: Witness, found: CheckpointComparison) -> CheckpointComparison:
    """Take all lines of a witness."""
    for said in read_lines(witness.location, witness.lines(ledger.identity())):
        found.take(said)
    found.finish()
    return found


def checkpoint_at(ledger: SQLLedger, guard: str, query: int) -> str:
    """Return the checkpoint of a history after a query; for 0, the digest that it starts from."""
    if query == 0:
        return first_digest(guard, ledger._extent(guard)[0])
    return ledger._links(guard, query, 1)[0][1]


def _runs(queries: list[int]) -> Iterator[tuple[int, int]]:
    """Yield slices, first and last, that cover ascending numbers and few others.

    Examples
    --------
    >>> list(_runs([1, 2, 40, 900]))
    [(1, 40), (900, 900)]
    """
    first = last = 0
    for query in queries:
        if first and (query - last > _GAP or query - first >= _SLICE):
            yield first, last
            first = query
        first, last = first or query, query
    if first:
        yield first, last


# Name of the setting with the digest of a line that the witness is known to have.
_MARK: Final = "witness"

_ACCEPTED: Final = "accepted_copies"
# Characters of a reason, which every leaderboard shows.
_LONGEST_REASON: Final = 500
_WAY_OUT: Final = (
    "Restore the witness. If it is lost, start with --accept-rollback REASON, which every leaderboard shows from then "
    "on."
)


@dataclass(frozen=True, slots=True)
class AcceptedCopy:
    """An acceptance of a ledger that its witness does not confirm as the newest copy.

    Notes
    -----
    `time` is of RFC 3339, `reason` the administrator's, `seen` the program's error. `behind` gives, for guards with
    missing answers, the number of the last known answer, and the number of the last common one; `asked` each guard's
    number of answers at that time.
    """

    time: str
    reason: str
    seen: str
    behind: dict[str, tuple[int, int]]
    asked: dict[str, int]


def check_newest(ledger: SQLLedger, witness: Witness | None, *, accept: str | None = None) -> AcceptedCopy | None:
    """Refuse a ledger that is older than its witness's last checkpoints, before it answers.

    A ledger that never had a witness needs none.
    """
    if accept is not None and not (accept.strip() and accept.isprintable() and len(accept) <= _LONGEST_REASON):
        expected = f"a reason of 1 to {_LONGEST_REASON} printable characters"
        raise InputError("accept_rollback", repr(accept[:80]), expected)
    problem, behind = _examined(ledger, witness)
    if problem is None:
        if accept is not None:
            advice = "Otherwise the next old copy would be accepted without notice."
            raise InputError("accept_rollback", repr(accept), "left out for the newest copy of a ledger", advice)
        accepted = None
    else:
        if accept is None:
            raise problem
        accepted = _accept(ledger, accept, str(problem), behind)
    if witness is not None:
        _tell_all(ledger, witness, accepted)
    return accepted


def accepted_copies(ledger: SQLLedger) -> list[AcceptedCopy]:
    """Return the acceptances of older copies, the first one first."""
    return _parsed(ledger, ledger.read_setting(_ACCEPTED))


def copy_notes(ledger: SQLLedger, guard: str) -> tuple[str, ...]:
    """Return a leaderboard's notes on accepted copies: the event, and the guarantee since."""
    notes = []
    for copy in accepted_copies(ledger):
        when = (
            f"On {copy.time[:10]} this service continued from a copy that its witness did not confirm ({copy.reason})"
        )
        if guard not in copy.asked:  # it was made later
            if not copy.behind or any(other not in copy.asked for other in copy.behind):
                notes.append(
                    f"{when}, and holdouts may be missing in it. If one of those had the records of this one, its "
                    "answers are not guaranteed."
                )
            continue
        kept = _kept(copy, guard)
        if kept is None:
            continue
        what = "it may lack answers that were given"
        if guard in copy.behind:
            what = f"it lacks answers that were given, up to number {copy.behind[guard][0]} at least"
        notes.append(
            f"{when}: {what}. Unless two copies answered at the same time, answers up to number {kept} keep their "
            f"guarantee, and so do receipts of missing answers. Other answers after number {kept} are not guaranteed."
        )
    return tuple(notes)


def proved_until(ledger: SQLLedger, guard: str) -> int | None:
    """Return the number of the last answer with a guarantee; ``None`` where no copy was accepted."""
    limits = [limit for copy in accepted_copies(ledger) if (limit := _kept(copy, guard)) is not None]
    return min(limits, default=None)


def remember_line(ledger: SQLLedger, line: str) -> None:
    """Store a line of the witness in a ledger, so that a witness without it is recognised as cut."""
    if line:
        ledger.change_setting(_MARK, lambda _: mark_of(line))


def _kept(copy: AcceptedCopy, guard: str) -> int | None:
    """Return the number of a copy's last answer with a guarantee; ``None`` where the witness confirmed all."""
    if guard in copy.behind:
        return copy.behind[guard][1]
    return None if copy.behind else copy.asked.get(guard)


def _examined(
    ledger: SQLLedger, witness: Witness | None
) -> tuple[ThresholdoutError | None, dict[str, tuple[int, int]]]:
    """Return the error, if there is one, and the guards that are behind."""
    mark = ledger.read_setting(_MARK) or None
    if witness is None:
        if mark is None:
            return None, {}
        reason = f"A witness kept the checkpoints of this ledger, but no witness was named. Name it. {_WAY_OUT}"
        return WitnessUnusable("(none)", reason), {}
    found = compare_checkpoints(ledger, witness, mark)
    if found.damaged:
        return WitnessUnusable(witness.location, f"{found.damaged}: the witness was changed or damaged. {_WAY_OUT}"), {}
    if mark is not None and (found.behind() or not found.marked):
        whole = compare_checkpoints(ledger, witness, None)  # earlier lines too, to find the last common answer
    else:
        whole = found
    behind = whole.behind()
    if behind:
        return LedgerOutdated(ledger.location, behind), behind
    if not found.marked:
        lost = "was cut, or restored from an earlier copy" if found.known else "is missing, new, or another one"
        reason = f"A line that it had about ledger {ledger.location} is not in it: the witness {lost}. {_WAY_OUT}"
        return WitnessUnusable(witness.location, reason), {}
    return None, {}


def _accept(ledger: SQLLedger, reason: str, seen: str, behind: dict[str, tuple[int, int]]) -> AcceptedCopy:
    """Record an acceptance in a ledger."""
    asked = {guard: ledger.count(guard) for guard in ledger.guards()}
    accepted = AcceptedCopy(written_time(time.time()), reason, seen, behind, asked)

    def change(text: str | None) -> str:
        return json.dumps([asdict(copy) for copy in (*_parsed(ledger, text), accepted)])

    ledger.change_setting(_ACCEPTED, change)
    ledger.change_setting(_MARK, lambda _: "")  # it keeps no line of a witness that is given up
    return accepted


def _tell_all(ledger: SQLLedger, witness: Witness, accepted: AcceptedCopy | None) -> None:
    """Send all checkpoints to a witness, and store the last line."""
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
    raise LedgerDamaged(ledger.location, None, "Its record of accepted copies cannot be read.")
