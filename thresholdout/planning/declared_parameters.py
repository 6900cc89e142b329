"""From what a guard declares to the parameters of its mechanism."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from thresholdout.certificates.certify_parameters import Theorems
from thresholdout.certificates.prior_looks import PriorLooks, confidence_after
from thresholdout.certificates.problem import within_limits
from thresholdout.errors import InputError, InputTypeError, MechanismWarning, outside
from thresholdout.mechanisms import (
    ClaimsParameters,
    FoldClaimsParameters,
    LadderParameters,
    SplittingParameters,
    ThresholdoutParameters,
)
from thresholdout.mechanisms.catalogue import kind_of
from thresholdout.mechanisms.claims.kinds import is_unlimited
from thresholdout.mechanisms.kind import Parameters
from thresholdout.mechanisms.record_parts import equal_groups
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.all_from_holdout import gaussian_parameters
from thresholdout.planning.declaration import Declaration, MechanismName
from thresholdout.planning.request import QUIET

if TYPE_CHECKING:
    from graphs import DependenceModel
    from graphs.models.out_of_fold import OutOfFold

__all__ = ["INSTEAD", "check_choice", "check_final", "choose_parameters", "record_groups"]

_PLAIN_CONFIDENCE: Final = 0.95  # of parameters that say nothing about it

INSTEAD = "mechanism='thresholdout', which answers from all records"
"""What serves where a mechanism that answers from a part of the records does not."""

_NAMES = get_args(MechanismName)

ALLOWANCE: Final = 24.0
"""Nats that the answers of one client may tell in a competition, unless given: two or three guesses that are far
off and known for it, and any number of good ones."""


def check_choice(mechanism: object) -> MechanismName | Parameters | None:
    """Return a choice of mechanism: a name, parameters, or ``None`` for the default.

    Raises
    ------
    InputError, InputTypeError
        When there is no such mechanism.

    Examples
    --------
    >>> check_choice("gaussian"), check_choice(SplittingParameters(10))
    ('gaussian', SplittingParameters(queries=10))
    """
    if mechanism is None:
        return None
    names = ", ".join(map(repr, _NAMES))
    if isinstance(mechanism, str):
        if mechanism not in _NAMES:
            raise InputError("mechanism", repr(mechanism), f"{names}, or parameters of thresholdout.mechanisms")
        return cast(MechanismName, mechanism)
    if not isinstance(mechanism, Parameters):
        expected = f"{names}, or parameters of thresholdout.mechanisms"
        raise InputTypeError("mechanism", f"a {type(mechanism).__name__}", expected)
    return mechanism


def check_final(final_check: object) -> bool:
    """Return whether a guard keeps risk for a final check.

    Raises
    ------
    InputTypeError
        When it is neither true nor false.
    """
    if not isinstance(final_check, bool):
        raise InputTypeError("final_check", repr(final_check), "True or False")
    return final_check


def choose_parameters(model: DependenceModel, declared: Declaration, train_records: int | None = None) -> Parameters:
    """Take the parameters given by hand, or choose them.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    declared : Declaration
        What the guard declares.
    train_records : int, optional
        How many independent records the training part has: distinct groups, where they are given.

    Raises
    ------
    InputError
        When something is missing, does not go together, or does not suit the model.
    PlanError
        When no parameters serve the declared use.
    """
    from graphs.models.out_of_fold import OutOfFold

    model, needed = within_limits(model, declared.confidence)
    declared = dataclasses.replace(declared, confidence=needed)
    told = 0.0 if declared.looks is None else declared.looks.nats(model.n)
    chosen, queries = declared.mechanism, declared.queries
    hand = [name for name in ("threshold", "noise_scale", "grid") if getattr(declared, name) is not None]
    if hand and chosen not in (None, "thresholdout"):
        raise InputError(hand[0], getattr(declared, hand[0]), "no parameter of Algorithm 1 beside another mechanism")
    if declared.at_most is not None and (hand or chosen not in (None, "thresholdout", "guess-and-check")):
        expected = "nothing beside other mechanisms than 'thresholdout' and 'guess-and-check'"
        raise InputError("at_most", declared.at_most, expected)
    final = declared.final_check
    if final and (hand or chosen not in (None, "thresholdout", "guess-and-check")):
        expected = "False beside it, or mechanism='thresholdout'; ClaimsParameters(final_check=True) by hand"
        raise InputError("final_check", "True for another mechanism", expected)
    private = declared.private
    if private is not None and (hand or final or declared.given or chosen not in (None, "thresholdout")):
        seen = f"{private:g} beside final_check=, given=, or another mechanism"
        raise InputError("private", seen, "private= alone, with mechanism='thresholdout'")
    if chosen is not None and not isinstance(chosen, str):
        return _suited(chosen, model, declared)
    if chosen == "ladder":
        return _suited(LadderParameters(queries=queries), model, declared)
    if hand:
        confidence_after(declared.looks, model.n, needed)
        return _by_hand(declared)
    if chosen == "splitting":
        return _suited(SplittingParameters(_declared_queries(queries, chosen)), model, declared)
    if chosen == "gaussian":
        low = confidence_after(declared.looks, model.n, needed)
        return _suited(gaussian_parameters(model, _declared_queries(queries, chosen), low), model, declared)
    if chosen == "competition":
        if declared.budget is not None:
            seen = f"{declared.budget} beside mechanism='competition'"
            raise InputError(
                "budget", seen, "None; there each client has an allowance, ClaimsParameters(allowance=...)"
            )
        guesses = ClaimsParameters(
            queries=queries, noise=0.0, train_records=train_records, told=told, allowance=ALLOWANCE
        )
        return _suited(guesses, model, declared)
    if isinstance(model, OutOfFold):
        return _about_folds(model, declared)
    if is_unlimited(model):
        if final:
            seen = f"True for {model.describe()}, of which no deviation of a mean can be bounded"
            raise InputError("final_check", seen, "False; the width is the same for all answers")
        if private is not None:
            seen = f"{private:g} for {model.describe()}, of which no deviation of a mean can be bounded"
            raise InputError("private", seen, "None; Algorithm 1, which answers here, is private by its own noise")
        return _by_posterior(model, declared)
    plain = ClaimsParameters(
        queries=queries,
        budget=declared.budget,
        at_most=declared.at_most,
        noise=0.0 if chosen == "guess-and-check" else QUIET,
        train_records=train_records,
        final_check=final,
        private=private,
        told=told,
    )
    return plain.for_records(model, declared.confidence)


def _about_folds(model: OutOfFold, declared: Declaration) -> FoldClaimsParameters:
    """Return what claims about out-of-fold averages need."""
    return FoldClaimsParameters(
        effective=model.claim_records(),
        inflation=model.variance_inflation(),
        confidence=declared.confidence,
        queries=declared.queries,
        budget=declared.budget,
        told=0.0 if declared.looks is None else declared.looks.nats(model.n),
    )


def _declared_queries(queries: int | None, mechanism: str) -> int:
    if queries is None:
        raise InputError("queries", "None", f"queries=, the number of questions, beside mechanism={mechanism!r}")
    return int(queries)


def _by_posterior(model: DependenceModel, declared: Declaration) -> ThresholdoutParameters:
    """Plan Algorithm 1: where nothing limits the deviation of a fixed question, privacy can still limit answers."""
    if declared.mechanism == "guess-and-check":
        seen = f"'guess-and-check' for {model.describe()}, of which no deviation of a mean can be bounded"
        raise InputError("mechanism", seen, "mechanism='thresholdout' with queries= and budget=, which is Algorithm 1")
    if declared.at_most is not None:
        raise InputError("at_most", declared.at_most, f"nothing: the width is the same for all on {model.describe()}")
    if declared.queries is None or declared.budget is None:
        raise InputError(
            "queries" if declared.queries is None else "budget",
            "None",
            f"a number: no deviation of a mean can be bounded for {model.describe()}, so Algorithm 1 answers, by its "
            "privacy, with queries= and budget=; plan(model, queries=100, budget=1) says how wide",
        )
    needed = confidence_after(declared.looks, model.n, declared.confidence)
    warnings.warn(
        f"no deviation of a mean can be bounded for {model.describe()}, so the guard makes no claims: Algorithm 1 "
        f"answers, by its privacy, {declared.queries:,} questions and {declared.budget:,} of them from the holdout. "
        "thresholdout.plan says how wide; mechanism=plan(...).parameters chooses it without this warning",
        MechanismWarning,
        stacklevel=outside(),
    )
    return algorithm_1(model, queries=declared.queries, budget=declared.budget, confidence=needed)


def record_groups(model: DependenceModel) -> NDArray[np.int64] | None:
    """Return each record's group, for mechanisms that part the records; ``None`` when no groups are declared."""
    from graphs import Groups

    return model.groups if isinstance(model, Groups) else None


