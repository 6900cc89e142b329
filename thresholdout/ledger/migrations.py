"""From the tables of an earlier format to those of this program, by the same steps in every database.

A step leads from the format of its number to the next, and only ever adds to the list. All steps run inside the
transaction that opens the ledger, so that a ledger has the tables of one format or the other. No step changes an entry
or what a guard was made with: their digests are kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import schema

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor

__all__ = ["STEPS", "Step", "check_format", "migrate"]

Step: TypeAlias = "Callable[[Cursor, schema.Statements], object]"
"""Changes the tables, given a cursor and the statements of the database's dialect."""


def _add_times(cursor: Cursor, statements: schema.Statements) -> None:
    """Format 2: an entry has a time, and those of an asker are found without going through all others."""
    for statement in statements.with_times:
        cursor.execute(statement)


STEPS: Final[list[Step]] = [_add_times]
"""The step from format 1 to 2 comes first."""


def check_format(location: str, found: int) -> None:
    """Refuse the tables of a later format than this program knows.

    Parameters
    ----------
    location : str
        The ledger, for messages.
    found : int
        The format of its tables.

    Raises
    ------
    LedgerUnusable
        It is no format that this program can read.
    """
    if not 1 <= found <= schema.FORMAT:
        raise LedgerUnusable(
            location,
            f"its tables have format {found}, this program knows formats up to {schema.FORMAT}; "
            "use the program that made it, or a newer one",
        )


def migrate(cursor: Cursor, statements: schema.Statements, found: int) -> None:
    """Take the steps that lead from a format to this program's.

    Parameters
    ----------
    cursor : Cursor
        Of a transaction that has the tables for itself.
    statements : Statements
        Those of the database's dialect.
    found : int
        The format of the tables, after `check_format`.
    """
    for step in STEPS[found - 1 :]:
        step(cursor, statements)
