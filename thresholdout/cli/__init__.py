"""The command line; the same words as the library."""

from __future__ import annotations

import click

from thresholdout.cli.accounting import account, calibrate
from thresholdout.cli.arguments import Commands
from thresholdout.cli.asking import ask, compare, create, history, report, status
from thresholdout.cli.keeping import export, import_, key, move, rekey, seal, verify
from thresholdout.cli.planning import demo, plan

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
    demo,
):
    main.add_command(_command)
