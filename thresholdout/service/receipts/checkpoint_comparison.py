"""Compares the checkpoints that a witness was told with the histories in a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from thresholdout.ledger.digest_chain import first_digest
from thresholdout.service.receipts.witness_lines import read_lines

if TYPE_CHECKING:
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.witness import Witness
    from thresholdout.service.receipts.witness_lines import Said

__all__ = ["CheckpointComparison", "checkpoint_at", "compare_checkpoints"]

_AT_ONCE: Final = 10_000
"""Checkpoints that are held in memory."""

_GAP: Final = 50
_SLICE: Final = 5000


class CheckpointComparison:
    """What came out of a comparison.

    Parameters
    ----------
    ledger : SQLLedger
        Where the histories are.
    mark : str or None
        What the ledger remembers of a line: checkpoints before that one were compared before. None for all lines.
    wrong : dict of str to int, optional
        Of guards whose history is known to be another: the least number of a checkpoint that is not in it.

    Attributes
    ----------
    marked : bool
        Whether that line was met.
    known : bool
        Whether any line is about the ledger.
    damaged : str
        What is wrong with a line since the last acceptance; empty when nothing is.
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
        """Go on with the next line."""
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
        """Compare what is held."""
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
        """Return the first wrong numbers if one came after right checkpoints of larger ones; None otherwise."""
        early = any(self._right[guard] >= wrong for guard, wrong in self._wrong.items())
        return self._wrong if early else None

    def behind(self) -> dict[str, tuple[int, int]]:
        """Return the guards whose history is another: the last number told, and up to which it is the same.

        Those that are closed answer nothing twice, and are not among them.
        """
        return {
            guard: (self._last[guard], self._right[guard])
            for guard in self._wrong
            if guard not in self._guards or self._ledger.closed(guard) is None
        }

    def _forget(self) -> None:
        """Begin anew: what was said before counts no more."""
        for held in (self._checkpoints, self._last, self._wrong, self._right):
            held.clear()
        self._held = 0

    def _found(self, guard: str, queries: list[int]) -> dict[int, str]:
        """Return the checkpoints of a history after questions, in their order, without those that it has not."""
        found = {}
        if queries[0] == 0:
            found[0] = first_digest(guard, self._ledger._extent(guard)[0])
        for first, last in _runs([query for query in queries if query]):
            links = self._ledger._links(guard, first, last + 1 - first)
            found.update((entry.query, digest) for entry, digest in links)
        return found


def compare_checkpoints(ledger: SQLLedger, witness: Witness, mark: str | None) -> CheckpointComparison:
    """Compare what a witness was told with what a ledger has.

    Parameters
    ----------
    ledger : SQLLedger
        The service's.
    witness : Witness
        Where its checkpoints are kept.
    mark : str or None
        As for `CheckpointComparison`.

    Raises
    ------
    WitnessUnusable
        The witness can't be read.
    """
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
    """Return the checkpoint of a history after a question that it has; of 0, the digest that it starts from."""
    if query == 0:
        return first_digest(guard, ledger._extent(guard)[0])
    return ledger._links(guard, query, 1)[0][1]


def _runs(queries: list[int]) -> Iterator[tuple[int, int]]:
    """Give slices, first and last, that have all of some ascending numbers and few others.

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
