"""How a guard finds its place in a ledger, and what is checked before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from thresholdout.errors import InputError, InputTypeError, LedgerMismatch
from thresholdout.ledger import Ledger
from thresholdout.mechanisms import GuessAndCheckParameters, SplittingParameters
from thresholdout.mechanisms.catalogue import Parameters, parameters_from_json
from thresholdout.mechanisms.precision import check_count
from thresholdout.noise import NoiseSource, SystemNoise

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.records import Records

__all__ = [
    "check_budget",
    "check_dependence",
    "check_noise",
    "check_order",
    "is_file",
    "known_as",
    "optional_number",
    "stored_parameters",
]


def check_budget(budget: object) -> int | None:
    """Return an optional budget, a count; "all" is a word of `plan`, where a guard takes a mechanism."""
    if isinstance(budget, str) and budget == "all":
        expected = "an integer of at least 1; mechanism='gaussian' answers all questions from the holdout"
        raise InputTypeError("budget", "'all', which is for plan", expected)
    return None if budget is None else check_count("budget", budget)


def is_file(ledger: object) -> bool:
    """Whether a ledger was named by its file, which is for one holdout; a server is for many."""
    return not isinstance(ledger, Ledger) and not str(ledger).startswith(
        ("postgresql://", "postgres://", "postgresql+")
    )


def known_as(ledger: Ledger, records: Records, sole: bool) -> str | None:
    """Return what a ledger calls a holdout, or ``None`` when it is new to it.

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
    known = ledger.guards()
    if records.identity in known:
        return records.identity
    if known and records.first_fingerprint() in known:
        return records.first_fingerprint()
    if any("order" not in ledger.parameters(other) for other in known):
        raise LedgerMismatch(
            ledger.location,
            "a guard in it was made by the first version, which knows a holdout in one order only; if this is its "
            "holdout, give the records in that order, and otherwise another ledger",
        )
    if known and sole:
        raise LedgerMismatch(
            ledger.location,
            "it belongs to another holdout; a holdout is known by its content, so give exactly the same records, "
            "or another file",
        )
    return None


def stored_parameters(ledger: Ledger, identity: str, declared: Mapping[str, Any]) -> Parameters:
    """Return the mechanism's parameters that a guard was created with.

    Raises
    ------
    LedgerMismatch
        When it was declared otherwise.
    """
    stored: dict[str, Any] = dict(ledger.parameters(identity))
    for argument, value in declared.items():
        if stored["declared"].get(argument) != value:
            seen = "another model" if argument == "dependence" else repr(stored["declared"].get(argument))
            raise LedgerMismatch(
                ledger.location,
                f"this holdout's guard was declared with {argument} = {seen}, not {value!r}; "
                "open it with what it was declared with",
            )
    return parameters_from_json(stored["chosen"])


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

    if ledger.parameters(identity).get("order", records.order) == records.order:
        return
    in_parts = isinstance(parameters, SplittingParameters | GuessAndCheckParameters)
    if in_parts or not isinstance(dependence, Independent):
        why = "its parts are runs of records" if in_parts else "its dependence model counts records in their order"
        raise LedgerMismatch(
            ledger.location,
            f"it knows these records in another order, and {why}; give them in the order of the first time",
        )


def check_dependence(dependence: DependenceModel | None, n: int) -> DependenceModel:
    """Return the model of n records, independent ones by default; see `thresholdout.Thresholdout`."""
    from graphs import DependenceModel, Independent

    if dependence is None:
        return Independent(n)
    if not isinstance(dependence, DependenceModel):
        raise InputTypeError(
            "dependence", f"a {type(dependence).__name__}", "a model of graphs, such as Groups(labels)"
        )
    if dependence.n != n:
        raise InputError("dependence", f"a model of {dependence.n} records", f"{n}, as the holdout has")
    return dependence


def check_noise(noise: object) -> NoiseSource:
    """Return a source of noise, the operating system's by default; see `thresholdout.Thresholdout`."""
    if noise is None:
        return SystemNoise()
    if not all(hasattr(noise, name) for name in ("for_release", "laplace", "rounded_gaussian")):
        raise InputTypeError("noise", f"a {type(noise).__name__}", "SystemNoise(), or SeededNoise(seed) in simulations")
    return cast(NoiseSource, noise)


def optional_number(argument: str, value: object) -> float | None:
    """Return an optional number as a float; its range is checked with the other parameters."""
    if value is None or (isinstance(value, (int, float, np.number)) and not isinstance(value, bool)):
        return None if value is None else float(value)
    raise InputTypeError(argument, repr(value), "a number")
