"""Commands that keep ledgers: check them, take histories out, bring guards elsewhere, encrypt secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphs.progress_bar import progress_bar
from thresholdout.cli.options import FILE, GUARD, KEY_FILE, LEDGER, choose, entries_in_words
from thresholdout.cli.terminal import say

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = ["backup", "close", "encrypt", "export", "import_", "key", "move", "rotate_key", "verify"]


@click.command()
@LEDGER
@click.option("--checkpoint", help="A checkpoint that was kept elsewhere; the history must lead to it.")
@GUARD
def verify(ledger: str, checkpoint: str | None, guard: str | None) -> None:
    """Check that the history in LEDGER, or in an exported file, is the one that was written.

    In an encrypted ledger, the secrets must open too. Keep the checkpoint that this prints in another place; given back
    later, it also shows a history that was put back to an earlier time, or written anew.
    """
    from thresholdout.ledger import open_ledger, verify_export

    if _is_export(ledger):
        found = verify_export(ledger, checkpoint)
        say(f"{ledger}: guard {found.guard[:12]}, {_checked(found.count, checkpoint)}\ncheckpoint {found.checkpoint}")
        return
    with open_ledger(ledger, must_exist=True) as opened:
        chosen = [choose(opened, guard)] if guard is not None or checkpoint is not None else opened.guards()
        for identity in chosen:
            count = _verify(opened, identity, checkpoint)
            say(f"{opened.location}: guard {identity[:12]}, {_checked(count, checkpoint)}")
            say(f"checkpoint {opened.checkpoint(identity)}")


def _verify(ledger: Ledger, guard: str, checkpoint: str | None) -> int:
    """Verify a guard's history and its state, and show how far it has come when that takes more than a moment."""
    from thresholdout.guard.state_check import check_clients, check_standing

    total = ledger.count(guard)
    with progress_bar(doing="verify", unit="entries", total=total) as bar:
        count = ledger.verify(guard, checkpoint, progress=lambda done: bar.update(done - bar.n))
    check_standing(ledger, guard)
    check_clients(ledger, guard)
    if ledger.encrypted:  # then secrets belong to the history, and one that was put back does not open
        for name in ledger.documents(guard):
            ledger.document(guard, name)
    return count


@click.command()
@LEDGER
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@GUARD
def export(ledger: str, file: Path, guard: str | None) -> None:
    """Write the history in LEDGER to FILE, as JSON lines that anybody can verify; nothing in it is secret."""
    from thresholdout.ledger import export_history, open_ledger

    with open_ledger(ledger, must_exist=True) as opened:
        written = export_history(opened, choose(opened, guard), file)
    say(f"{file}: guard {written.guard[:12]}, {entries_in_words(written.count)}\ncheckpoint {written.checkpoint}")


@click.command("import")
@LEDGER
@click.argument("file", type=FILE)
def import_(ledger: str, file: Path) -> None:
    """Put an exported history into LEDGER, to be read and verified there; it answers no questions."""
    from thresholdout.ledger import import_history, open_ledger

    with open_ledger(ledger) as opened:
        identity = import_history(opened, file)
        say(f"{opened.location}: guard {identity[:12]}, imported to be read\ncheckpoint {opened.checkpoint(identity)}")


@click.command()
@click.argument("source")
@click.argument("target")
@GUARD
@click.option("--key-file", type=FILE, help="Key of the source, when the target has another one.")
def move(source: str, target: str, guard: str | None, key_file: Path | None) -> None:
    """Bring the guard in ledger SOURCE to ledger TARGET, where it goes on with what is left of it.

    It is closed in SOURCE first, so that no budget is spent twice. When this is interrupted, run it again.
    """
    from thresholdout.ledger import move as bring
    from thresholdout.ledger import open_ledger

    with open_ledger(source, must_exist=True, key_file=key_file) as old, open_ledger(target) as new:
        identity = choose(old, guard)
        bring(old, new, identity)
        say(f"{new.location}: guard {identity[:12]} answers here now; {old.location} keeps its history")
        say(f"checkpoint {new.checkpoint(identity)}")


@click.command()
@LEDGER
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(ledger: str, file: Path) -> None:
    """Copy LEDGER, a file of SQLite that may be in use, to a new FILE of one moment, and verify the copy.

    The copy is as secret as LEDGER, and encrypted with the same key. It is older than LEDGER with the next answer: put
    it back only where nothing newer is left. PostgreSQL has pg_dump for this.
    """
    from thresholdout.ledger.backup import back_up

    found = back_up(ledger, file)
    say(f"{file}: a copy of {ledger}, as secret as that")
    for guard, (count, checkpoint) in found.items():
        say(f"guard {guard[:12]}, {entries_in_words(count)}, unchanged\ncheckpoint {checkpoint}")


@click.command()
@LEDGER
@GUARD
@click.option("--reason", required=True, help="Why; whoever asks is told.")
def close(ledger: str, guard: str | None, reason: str) -> None:
    """Let a guard in LEDGER answer no more, for good; its history stays."""
    from thresholdout.ledger import open_ledger

    with open_ledger(ledger, must_exist=True) as opened:
        identity = choose(opened, guard)
        opened.close_guard(identity, reason)
        say(f"{opened.location}: guard {identity[:12]} is closed: {reason}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def key(file: Path) -> None:
    """Put a new key into FILE, which only its owner can read."""
    from thresholdout.ledger import make_key_file

    make_key_file(file)
    say(
        f"{file}: a new key; new ledgers are encrypted with it while THRESHOLDOUT_KEY_FILE={file} is set.\n"
        "Keep a copy in another place: without it, the secrets of these ledgers are lost."
    )


@click.command()
@LEDGER
@KEY_FILE
def encrypt(ledger: str, key_file: Path | None) -> None:
    """Encrypt the secrets in LEDGER with a key, and leave no plain text behind."""
    from thresholdout.ledger import encrypt as encrypt_ledger

    location = encrypt_ledger(ledger, key_file=key_file)
    say(f"{location}: encrypted; from now on it opens with its key only")


@click.command()
@LEDGER
@click.option("--new-key-file", type=FILE, required=True, help="The key from now on.")
@KEY_FILE
def rotate_key(ledger: str, new_key_file: Path, key_file: Path | None) -> None:
    """Encrypt the secrets in LEDGER with another key."""
    from thresholdout.ledger import rotate_key as rotate_ledger_key

    location = rotate_ledger_key(ledger, new_key_file=new_key_file, key_file=key_file)
    say(f"{location}: encrypted with the key in {new_key_file} from now on")


def _is_export(name: str) -> bool:
    """Whether a file begins like an exported history."""
    if "://" in name or not Path(name).is_file():
        return False
    with open(name, "rb") as file:
        return file.read(1) == b"{"


def _checked(count: int, checkpoint: str | None) -> str:
    return f"{entries_in_words(count)}, unchanged" + (
        "" if checkpoint is None else "; the checkpoint that was kept is in it"
    )
