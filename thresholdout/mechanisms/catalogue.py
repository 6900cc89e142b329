"""The list of all mechanisms: build one from its parameters, and keep parameters in a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms.base import Mechanism, MechanismState
from thresholdout.mechanisms.claims.kinds import CLAIMS, FOLD_CLAIMS
from thresholdout.mechanisms.kind import Kind, Parameters
from thresholdout.mechanisms.ladder import LADDER
from thresholdout.mechanisms.sparse_vector import SPARSE_VECTOR

__all__ = [
    "KINDS",
    "build_mechanism",
    "kind_named",
    "kind_of",
    "parameters_from_json",
    "parameters_to_json",
    "read_state",
]

KINDS: Final[list[Kind]] = [CLAIMS, FOLD_CLAIMS, SPARSE_VECTOR, LADDER]
"""All mechanisms. A new one needs its own module, or folder, and its kind in this list."""


def kind_of(parameters: Parameters) -> Kind:
    """Return the mechanism of some parameters."""
    found = next((kind for kind in KINDS if type(parameters) is kind.parameters), None)
    if found is None:
        expected = "those of a mechanism, such as ClaimsParameters()"
        raise InputTypeError("parameters", f"a {type(parameters).__name__}", expected)
    return found


def kind_named(name: object) -> Kind | None:
    """Return the mechanism with this name in ledgers; ``None`` where there is none."""
    return next((kind for kind in KINDS if kind.name == name), None)


def build_mechanism(parameters: Parameters, n: int) -> Mechanism[Any, Any]:
    """Build the mechanism that some parameters describe, for a holdout of n records.

    Parameters
    ----------
    parameters : Parameters
        Parameters of one of the mechanisms of this package, such as `LadderParameters`.
    n : int
        Number of records.

    Returns
    -------
    Mechanism
        The mechanism with these parameters.

    Raises
    ------
    InputTypeError
        If the parameters are of no mechanism of this package.
    InputError
        If they do not suit the number of records.

    Examples
    --------
    >>> from thresholdout.mechanisms import LadderParameters
    >>> build_mechanism(LadderParameters(), 1000).name
    'ladder'
    """
    return kind_of(parameters).build(parameters, n)


def parameters_to_json(parameters: Parameters) -> dict[str, Any]:
    """Convert parameters to a dictionary for a ledger, with the mechanism's name under "mechanism".

    Parameters
    ----------
    parameters : Parameters
        Parameters of one of the mechanisms of this package.

    Returns
    -------
    dict
        All parameters, in types of JSON. `parameters_from_json` reads it.

    Raises
    ------
    InputTypeError
        If the parameters are of no mechanism of this package.

    Examples
    --------
    >>> from thresholdout.mechanisms import LadderParameters
    >>> found = parameters_to_json(LadderParameters(queries=10))
    >>> found["mechanism"], found["queries"]
    ('ladder', 10)
    """
    return {"mechanism": kind_of(parameters).name} | parameters.to_json()


def parameters_from_json(stored: Mapping[str, Any]) -> Parameters:
    """Restore parameters from the dictionary that `parameters_to_json` wrote: the same ones on every platform.

    Parameters
    ----------
    stored : mapping
        Parameters, with the mechanism's name under "mechanism".

    Returns
    -------
    subclass of Parameters
        The parameters of the named mechanism.

    Raises
    ------
    InputError
        If the mechanism is unknown, or if a parameter cannot be used.

    Examples
    --------
    >>> parameters_from_json({"mechanism": "claims", "queries": 10}).queries
    10
    """
    if not isinstance(stored, Mapping):
        raise InputTypeError("parameters", f"a {type(stored).__name__}", "a mapping from parameters_to_json")
    values = dict(stored)
    name = values.pop("mechanism", None)
    kind = kind_named(name)
    if kind is None:
        raise InputError("mechanism", repr(name)[:80], f"one of {', '.join(repr(kind.name) for kind in KINDS)}")
    try:
        return kind.parameters.from_json(values)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError):
        seen = f"{sorted(map(str, values))}"[:200]
        raise InputError("parameters", seen, f"valid values for the mechanism {name!r}") from None


def read_state(parameters: Parameters, text: str) -> MechanismState:
    """Return the state of a mechanism of some parameters from its text; needs no records."""
    return kind_of(parameters).state.from_text(text)
