"""How a guard finds its place in a ledger, and what is checked before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from graphs.numerics.arguments import as_integer
from thresholdout.errors import InputError, InputTypeError, LedgerMismatch, LedgerUnusable
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry_checks import CONTENT, fresh_key
from thresholdout.mechanisms.catalogue import parameters_to_json
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource, SeededNoise, SystemNoise
from thresholdout.planning.declaration import Declaration, read_declaration

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.guard.holdout import Records

__all__ = [
    "ORDER",
    "RULES",
    "check_dependence",
    "check_order",
    "enter",
    "is_file",
    "is_there",
    "known_as",
    "noise_of",
    "stored_parameters",
]


ORDER: Final = "holdout/order"
"""Name of the document that says in which order a guard's records were given; secret, as their labels are."""

RULES: Final = 1
"""How a guard shares the probability of error among its answers. A guard keeps its rules for life: whoever changes them
adds a number, and goes on serving the old one."""


def is_there(ledger: object) -> bool:
    """Whether opening a ledger makes nothing: it is open, or named by a file that is there."""
    return isinstance(ledger, Ledger) or (isinstance(ledger, (str, os.PathLike)) and os.path.isfile(ledger))


def is_file(ledger: object) -> bool:
    """Whether a ledger was named by its file, which is for one holdout; a server is for many."""
    return not isinstance(ledger, Ledger) and not str(ledger).startswith(
        ("postgresql://", "postgres://", "postgresql+")
    )


def known_as(ledger: Ledger, records: Records, sole: bool) -> str | None:
    """Return what a ledger calls the guard for a holdout, or ``None`` when it is new to it.

    Parameters
    ----------
    ledger : Ledger
        Where to look.
    records : Records
        The holdout.
    sole : bool
        Whether the ledger is for one holdout only.

    Raises
    ------
    LedgerMismatch
        When it is, and belongs to another holdout.
    """
    known = ledger.known(records.identity)
    if known is not None:
        return known
    if sole and ledger.guards():
        raise LedgerMismatch(
            ledger.location,
            "it belongs to another holdout; a holdout is known by its content, so give exactly the same records, "
            "or another file",
        )
    return None


def enter(
    ledger: Ledger,
    records: Records,
    declared: Declaration,
    parameters: Parameters,
    state: str,
    documents: Mapping[str, str],
) -> str:
    """Store a new guard, and return what the ledger calls it; or the guard that it has for the same records.

    Parameters
    ----------
    ledger : Ledger
        Where to.
    records : Records
        Its holdout.
    declared : Declaration
        What it was declared with.
    parameters : Parameters
        Its mechanism's.
    state : str
        The mechanism's first state. Secret.
    documents : mapping of str to str
        Texts to keep with it. Secret.
    """
    return ledger.create(
        fresh_key(),
        {"rules": RULES, "declared": declared.to_json(), "chosen": parameters_to_json(parameters)},
        state,
        {**documents, CONTENT: records.identity, ORDER: records.order},
    )


def stored_parameters(ledger: Ledger, identity: str, declared: Declaration) -> Parameters:
    """Return the mechanism's parameters that a guard was created with.

    Raises
    ------
    LedgerMismatch
        When it was declared otherwise.
    LedgerUnusable
        When it keeps rules that this program does not know.
    LedgerDamaged
        When its parameters can't be read.
    """
    stored: dict[str, Any] = dict(ledger.parameters(identity))
    if stored.get("rules") != RULES:
        raise LedgerUnusable(
            ledger.location,
            f"its guard keeps the rules {stored.get('rules')!r}, this program knows {RULES}; "
            "use the program that made it, or a newer one",
        )
    before, found = read_declaration(ledger, identity)
    difference = before.difference(declared)
    if difference is not None:
        argument, old, new = difference
        seen = f"{argument} = {old!r}, not {new!r}"
        if argument == "dependence":
            seen = "another model of dependence (groups or dependence=)"
        raise LedgerMismatch(
            ledger.location,
            f"this holdout's guard was declared with {seen}; open it with what it was declared with",
        )
    return found


def check_order(
    ledger: Ledger, identity: str, records: Records, parameters: Parameters, dependence: DependenceModel
) -> None:
    """Refuse known records in another order, where the order matters.

    Raises
    ------
    LedgerMismatch
        When the mechanism or the model counts records in their order.
    """
    from graphs import Independent

    if ledger.document(identity, ORDER) == records.order:
        return
    if not isinstance(dependence, Independent):
        why = "its dependence model counts records in their order"
        raise LedgerMismatch(
            ledger.location,
            f"it knows these records in another order, and {why}; give them in the order of the first time",
        )


def check_dependence(dependence: object, n: int) -> DependenceModel:
    """Return the model of n records, independent ones by default; see `thresholdout.Thresholdout`."""
    from graphs import DependenceModel, Independent

    if dependence is None:
        return Independent(n)
    if not isinstance(dependence, DependenceModel):
        raise InputTypeError(
            "dependence",
            f"a {type(dependence).__name__}",
            "a model of graphs, such as Groups(labels), or TimeOrder(column, window=...)",
        )
    if dependence.n != n:
        raise InputError("dependence", f"a model of {dependence.n} records", f"{n}, as the holdout has")
    return dependence


def noise_of(random_state: object) -> NoiseSource:
    """Return a source of noise, the operating system's by default; see `thresholdout.Thresholdout`."""
    if random_state is None:
        return SystemNoise()
    seed = as_integer(random_state)
    if seed is not None and seed >= 0:
        return SeededNoise(seed)
    if all(hasattr(random_state, name) for name in ("for_release", "laplace")):
        return cast(NoiseSource, random_state)
    expected = "None for noise from the operating system's entropy, or a number for simulations"
    raise InputTypeError("random_state", repr(random_state), expected)
