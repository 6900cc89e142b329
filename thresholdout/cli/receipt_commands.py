"""Commands about what a service has signed: check a receipt, publish and change the keys."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphs.numerics.rounding import shown_above
from thresholdout.cli.options import FILE, GUARD, KEY_FILE, LEDGER
from thresholdout.cli.terminal import say, table

if TYPE_CHECKING:
    from thresholdout.service.receipts.audit_report import AuditReport

__all__ = ["audit_report", "receipt_key", "verify_receipt", "witness"]

_INVALID = 4
_CONTRADICTED = 5
_LONGEST = 1 << 20


@click.command("verify-receipt")
@click.argument("receipt")
@click.option("--public-key", type=FILE, required=True, help="What the service shows at /v1/receipt-key, as a file.")
@click.option(
    "--history", type=FILE, help="The holdout's exported history, which has to lead to the receipt's checkpoint."
)
@click.pass_context
def verify_receipt(ctx: click.Context, receipt: str, public_key: Path, history: Path | None) -> None:
    """Check RECEIPT, a file or the text itself ("-" for standard input), without the service and without a network.

    The exit code is 0 when it is genuine, 4 when it is no receipt or none of the keys has signed it, and 5 when it is
    genuine and the history says otherwise. Errors have 1, wrong use of the command has 2.
    """
    from thresholdout.service.receipts.errors import ReceiptContradicted, ReceiptInvalid
    from thresholdout.service.receipts.receipt import read_receipt, verify_in_history

    keys = _public_keys(public_key)
    try:
        found, key = read_receipt(_text(receipt), keys)
        if history is not None:
            verify_in_history(found, history)
    except (ReceiptInvalid, ReceiptContradicted) as error:
        say(f"Error: {error}", err=True)
        ctx.exit(_INVALID if isinstance(error, ReceiptInvalid) else _CONTRADICTED)
    say(f"genuine, signed with key {key}\n{found}")
    if history is not None:
        say(f"{history} is whole, and leads to this checkpoint")


@click.command("receipt-key")
@LEDGER
@KEY_FILE
@click.option("--change", is_flag=True, help="Sign with a new key; what earlier keys have signed stays valid.")
@click.option("--withdraw", metavar="KEY", help="Publish this key no more, since somebody else has it.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file for the public keys.")
def receipt_key(ledger: str, key_file: Path | None, change: bool, withdraw: str | None, output: Path | None) -> None:
    """Show the public keys of receipts from LEDGER; give them to whoever will check receipts.

    Processes that serve LEDGER sign with a new key once they were started again.
    """
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.signing_keys import Signer, change_key, published_keys, withdraw_key

    if change and withdraw is not None:
        raise click.UsageError("--change and --withdraw KEY exclude each other: withdrawing the present key changes it")
    with SQLLedger(ledger, must_exist=True, key_file=key_file) as opened:
        Signer(opened)
        if change:
            change_key(opened)
        if withdraw is not None:
            withdraw_key(opened, withdraw)
        text = json.dumps(published_keys(opened), indent=1)
    if output is None:
        say(text)
    else:
        output.write_text(f"{text}\n")
        say(f"{output}: the public keys")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0 is any that is free.")
def witness(file: Path, host: str, port: int) -> None:
    """Keep the checkpoints of services elsewhere in FILE, which only grows, at the address /checkpoints, until Ctrl-C.

    Where others can reach it, THRESHOLDOUT_WITNESS_KEY has to be set, here and at the services.
    """
    try:
        from thresholdout.service.receipts.witness import FileWitness
        from thresholdout.service.receipts.witness_server import serve_witness

        serve_witness(FileWitness(file), host, port)
    except ModuleNotFoundError as error:
        raise click.ClickException(f"a witness needs {error.name}: pip install 'thresholdout[service]'") from None


@click.command()
@LEDGER
@GUARD
@click.option("--json", "as_json", is_flag=True, help="As a JSON object, with every answer in full.")
@KEY_FILE
def audit_report(ledger: str, guard: str | None, as_json: bool, key_file: Path | None) -> None:
    """Say for a rules committee which records in LEDGER gave which signal to whom; nothing in it is secret."""
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.audit_report import audit_report as made

    with SQLLedger(ledger, must_exist=True, key_file=key_file) as opened:
        found = made(opened, guard)
    say(found.to_json() if as_json else _page(found))


def _page(found: AuditReport) -> str:
    """Return an audit report as lines to read."""
    called = f"holdout {found.holdout} (guard {found.guard[:12]})" if found.holdout else f"guard {found.guard[:12]}"
    nats = "" if found.nats is None else f"; charged {shown_above(found.nats)} nats in all"
    teams = ((one.team or "(organiser)", one.answers, one.first, one.last, one.nats) for one in found.teams)
    signals = (
        (one.query, one.time, one.team or "(organiser)", one.name, one.kind, one.value, one.low, one.high, one.nats)
        for one in found.signals
    )
    parts = [
        f"Audit report on {called}, {found.made}",
        f"Records: {found.records:,}; SHA-256 of their ids, sorted, one a line: {found.ids}\n"
        f"Truth: {found.truth}\nPromise: {found.promise}\nAnswers by {found.mechanism}: {found.shown}{nats}\n"
        f"Checkpoint of the history: {found.checkpoint}",
        *(f"Note: {note}" for note in found.notes),
        table(("team", "answers", "first", "last", "nats"), teams),
        table(("number", "time", "team", "question", "kind", "value", "low", "high", "nats"), signals),
    ]
    return "\n\n".join(parts)


def _text(receipt: str) -> str:
    """Return the text of a receipt that is named, or given."""
    if receipt == "-":
        return sys.stdin.read(_LONGEST)
    if receipt.count(".") == 2 and receipt.startswith("eyJ"):  # as every header of JSON begins
        return receipt
    with open(receipt, encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST)


def _public_keys(file: Path) -> dict[str, bytes]:
    from thresholdout.errors import InputError
    from thresholdout.service.receipts.signing_keys import public_keys

    try:
        published = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError("public key", f"{file}: no JSON", "what the service shows at /v1/receipt-key") from None
    return public_keys(published)
