"""Commands that keep ledgers: verify, export, move, back up and encrypt them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphs.errors import amount
from graphs.progress_bar import progress_bar
from thresholdout.cli.options import FILE, GUARD, KEY_FILE, LEDGER, NEW_FILE, choose
from thresholdout.cli.running import Command, show

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = ["backup", "encrypt", "export", "import_", "move", "new_key", "rotate_key", "verify"]


@click.command(cls=Command)
@LEDGER
@click.option("--checkpoint", help="Checkpoint that was kept in another place, and must be in the history.")
@GUARD
def verify(ledger: str, checkpoint: str | None, guard: str | None) -> None:
    """Verify the histories in LEDGER, or an exported history.

    In an encrypted ledger, the secrets must open too. Keep the printed checkpoint in another place. A later
    verification with --checkpoint also detects a history that was rolled back or rewritten.
    """
    from thresholdout.ledger import open_ledger, verify_export

    kept = "" if checkpoint is None else "; the checkpoint that was kept is in it"
    if _is_export(ledger):
        found = verify_export(ledger, checkpoint)
        where, checked = ledger, [(found.guard, found.count, found.checkpoint)]
    else:
        with open_ledger(ledger, must_exist=True) as opened:
            chosen = [choose(opened, guard)] if guard is not None or checkpoint is not None else opened.guards()
            where = str(opened.location)
            checked = [(one, _verify(opened, one, checkpoint), opened.checkpoint(one)) for one in chosen]
    show(
        {"ledger": where, "guards": [_data(*one) for one in checked]},
        *(
            f"{where}: guard {one[:12]}, {amount(count, 'entry')}, unchanged{kept}\ncheckpoint {head}"
            for one, count, head in checked
        ),
    )


def _data(guard: str, entries: int, checkpoint: str) -> dict[str, Any]:
    return {"guard": guard, "entries": entries, "checkpoint": checkpoint}


def _verify(ledger: Ledger, guard: str, checkpoint: str | None) -> int:
    """Verify a guard's history and its state, with a progress bar when that takes more than a moment."""
    from thresholdout.guard.guard_state import check_clients, check_standing

    total = ledger.count(guard)
    with progress_bar(doing="verify", unit="entries", total=total) as bar:
        count = ledger.verify(guard, checkpoint, progress=lambda done: bar.update(done - bar.n))
    check_standing(ledger, guard)
    check_clients(ledger, guard)
    if ledger.encrypted:  # then secrets belong to the history, and a restored older one does not open
        for name in ledger.documents(guard):
            ledger.document(guard, name)
    return count


@click.command(cls=Command)
@LEDGER
@click.argument("file", type=NEW_FILE)
@GUARD
def export(ledger: str, file: Path, guard: str | None) -> None:
    """Export the history in LEDGER to FILE, which anybody can verify. It has no secrets."""
    from thresholdout.ledger import export_history, open_ledger

    with open_ledger(ledger, must_exist=True) as opened:
        written = export_history(opened, choose(opened, guard), file)
    show(
        {"file": file, **_data(written.guard, written.count, written.checkpoint)},
        f"{file}: guard {written.guard[:12]}, {amount(written.count, 'entry')}",
        f"checkpoint {written.checkpoint}",
    )


@click.command("import", cls=Command)
@LEDGER
@click.argument("file", type=FILE)
def import_(ledger: str, file: Path) -> None:
    """Import an exported history into LEDGER, to read it there. It answers no queries."""
    from thresholdout.ledger import import_history, open_ledger

    with open_ledger(ledger) as opened:
        identity = import_history(opened, file)
        where, count, checkpoint = str(opened.location), opened.count(identity), opened.checkpoint(identity)
    show(
        {"ledger": where, **_data(identity, count, checkpoint)},
        f"{where}: guard {identity[:12]}, imported for reading only\ncheckpoint {checkpoint}",
    )


@click.command(cls=Command)
@click.argument("source")
@click.argument("target")
@GUARD
@click.option("--key-file", type=FILE, help="File with the key of SOURCE, if TARGET has another key.")
def move(source: str, target: str, guard: str | None, key_file: Path | None) -> None:
    """Move a guard from ledger SOURCE to ledger TARGET, with its remaining budget.

    The guard is closed in SOURCE first, so no budget is spent twice. After an interruption, run the command again.
    """
    from thresholdout.ledger import move as move_guard
    from thresholdout.ledger import open_ledger

    with open_ledger(source, must_exist=True, key_file=key_file) as old, open_ledger(target) as new:
        identity = choose(old, guard)
        move_guard(old, new, identity)
        origin, where, count, checkpoint = (
            old.location,
            str(new.location),
            new.count(identity),
            new.checkpoint(identity),
        )
    show(
        {"ledger": where, "source": str(origin), **_data(identity, count, checkpoint)},
        f"{where}: guard {identity[:12]} now answers here; its history remains in {origin}",
        f"checkpoint {checkpoint}",
    )


@click.command(cls=Command)
@LEDGER
@click.argument("file", type=NEW_FILE)
def backup(ledger: str, file: Path) -> None:
    """Copy LEDGER, a SQLite file that may be in use, to a new FILE, and verify the copy.

    The copy is as secret as LEDGER, and encrypted with the same key. It is out of date after the next answer: restore
    it only where nothing newer is left. For PostgreSQL, use pg_dump.
    """
    from thresholdout.ledger.backup import back_up

    found = back_up(ledger, file)
    show(
        {"file": file, "ledger": ledger, "guards": [_data(guard, *one) for guard, one in found.items()]},
        f"{file}: a verified copy of {ledger}, which is as secret",
        *(
            f"guard {guard[:12]}, {amount(count, 'entry')}, unchanged\ncheckpoint {checkpoint}"
            for guard, (count, checkpoint) in found.items()
        ),
    )


@click.command("new-key", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
def new_key(file: Path) -> None:
    """Write a new encryption key to FILE, which only its owner can read."""
    from thresholdout.ledger import make_key_file

    make_key_file(file)
    show(
        {"file": file},
        f"{file}: a new key. While THRESHOLDOUT_KEY_FILE={file} is set, new ledgers are encrypted with it.",
        "Keep a copy in another place: without it, the secrets of these ledgers are lost.",
    )


@click.command(cls=Command, library_names={"key": "--key-file"})
@LEDGER
@KEY_FILE
def encrypt(ledger: str, key_file: Path | None) -> None:
    """Encrypt the secrets in LEDGER, and remove the plain text."""
    from thresholdout.ledger import encrypt as encrypt_ledger

    location = encrypt_ledger(ledger, key_file=key_file)
    show({"ledger": str(location)}, f"{location}: encrypted; it now opens only with its key")


@click.command("rotate-key", cls=Command)
@LEDGER
@click.option("--new-key-file", type=FILE, required=True, help="File with the new key.")
@KEY_FILE
def rotate_key(ledger: str, new_key_file: Path, key_file: Path | None) -> None:
    """Replace the key of an encrypted LEDGER."""
    from thresholdout.ledger import rotate_key as rotate_ledger_key

    location = rotate_ledger_key(ledger, new_key_file=new_key_file, key_file=key_file)
    show({"ledger": str(location)}, f"{location}: now encrypted with the key in {new_key_file}")


def _is_export(name: str) -> bool:
    """Return whether a file begins like an exported history."""
    if "://" in name or not Path(name).is_file():
        return False
    with open(name, "rb") as file:
        return file.read(1) == b"{"
