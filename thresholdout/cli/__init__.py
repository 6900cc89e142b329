"""The command line: one group of commands for each area of the library."""

from __future__ import annotations

import click

from thresholdout.cli.admin_commands import (
    list_holdouts,
    list_tokens,
    new_holdout,
    new_token,
    revoke_token,
    set_phase,
)
from thresholdout.cli.agent_commands import evaluate_server, mcp
from thresholdout.cli.eval_commands import evaluation
from thresholdout.cli.guard_commands import close, compare, correct, create, propose, score
from thresholdout.cli.guard_views import history, report, status
from thresholdout.cli.ledger_commands import backup, encrypt, export, import_, move, new_key, rotate_key, verify
from thresholdout.cli.plan_commands import demo, plan
from thresholdout.cli.privacy_commands import account, audit, calibrate
from thresholdout.cli.receipt_commands import audit_report, receipt_keys, verify_receipt, witness
from thresholdout.cli.running import EXIT_CODES, Commands, MainCommands
from thresholdout.cli.serve_commands import serve

__all__ = ["main"]


def _group(name: str, text: str, *members: click.Command) -> Commands:
    return Commands(name, help=text, members=members, no_args_is_help=True)


_GUARD = """Query a holdout through a guard, which limits overfitting to it.

\b
thresholdout guard create guard.db --train train.csv --holdout holdout.csv --label y
thresholdout guard score guard.db predictions.csv --anticipated-score 0.87
thresholdout guard status guard.db

LEDGER is a SQLite file or the address of a PostgreSQL server.
"""

_ADMIN = """Administer a service, on the machine that has its database.

\b
thresholdout admin holdout new churn --train train.csv --holdout holdout.csv --label y
thresholdout admin token new --team ann

All commands also work while the service runs.
"""

_HOLDOUT = """Create and list holdouts.

\b
thresholdout admin holdout new churn --train train.csv --holdout holdout.csv --label y
"""

_TOKEN = """Create, list and revoke API tokens.

\b
thresholdout admin token new --team ann
"""

_LEDGER = """Maintain ledgers: verify, export, copy and encrypt them.

\b
thresholdout ledger verify guard.db
"""

_RECEIPT = """Verify signed receipts, and publish the keys that verify them.

\b
thresholdout ledger receipt verify receipt.txt --public-key keys.json
"""

_AGENT = """Give an agent or an optimizer of programs access to a holdout.

\b
thresholdout agent mcp --url http://127.0.0.1:8000
"""

_PRIVACY = """Compute and audit the privacy loss of learners.

\b
thresholdout privacy account --noise 6 --batch-size 120 --records 50000 --steps 104000
"""

_MAIN = """Evaluate many models on one holdout, with an interval around every score.

\b
thresholdout demo
thresholdout plan --records 2000 --queries 100
"""

main = click.version_option(package_name="thresholdout")(
    MainCommands(
        "thresholdout",
        help=_MAIN,
        no_args_is_help=True,
        epilog="\b\nExit codes\n" + "\n".join(f"  {code:d}  {meaning}" for code, meaning in EXIT_CODES.items()),
        members=(
            demo,
            plan,
            evaluation,
            _group("guard", _GUARD, create, score, compare, propose, correct, status, history, report, close),
            serve,
            _group(
                "admin",
                _ADMIN,
                _group("holdout", _HOLDOUT, new_holdout, list_holdouts),
                _group("token", _TOKEN, new_token, list_tokens, revoke_token),
                set_phase,
                audit_report,
            ),
            _group(
                "ledger",
                _LEDGER,
                verify,
                export,
                import_,
                move,
                backup,
                new_key,
                encrypt,
                rotate_key,
                _group("receipt", _RECEIPT, verify_receipt, receipt_keys),
                witness,
            ),
            _group("agent", _AGENT, mcp, evaluate_server),
            _group("privacy", _PRIVACY, account, calibrate, audit),
        ),
    )
)
