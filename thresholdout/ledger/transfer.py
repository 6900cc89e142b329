"""Export and import of histories, and transfer of guards between ledgers."""

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
"""Entries read at once, which bounds the memory."""

_IMPORTED: Final = "it is an imported history, which has no budget of its own; ask where the guard is"


def export_history(ledger: Ledger, guard: str, file: str | os.PathLike[str]) -> ExportedHistory:
    """Write the history of a guard to a file of JSON lines that contains no secrets.

    The history has the guard's parameters and all its answers. Give the file to an auditor, who checks it with
    `verify_export` without access to the ledger, or store it in another ledger with `import_history`.

    Parameters
    ----------
    ledger : Ledger
        Ledger that stores the guard.
    guard : str
        Name of the guard in the ledger, one of ``ledger.guards()``.
    file : str or path
        The new file. An existing file is replaced once the new one is complete.

    Returns
    -------
    ExportedHistory
        Header of the file, with the attributes `guard`, `parameters`, `checkpoint` and `count`.

    Raises
    ------
    LedgerMismatch
        If the ledger has no such guard.
    LedgerDamaged
        If the history in the ledger was changed since it was written. No file is made then.
    LedgerUnusable
        If the ledger cannot be read, or the file cannot be written.

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
    """Verify a file written by `export_history`, without access to the ledger.

    The entries of a history are chained by digests, so a changed line is found. The digest of the last entry, the
    checkpoint, represents the whole history.

    Parameters
    ----------
    file : str or path
        File with the exported history.
    checkpoint : str, optional
        Checkpoint that was kept in another place and must occur in the history. If None, the file is only known to be
        consistent, and anyone could have rewritten all of it.

    Returns
    -------
    ExportedHistory
        The verified header, with the attributes `guard`, `parameters`, `checkpoint` and `count`.

    Raises
    ------
    LedgerDamaged
        If a line was changed, removed, inserted or moved, or the checkpoint is not in the history.
    LedgerUnusable
        If the file cannot be read, or is not an exported history.

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
                f"None of its {history.header.count} entries has the checkpoint that was kept: the history was cut or "
                "replaced.",
            )
        return history.header


def import_history(ledger: Ledger, file: str | os.PathLike[str]) -> str:
    """Import an exported history into a ledger, where it can be read and verified.

    An export contains neither the state nor the secrets of the guard. The imported guard is therefore closed from the
    start and answers no queries. To continue a guard in another ledger, use `move`.

    Parameters
    ----------
    ledger : Ledger
        Ledger that receives the history.
    file : str or path
        File written by `export_history`. It is verified while it is read.

    Returns
    -------
    str
        Name of the guard in the ledger.

    Raises
    ------
    LedgerDamaged
        If the file was changed. Nothing is stored then.
    LedgerMismatch
        If the ledger already has this guard.
    LedgerUnusable
        If the file cannot be read or is not an exported history, or the ledger cannot be written. Nothing is stored
        then.

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
            raise LedgerDamaged(
                history.location, None, "Its parameters are not in the form in which a ledger writes them."
            )
        entries = iter(progress_bar(history.entries(), doing="import", unit="entries", total=header.count))
        ledger.restore(header.guard, parameters, "", {}, entries, closed=_IMPORTED)
        return header.guard


def move(source: Ledger, target: Ledger, guard: str) -> None:
    """Move a guard with its secrets to another ledger, where it continues with its remaining budget.

    A copied file would let the same budget be spent twice. This function closes the guard in the source before the
    target stores it, so that at most one of the two ever answers.

    Parameters
    ----------
    source : Ledger
        Ledger of the guard. The guard is closed there first; its history remains readable.
    target : Ledger
        The new ledger, in a file or a database.
    guard : str
        Name of the guard in the source, one of ``source.guards()``.

    Raises
    ------
    InputError
        If the target is in memory, is the source, or would keep encrypted secrets in plain text.
    LedgerDamaged
        If the history is not the one that was written. The guard stays open if this is found before it is closed.
    LedgerMismatch
        If the source has no such guard, or the target has it or one for the same records. Nothing is changed then.
    LedgerClosed
        If the guard was closed before, or is on its way to another ledger.
    LedgerUnusable
        If one of the ledgers cannot be used. If the guard is closed by then, call this function again.

    Notes
    -----
    There are three steps, each of which is stored durably before the next: the history is verified; the guard is closed
    at the source, with the target's name; the target stores all of it in one transaction and verifies it. So two
    ledgers never answer for one guard. After an interruption between the steps none does; calling this function again,
    with the same source and target, completes the transfer. Only the target that is named at the source can take the
    guard, because nobody could know that the first one has not got it.

    The secrets stay at the source, too; delete its file if it holds no other guard. The guard keeps its name; the
    digest that finds it by its records is computed anew, see `thresholdout.ledger.encryption`.

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
        raise InputError(
            "target", "a ledger in memory", "a ledger in a database", "The guard exists only there afterwards."
        )
    if source.encrypted and not target.encrypted:
        raise InputError(
            "target", "a ledger in plain text for encrypted secrets", "a ledger that was opened with a key"
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
            if guard not in target.guards():  # otherwise another process has moved it meanwhile
                raise
    target.verify(guard, source.checkpoint(guard))


def _restore(source: Ledger, target: Ledger, guard: str) -> None:
    """Store the guard at the target after the source has closed it."""
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
    """Yield entries, and raise an error at the end if they do not lead to the checkpoint."""
    chain = Chain(guard, first_digest(guard, parameters), entries)
    for entry, _ in chain:
        yield entry
    if chain.checkpoint != checkpoint:
        raise LedgerDamaged(location, None, f"The entries of guard {guard[:12]!r}... do not lead to its checkpoint.")


def _slices(ledger: Ledger, guard: str, count: int, what: str) -> Iterator[Entry]:
    """Yield a guard's first entries without holding all of them in memory."""
    starts = range(1, count + 1, _SLICE)
    slices = (ledger.entries(guard, start, min(_SLICE, count + 1 - start)) for start in starts)
    entries = (entry for part in slices for entry in part)
    return iter(progress_bar(entries, doing=what, unit="entries", total=count))


def _place(ledger: Ledger) -> str:
    """Return a ledger's location, valid in every working folder."""
    return ledger.location if "://" in ledger.location else os.path.abspath(ledger.location)


def _there_already(target: Ledger, guard: str) -> LedgerMismatch:
    closed = target.closed(guard)
    state = "open for queries" if closed is None else f"closed ({closed})"
    return LedgerMismatch(
        target.location, f"It has guard {guard[:12]!r}... already, {state}. Move it to a ledger that never had it."
    )
