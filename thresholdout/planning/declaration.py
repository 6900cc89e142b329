"""Declarations of guards: checked, and read from a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thresholdout.certificates.problem import check_confidence
from thresholdout.errors import InputTypeError, LedgerDamaged, LedgerUnusable
from thresholdout.mechanisms.catalogue import Parameters, is_mechanism, parameters_from_json
from thresholdout.mechanisms.rounding_costs import check_count

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = ["check_budget", "check_mechanism", "read_declaration"]


def check_budget(budget: object) -> int | None:
    """Return an optional budget, a count; who wants "all" answers from the holdout takes a mechanism."""
    if isinstance(budget, str) and budget == "all":
        expected = "an integer of at least 1; mechanism='gaussian' answers all questions from the holdout"
        raise InputTypeError("budget", "'all'", expected)
    return None if budget is None else check_count("budget", budget)


def check_mechanism(ledger: Ledger, stored: Any) -> None:
    """Refuse a guard whose mechanism this program does not have.

    Parameters
    ----------
    ledger : Ledger
        Where the guard is.
    stored : mapping
        Its parameters, as the ledger keeps them.

    Raises
    ------
    LedgerUnusable
        When its mechanism has a name, and no mechanism here has this name.
    """
    chosen = stored.get("chosen") if isinstance(stored, Mapping) else None
    name = chosen.get("mechanism") if isinstance(chosen, Mapping) else None
    if isinstance(name, str) and not is_mechanism(name):
        raise LedgerUnusable(
            ledger.location,
            f"its guard answers by {name[:80]!r}, a mechanism that this program does not have; use the program that "
            "made it, or a new guard of records that nobody has asked about",
        )


def read_declaration(ledger: Ledger, identity: str) -> tuple[Mapping[str, Any], Parameters]:
    """Return what a guard was declared as, and its mechanism's parameters.

    Raises
    ------
    LedgerDamaged
        When they can't be read: somebody wrote them by hand, or imported them.
    LedgerUnusable
        When the guard has a mechanism that this program does not have.
    """
    stored: Any = ledger.parameters(identity)
    check_mechanism(ledger, stored)
    try:
        declared = stored["declared"]
        check_budget(declared["budget"])
        check_confidence(declared["confidence"])
        if declared["queries"] is not None:
            check_count("queries", declared["queries"])
        return declared, parameters_from_json(stored["chosen"])
    except (KeyError, TypeError, ValueError):
        pass
    raise LedgerDamaged(ledger.location, None, f"guard {identity[:12]!r}...: its parameters can't be read")