def _by_hand(declared: Declaration) -> ThresholdoutParameters:
    threshold, noise_scale = declared.threshold, declared.noise_scale
    if threshold is None and noise_scale is None:
        raise InputError("grid", declared.grid, "threshold and noise_scale beside it, or none of the three")
    if threshold is None or noise_scale is None:
        missing = "threshold" if threshold is None else "noise_scale"
        raise InputError(missing, "nothing", "both threshold and noise_scale, or neither (they are planned then)")
    return ThresholdoutParameters(
        threshold=threshold,
        noise_scale=noise_scale,
        budget=declared.budget,
        queries=declared.queries,
        grid=declared.grid,
    )


def _suited(parameters: Parameters, model: DependenceModel, declared: Declaration) -> Parameters:
    """Fill in what a mechanism has to know about the dependence, or refuse one that does not suit it."""
    confidence = declared.confidence
    _check_agreement(parameters, confidence)
    if parameters.pays_looks:
        parameters = _paying(parameters, declared.looks, model.n)
    else:
        confidence = confidence_after(declared.looks, model.n, confidence)
    if parameters.from_parts:
        _check_parts(parameters, model, declared.identically_distributed)
    return cast(Parameters, kind_of(parameters).suited(parameters, Theorems(model, parameters, confidence)))


