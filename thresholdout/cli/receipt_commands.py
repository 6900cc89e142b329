"""Commands about signed receipts, witnesses and audit reports."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphs.numerics.rounding import shown_above
from thresholdout.cli.options import FILE, GUARD, KEY_FILE, LEDGER, NEW_FILE
from thresholdout.cli.running import Command, ExitCode, Failure, show
from thresholdout.cli.terminal import say, table

if TYPE_CHECKING:
    from thresholdout.service.receipts.audit_report import AuditReport

__all__ = ["audit_report", "receipt_keys", "verify_receipt", "witness"]

# Characters of a receipt that are read.
_LONGEST = 1 << 20


@click.command("verify", cls=Command)
@click.argument("receipt")
@click.option(
    "--public-key", type=FILE, required=True, help="File with the public keys, from /v1/receipt-key of the service."
)
@click.option(
    "--history", type=FILE, help="Exported history of the holdout, which must contain the checkpoint of the receipt."
)
@click.pass_context
def verify_receipt(ctx: click.Context, receipt: str, public_key: Path, history: Path | None) -> None:
    """Verify RECEIPT offline: a file, the text itself, or "-" for standard input.

    The exit code is 0 for a genuine receipt, and 1 for one that is invalid or that the history contradicts.
    """
    from thresholdout.service.receipts.errors import ReceiptContradicted, ReceiptInvalid
    from thresholdout.service.receipts.receipt import read_receipt, verify_in_history

    keys = _public_keys(public_key)
    try:
        found, key = read_receipt(_text(receipt), keys)
        if history is not None:
            verify_in_history(found, history)
    except (ReceiptInvalid, ReceiptContradicted) as error:
        verdict = "invalid" if isinstance(error, ReceiptInvalid) else "contradicted"
        show({"verdict": verdict, "reason": str(error)})
        say(f"Error: {error}", err=True)
        ctx.exit(ExitCode.NO)
    lines = [f"genuine, signed with key {key}\n{found}"]
    if history is not None:
        lines.append(f"{history} is complete, and contains this checkpoint")
    show({"verdict": "genuine", "key": key, "receipt": str(found), "history": history}, *lines)


@click.command("keys", cls=Command, library_names={"key": "--withdraw"})
@LEDGER
@KEY_FILE
@click.option("--change", is_flag=True, help="Sign with a new key. Receipts of earlier keys stay valid.")
@click.option("--withdraw", metavar="KEY", help="Withdraw a compromised key. The present one is replaced.")
@click.option("--output", type=NEW_FILE, help="File for the public keys.")
def receipt_keys(ledger: str, key_file: Path | None, change: bool, withdraw: str | None, output: Path | None) -> None:
    """Print the public keys that verify receipts from LEDGER, as JSON.

    Restart the processes that serve LEDGER after a change.
    """
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.signing_keys import Signer, change_key, published_keys, withdraw_key

    if change and withdraw is not None:
        raise click.UsageError("--change and --withdraw exclude each other: withdrawing the present key changes it.")
    with SQLLedger(ledger, must_exist=True, key_file=key_file) as opened:
        Signer(opened)
        if change:
            change_key(opened)
        if withdraw is not None:
            withdraw_key(opened, withdraw)
        keys = published_keys(opened)
    text = json.dumps(keys, indent=1)
    if output is None:
        show(keys, text)
    else:
        output.write_text(f"{text}\n")
        show(keys, f"{output}: the public keys")


@click.command(cls=Command, prints_json=False)
@click.argument("file", type=NEW_FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on. 0 takes a free port.",
)
def witness(file: Path, host: str, port: int) -> None:
    """Run an HTTP server that keeps checkpoints of services in the append-only FILE.

    It answers at /checkpoints until Ctrl-C. If other machines can reach it, set THRESHOLDOUT_WITNESS_KEY here and at
    the services.
    """
    try:
        from thresholdout.service.receipts.witness import FileWitness
        from thresholdout.service.receipts.witness_server import serve_witness

        serve_witness(FileWitness(file), host, port)
    except ModuleNotFoundError as error:
        raise Failure(f"A witness needs {error.name}: pip install 'thresholdout[service]'.") from None


@click.command("audit-report", cls=Command)
@LEDGER
@GUARD
@KEY_FILE
def audit_report(ledger: str, guard: str | None, key_file: Path | None) -> None:
    """Report every answer of a holdout in LEDGER, for auditors. It has no secrets."""
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.audit_report import audit_report as made

    with SQLLedger(ledger, must_exist=True, key_file=key_file) as opened:
        found = made(opened, guard)
    show(json.loads(found.to_json()), _page(found))


def _page(found: AuditReport) -> str:
    """Return an audit report as lines of text."""
    called = f"holdout {found.holdout} (guard {found.guard[:12]})" if found.holdout else f"guard {found.guard[:12]}"
    nats = "" if found.nats is None else f"; charged {shown_above(found.nats)} nats in all"
    private = ""
    if found.epsilon is not None:
        private = f"\nEpsilon of all answers: {shown_above(found.epsilon)} per record"
        if found.bayesian_epsilon is not None:
            private += f", {shown_above(found.bayesian_epsilon)} with dependants under the declared dependence"
    teams = ((one.team or "(organiser)", one.answers, one.first, one.last, one.nats) for one in found.teams)
    signals = (
        (one.query, one.time, one.team or "(organiser)", one.name, one.kind, one.value, one.low, one.high, one.nats)
        for one in found.signals
    )
    parts = [
        f"Audit report of {called}, {found.made}",
        f"Records: {found.records:,}; SHA-256 of their ids, sorted, one a line: {found.ids}\n"
        f"Estimand: {found.estimand}\nGuarantee: {found.promise}\nAnswers by {found.mechanism}: {found.shown}{nats}"
        f"{private}\nCheckpoint of the history: {found.checkpoint}",
        *(f"Note: {note}" for note in found.notes),
        table(("team", "answers", "first", "last", "nats"), teams),
        table(("number", "time", "team", "query", "kind", "value", "low", "high", "nats"), signals),
    ]
    return "\n\n".join(parts)


def _text(receipt: str) -> str:
    """Return the text of a receipt from a file, standard input, or the argument itself."""
    if receipt == "-":
        return sys.stdin.read(_LONGEST)
    if receipt.count(".") == 2 and receipt.startswith("eyJ"):  # every JSON header begins so
        return receipt
    with open(receipt, encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST)


def _public_keys(file: Path) -> dict[str, bytes]:
    from thresholdout.errors import InputError
    from thresholdout.service.receipts.signing_keys import public_keys

    try:
        published = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError(
            "public key", f"{file}, which is not JSON", "a set of JSON Web Keys, as from /v1/receipt-key"
        ) from None
    return public_keys(published)
