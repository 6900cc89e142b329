"""The list of all mechanisms: build one from its parameters, and keep parameters in a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from numpy.typing import ArrayLike

from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms.base import Mechanism, MechanismState
from thresholdout.mechanisms.claims.kinds import CLAIMS, FOLD_CLAIMS
from thresholdout.mechanisms.gaussian import GAUSSIAN
from thresholdout.mechanisms.kind import Kind, Parameters
from thresholdout.mechanisms.ladder import LADDER
from thresholdout.mechanisms.splitting import SPLITTING
from thresholdout.mechanisms.thresholdout import SPARSE_VECTOR

__all__ = [
    "KINDS",
    "build_mechanism",
    "kind_named",
    "kind_of",
    "parameters_from_json",
    "parameters_to_json",
    "read_state",
]

KINDS: Final[list[Kind]] = [CLAIMS, FOLD_CLAIMS, SPARSE_VECTOR, GAUSSIAN, LADDER, SPLITTING]
"""All mechanisms. Whoever adds one writes its module, or folder, and its kind here."""


def kind_of(parameters: Parameters) -> Kind:
    """Return the mechanism that some parameters are of.

    Raises
    ------
    InputTypeError
        When they are of none.

    Examples
    --------
    >>> from thresholdout.mechanisms import LadderParameters
    >>> kind_of(LadderParameters()).name
    'ladder'
    """
    found = next((kind for kind in KINDS if type(parameters) is kind.parameters), None)
    if found is None:
        raise InputTypeError("parameters", f"a {type(parameters).__name__}", "parameters of thresholdout.mechanisms")
    return found


def kind_named(name: object) -> Kind | None:
    """Return the mechanism that a ledger calls so; ``None`` where there is none.

    Examples
    --------
    >>> kind_named("claims").name, kind_named("oracle")
    ('claims', None)
    """
    return next((kind for kind in KINDS if kind.name == name), None)


def build_mechanism(parameters: Parameters, n: int, labels: ArrayLike | None = None) -> Mechanism[Any, Any]:
    """Return the mechanism of some parameters.

    Parameters
    ----------
    parameters
        The class says which mechanism.
    n : int
        Number of records.
    labels : array-like of shape (n,), optional
        Groups of the records, for mechanisms that part them: splitting.

    Raises
    ------
    InputError
        When the parameters do not fit the records.

    Examples
    --------
    >>> from thresholdout.mechanisms import SplittingParameters
    >>> build_mechanism(SplittingParameters(10), 1000).name
    'splitting'
    """
    return kind_of(parameters).build(parameters, n, labels)


def parameters_to_json(parameters: Parameters) -> dict[str, Any]:
    """Return parameters for a ledger: everything, with the mechanism's name under "mechanism".

    Examples
    --------
    >>> from thresholdout.mechanisms import SplittingParameters
    >>> parameters_to_json(SplittingParameters(10))
    {'mechanism': 'splitting', 'queries': 10}
    """
    return {"mechanism": kind_of(parameters).name} | parameters.to_json()


def parameters_from_json(stored: Mapping[str, Any]) -> Parameters:
    """Return the parameters that `parameters_to_json` wrote: the same ones on every platform.

    Raises
    ------
    InputError
        When it is something else.

    Examples
    --------
    >>> parameters_from_json({"mechanism": "splitting", "queries": 10})
    SplittingParameters(queries=10)
    """
    if not isinstance(stored, Mapping):
        raise InputTypeError("parameters", f"a {type(stored).__name__}", "what `parameters_to_json` wrote")
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
        raise InputError("parameters", f"{sorted(map(str, values))}"[:200], f"those of {name}") from None


def read_state(parameters: Parameters, text: str) -> MechanismState:
    """Return the state of a mechanism of some parameters from its text; needs no records.

    Raises
    ------
    InputError
        When the text is something else; it is not shown.

    Examples
    --------
    >>> from thresholdout.mechanisms import SplittingParameters
    >>> read_state(SplittingParameters(10), "splitting/1 3").asked
    3
    """
    return kind_of(parameters).state.from_text(text)
