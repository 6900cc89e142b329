"""Taking a guard's history out of a ledger, and a guard from one ledger to another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from graphs.progress_bar import progress_bar
from thresholdout.data.client_states import join_state
from thresholdout.errors import InputError, LedgerClosed, LedgerDamaged, LedgerMismatch
from thresholdout.ledger.contract import Ledger
from thresholdout.ledger.digest_chain import Chain, first_digest
from thresholdout.ledger.entry import CONTENT, Entry, parameters_text, read_parameters
from thresholdout.ledger.history_file import ExportedHistory, HistoryFile, write_history
from thresholdout.ledger.memory import MemoryLedger

__all__ = ["ExportedHistory", "export_history", "import_history", "move", "verify_export"]

_SLICE: Final = 5000
"""Entries that are read at once."""

_IMPORTED: Final = "it is an imported history, which has no budget of its own; ask where the guard is"


def export_history(ledger: Ledger, guard: str, file: str | os.PathLike[str]) -> ExportedHistory:
    """Write a guard's history to a file of JSON lines; nothing in it is secret.

    Parameters
    ----------
    ledger : Ledger
        Where the guard is.
    guard : str
        What the ledger calls it; one of ``ledger.guards()``.
    file : str or path
        Where to. A file that is there is replaced once the new one is complete.

    Returns
    -------
    ExportedHistory
        What the first line says: guard, parameters, checkpoint and count.

    Raises
    ------
    LedgerMismatch
        There is no such guard.
    LedgerDamaged
        The history is not the one that was written; no file is made.
    LedgerUnusable
        The ledger can't be read, or the file can't be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> ledger = MemoryLedger()
    >>> ledger.create("guard", {"budget": 2}, "state 0")
    'guard'
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "history.jsonl")
    >>> export_history(ledger, "guard", file).count
    0
    >>> verify_export(file, checkpoint=ledger.checkpoint("guard")).parameters
    '{"budget": 2}'
    >>> folder.cleanup()
    """
    parameters, count, checkpoint, _ = ledger._extent(guard)
    header = ExportedHistory(guard, parameters, checkpoint, count)
    write_history(file, header, _slices(ledger, guard, count, "export"))
    return header


def verify_export(file: str | os.PathLike[str], checkpoint: str | None = None) -> ExportedHistory:
    """Check an exported history without any ledger.

    Parameters
    ----------
    file : str or path
        The file.
    checkpoint : str, optional
        A checkpoint that was kept elsewhere: the history must lead to it. Without it, this shows that the file is
        whole, but not that nobody wrote it anew.

    Returns
    -------
    ExportedHistory
        What the first line says, now known to be true.

    Raises
    ------
    LedgerDamaged
        A line was changed, removed, inserted or moved, or the checkpoint is not in the history.
    LedgerUnusable
        The file can't be read, or is no exported history.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> ledger = MemoryLedger()
    >>> guard = ledger.create("guard", {"budget": 2}, "state 0")
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "history.jsonl")
    >>> exported = export_history(ledger, guard, file)
    >>> verify_export(file, checkpoint=ledger.checkpoint(guard)) == exported
    True
    >>> folder.cleanup()
    """
    with HistoryFile(file) as history:
        met = checkpoint is None or history.digest == checkpoint
        count = history.header.count
        for _ in progress_bar(history.entries(), doing="verify", unit="entries", total=count):
            met = met or history.digest == checkpoint
        if not met:
            raise LedgerDamaged(
                history.location,
                None,
                f"its {history.header.count} entries do not lead to the checkpoint that was kept; "
                "the history was cut or replaced",
            )
        return history.header


def import_history(ledger: Ledger, file: str | os.PathLike[str]) -> str:
    """Put an exported history into a ledger, to be read and verified there.

    The guard has no state and no secrets there, so it is closed from the start: it answers nothing.

    Parameters
    ----------
    ledger : Ledger
        Where to.
    file : str or path
        The exported history; checked on its way in.

    Returns
    -------
    str
        What the ledger calls the guard.

    Raises
    ------
    LedgerDamaged
        The file was changed; nothing is stored.
    LedgerMismatch
        The ledger has this guard already.
    LedgerUnusable
        The file can't be read or is no exported history, or the ledger can't be written; nothing is stored.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> ledger = MemoryLedger()
    >>> guard = ledger.create("guard", {"budget": 2}, "state 0")
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "history.jsonl")
    >>> exported = export_history(ledger, guard, file)
    >>> archive = MemoryLedger()
    >>> import_history(archive, file)
    'guard'
    >>> archive.closed("guard") is None
    False
    >>> folder.cleanup()
    """
    with HistoryFile(file) as history:
        header = history.header
        parameters = read_parameters(header.parameters)
        if parameters_text(parameters) != header.parameters:
            raise LedgerDamaged(history.location, None, "its parameters are not written as a ledger writes them")
        entries = iter(progress_bar(history.entries(), doing="import", unit="entries", total=header.count))
        ledger.restore(header.guard, parameters, "", {}, entries, closed=_IMPORTED)
        return header.guard


def move(source: Ledger, target: Ledger, guard: str) -> None:
    """Bring a guard with its secrets to another ledger, where it goes on with the budget that is left.

    Parameters
    ----------
    source : Ledger
        Where the guard is. It is closed there first: its history stays, and it answers no more.
    target : Ledger
        Where to; a ledger in a database.
    guard : str
        What the source calls it; one of ``source.guards()``.

    Raises
    ------
    InputError
        The target is in memory, or it is the source, or it would keep encrypted secrets in plain text.
    LedgerDamaged
        The history is not the one that was written. The source goes on if that is seen before it is closed.
    LedgerMismatch
        The source has no such guard, or the target has it already, or one for the same records;
        nothing is changed.
    LedgerClosed
        The guard was closed before, or is on its way to another ledger.
    LedgerUnusable
        One of them can't be used. If the guard is closed by then, calling this again goes on.

    Notes
    -----
    Three steps, each of which is stored durably before the next begins: the history is verified; the guard is closed
    at the source, with the target's name; all of it is stored at the target in one transaction, and verified on the
    way. So at no time two ledgers answer for it. When this is interrupted between the steps, none does; calling it
    again, with the same source and target, finishes what is missing and changes nothing else. Only the target that is
    named at the source can take the guard, because nobody could know that the first one has not got it.

    The secrets stay at the source too; delete its file when it holds no other guard. What the guard is called moves
    with it; the digest by which its records are found again is made anew, see `thresholdout.ledger.encryption`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresholdout.ledger import open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> source = MemoryLedger()
    >>> guard = source.create("guard", {"budget": 2}, "state 0")
    >>> with open_ledger(Path(folder.name, "guard.db")) as target:
    ...     move(source, target, guard)
    ...     print(target.guards())
    ['guard']
    >>> folder.cleanup()
    """
    if isinstance(target, MemoryLedger):
        raise InputError("target", "a ledger in memory", "one in a database, since the guard lives nowhere else then")
    if source.encrypted and not target.encrypted:
        raise InputError(
            "target", "a ledger in plain text for secrets that are encrypted", "one that is opened with a key"
        )
    identity = target.identity()
    if source.identity() == identity:
        raise InputError("target", f"{target.location}, the source itself", "another ledger")
    mark = f"(ledger {identity})"
    why = source.closed(guard)
    if why is None:
        if guard in target.guards():
            raise _there_already(target, guard)
        content = source.document(guard, CONTENT)
        if content is not None and (known := target.known(content)) is not None:
            raise target._same_records(known)
        source.verify(guard)
        source.close_guard(guard, f"it was moved to {_place(target)}; if it is not there, move it again {mark}")
    elif not why.endswith(mark):
        raise LedgerClosed(source.location, why)
    if guard not in target.guards():
        try:
            _restore(source, target, guard)
        except LedgerMismatch:
            if guard not in target.guards():  # otherwise another process brought it there a moment earlier
                raise
    target.verify(guard, source.checkpoint(guard))


def _restore(source: Ledger, target: Ledger, guard: str) -> None:
    """Store at the target what the source has, after the source has become unchangeable."""
    parameters, count, checkpoint, _ = source._extent(guard)
    documents = {name: source.document(guard, name) or "" for name in source.documents(guard)}
    entries = _slices(source, guard, count, "move")
    target.restore(
        guard,
        source.parameters(guard),
        join_state(source.state(guard), source.clients(guard)),
        documents,
        _chained(entries, source.location, guard, parameters, checkpoint),
    )


def _chained(entries: Iterable[Entry], location: str, guard: str, parameters: str, checkpoint: str) -> Iterator[Entry]:
    """Give entries, and raise in the end when they do not lead to the checkpoint."""
    chain = Chain(guard, first_digest(guard, parameters), entries)
    for entry, _ in chain:
        yield entry
    if chain.checkpoint != checkpoint:
        raise LedgerDamaged(location, None, f"guard {guard[:12]!r}...: its entries do not lead to its checkpoint")


def _slices(ledger: Ledger, guard: str, count: int, what: str) -> Iterator[Entry]:
    """Give a guard's first entries, without holding all of them in memory."""
    starts = range(1, count + 1, _SLICE)
    slices = (ledger.entries(guard, start, min(_SLICE, count + 1 - start)) for start in starts)
    entries = (entry for part in slices for entry in part)
    return iter(progress_bar(entries, doing=what, unit="entries", total=count))


def _place(ledger: Ledger) -> str:
    """Return a ledger's location, wherever somebody is who reads it."""
    return ledger.location if "://" in ledger.location else os.path.abspath(ledger.location)


def _there_already(target: Ledger, guard: str) -> LedgerMismatch:
    closed = target.closed(guard)
    state = "and answers there" if closed is None else f"though closed ({closed})"
    return LedgerMismatch(
        target.location, f"holds guard {guard[:12]!r}... already, {state}; move it to a ledger that never had it"
    )