def _paying(parameters: Any, looks: PriorLooks | None, n: int) -> Any:
    """Return parameters with what was told before; refuse those that were planned for something else."""
    told = 0.0 if looks is None else looks.nats(n)
    if parameters.told not in (0.0, told):
        seen = f"{looks!r}, beside parameters that were planned after {parameters.told:.4g} nats"
        raise InputError("looks", seen, "the looks= of the plan that made them")
    return dataclasses.replace(parameters, told=told)


def _check_agreement(parameters: Parameters, confidence: float) -> None:
    """Refuse a guard that holds its intervals with another confidence than its mechanism was planned for."""
    stated: float | None = getattr(parameters, "confidence", None)
    if stated not in (None, _PLAIN_CONFIDENCE, confidence):
        seen = f"{confidence!r} beside parameters for {stated!r}"
        raise InputError(
            "confidence", seen, f"confidence={stated!r}, or parameters that are planned for {confidence!r}"
        )


def _check_parts(parameters: Parameters, model: DependenceModel, identically_distributed: bool) -> None:
    """Refuse answers from a part of the records where they could not be about all of them."""
    from graphs import Groups, Independent

    name = type(parameters).__name__
    if not identically_distributed:
        raise InputError(
            "mechanism",
            f"{name}, which answers from a part of the records, without identically_distributed=True",
            f"{INSTEAD}; or identically_distributed=True beside it, if all records have one law and each question is "
            "the same function of every record, whatever its number, id or place",
        )
    if not isinstance(model, (Groups, Independent)):
        expected = f"independent records or groups of one size, since it parts the records; or {INSTEAD}"
        raise InputError("mechanism", f"{name} for a {type(model).__name__}", expected)
    if isinstance(model, Groups):
        equal_groups(model.groups, model.n)
