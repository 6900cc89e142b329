"""All mechanisms: build one from its parameters, and keep parameters in a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike

from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms.base import Mechanism, MechanismState
from thresholdout.mechanisms.claims import (
    Claims,
    ClaimsParameters,
    ClaimsState,
    FoldClaims,
    FoldClaimsParameters,
)
from thresholdout.mechanisms.gaussian import GaussianGuard, GaussianParameters, GaussianState, NoiseSchedule
from thresholdout.mechanisms.ladder import Ladder, LadderParameters, LadderState
from thresholdout.mechanisms.splitting import Splitting, SplittingParameters, SplittingState
from thresholdout.mechanisms.thresholdout import NoiseRatios, SparseVector, ThresholdoutParameters, ThresholdoutState

__all__ = [
    "Parameters",
    "answers_from_parts",
    "build_mechanism",
    "is_mechanism",
    "parameters_from_json",
    "parameters_to_json",
    "read_state",
]

Parameters = (
    ClaimsParameters
    | FoldClaimsParameters
    | ThresholdoutParameters
    | GaussianParameters
    | LadderParameters
    | SplittingParameters
)
"""Public parameters of any mechanism."""

_KINDS: dict[str, type[Parameters]] = {
    "claims": ClaimsParameters,
    "fold-claims": FoldClaimsParameters,
    "thresholdout": ThresholdoutParameters,
    GaussianGuard.name: GaussianParameters,
    Ladder.name: LadderParameters,
    Splitting.name: SplittingParameters,
}

_STATES: dict[type[Parameters], Any] = {
    ClaimsParameters: ClaimsState,
    FoldClaimsParameters: ClaimsState,
    ThresholdoutParameters: ThresholdoutState,
    GaussianParameters: GaussianState,
    LadderParameters: LadderState,
    SplittingParameters: SplittingState,
}


_LATER = frozenset({"expected", "final_check", "private", "shares"})
"""What guards were made without; left out where it is not given, so that they are opened as they were declared."""


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
    >>> build_mechanism(SplittingParameters(10), 1000).name
    'splitting'
    """
    match parameters:
        case ClaimsParameters():
            return Claims(parameters, n)
        case FoldClaimsParameters():
            return FoldClaims(parameters, n)
        case ThresholdoutParameters():
            return SparseVector(parameters)
        case GaussianParameters():
            return GaussianGuard(parameters)
        case LadderParameters():
            return Ladder(parameters, n)
        case SplittingParameters():
            return Splitting(parameters, n, labels)


def answers_from_parts(parameters: Parameters) -> bool:
    """Whether answers come from a part of the records, so that they are about that part.

    Examples
    --------
    >>> answers_from_parts(SplittingParameters(10)), answers_from_parts(LadderParameters())
    (True, False)
    """
    return isinstance(parameters, SplittingParameters)


def parameters_to_json(parameters: Parameters) -> dict[str, Any]:
    """Return parameters for a ledger: everything, with the mechanism's name under "mechanism".

    Examples
    --------
    >>> parameters_to_json(SplittingParameters(10))
    {'mechanism': 'splitting', 'queries': 10}
    """
    name = next(name for name, kind in _KINDS.items() if isinstance(parameters, kind))
    plain = {item.name: _plain(getattr(parameters, item.name)) for item in fields(parameters)}
    return {"mechanism": name} | {key: value for key, value in plain.items() if key not in _LATER or value}


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
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError("mechanism", repr(name)[:80], f"one of {', '.join(map(repr, _KINDS))}")
    try:
        if "schedule" in values:
            values["schedule"] = NoiseSchedule.from_json(values["schedule"])
        if "ratios" in values:
            values["ratios"] = NoiseRatios(*values["ratios"])
        return kind(**values)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError):
        raise InputError("parameters", f"{sorted(map(str, values))}"[:200], f"those of {name}") from None


def is_mechanism(name: object) -> bool:
    """Whether a name that a ledger keeps is that of a mechanism here.

    Examples
    --------
    >>> is_mechanism("claims"), is_mechanism("oracle")
    (True, False)
    """
    return name in _KINDS


def read_state(parameters: Parameters, text: str) -> MechanismState:
    """Return the state of a mechanism of some parameters from its text; needs no records.

    Raises
    ------
    InputError
        When the text is something else; it is not shown.

    Examples
    --------
    >>> read_state(SplittingParameters(10), "splitting/1 3").asked
    3
    """
    state: MechanismState = _STATES[type(parameters)].from_text(text)
    return state


def _plain(value: object) -> object:
    """Return a parameter as JSON knows it."""
    if isinstance(value, NoiseSchedule):
        return value.to_json()
    return list(value) if isinstance(value, (NoiseRatios, tuple)) else value
