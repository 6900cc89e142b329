"""The command line; the same words as the library."""

from __future__ import annotations

import click

from thresholdout.cli.agent_commands import evaluate_server, mcp
from thresholdout.cli.eval_commands import evaluation
from thresholdout.cli.guard_commands import ask, board, compare, create, history, report, status
from thresholdout.cli.label_commands import correct, propose
from thresholdout.cli.ledger_commands import backup, close, encrypt, export, import_, key, move, rotate_key, verify
from thresholdout.cli.options import Commands
from thresholdout.cli.plan_commands import demo, plan
from thresholdout.cli.privacy_commands import account, calibrate
from thresholdout.cli.receipt_commands import audit_report, receipt_key, verify_receipt, witness
from thresholdout.cli.serve_commands import holdouts, keys, serve

__all__ = ["main"]


@click.group(cls=Commands)
@click.version_option(package_name="thresholdout")
def main() -> None:
    """Ask a holdout many adaptive questions and know what every answer is worth."""


for _command in (
    plan,
    evaluation,
    create,
    ask,
    compare,
    propose,
    correct,
    board,
    status,
    history,
    report,
    verify,
    export,
    import_,
    move,
    close,
    backup,
    key,
    encrypt,
    rotate_key,
    verify_receipt,
    receipt_key,
    audit_report,
    witness,
    account,
    calibrate,
    serve,
    keys,
    holdouts,
    evaluate_server,
    mcp,
    demo,
):
    main.add_command(_command)
