"""The command line; the same words as the library."""

from __future__ import annotations

import click

from thresholdout.cli.agent_commands import evaluate_server, mcp
from thresholdout.cli.guard_commands import ask, board, compare, create, history, report, status
from thresholdout.cli.ledger_commands import export, import_, key, move, rekey, seal, verify
from thresholdout.cli.options import Commands
from thresholdout.cli.plan_commands import demo, plan
from thresholdout.cli.privacy_commands import account, calibrate

__all__ = ["main"]


@click.group(cls=Commands)
@click.version_option(package_name="thresholdout")
def main() -> None:
    """Ask a holdout many adaptive questions and know what every answer is worth."""


for _command in (
    plan,
    create,
    ask,
    compare,
    board,
    status,
    history,
    report,
    verify,
    export,
    import_,
    move,
    key,
    seal,
    rekey,
    account,
    calibrate,
    evaluate_server,
    mcp,
    demo,
):
    main.add_command(_command)
