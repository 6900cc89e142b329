"""From a guard's declaration to the parameters of its mechanism."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from thresholdout.certificates.certify_parameters import Theorems
from thresholdout.certificates.prior_queries import PriorQueries, confidence_after
from thresholdout.certificates.problem import within_limits
from thresholdout.errors import InputError, InputTypeError, MechanismWarning, outside
from thresholdout.mechanisms import (
    ClaimsParameters,
    FoldClaimsParameters,
    LadderParameters,
    SparseVectorParameters,
)
from thresholdout.mechanisms.catalogue import kind_of
from thresholdout.mechanisms.claims.kinds import is_unlimited
from thresholdout.mechanisms.kind import Parameters
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.declaration import (
    Claims,
    Declaration,
    MechanismChoice,
    MechanismName,
    SparseVector,
    SparseVectorBudget,
)
from thresholdout.planning.privacy_budget import check_hidden, for_budget, record_budget

if TYPE_CHECKING:
    from graphs import DependenceModel
    from graphs.models.out_of_fold import OutOfFold

__all__ = ["check_choice", "check_final", "choose_parameters"]

_PLAIN_CONFIDENCE: Final = 0.95  # the default of parameters: it agrees with any declared confidence

_OF_EPSILON: Final = "algorithm-1"
_NAMES = (*get_args(MechanismName), _OF_EPSILON)
_OBJECTS: Final = (
    "Objects with parameters are Claims(...), SparseVector(...), SparseVector.for_budget(...), and those of a plan."
)

ALLOWANCE: Final = 24.0
"""Default of the nats that the answers of one client may release on a leaderboard: two or three guesses that are
deliberately far off, or any number of good ones."""


def check_choice(mechanism: object, epsilon: object = None) -> MechanismChoice | None:
    """Return a choice of mechanism: a name, an object with its parameters, or ``None`` for the default."""
    names = f"one of {', '.join(map(repr, _NAMES))}, or an object with parameters"
    if isinstance(mechanism, str) and mechanism not in _NAMES:
        raise InputError("mechanism", repr(mechanism), names, _OBJECTS)
    if mechanism == _OF_EPSILON:
        if epsilon is None:
            expected = "a positive number beside mechanism='algorithm-1', such as epsilon=0.5"
            raise InputError("epsilon", "nothing", expected)
        return SparseVectorBudget(cast(float, epsilon))
    if epsilon is not None:
        advice = "SparseVector.for_budget(epsilon=...) and Claims(epsilon=...) have their own."
        seen = f"{epsilon!r} beside mechanism={mechanism!r}"
        raise InputError("epsilon", seen, "None without mechanism='algorithm-1'", advice)
    if mechanism is None:
        return None
    if isinstance(mechanism, str):
        return cast(MechanismName, mechanism)
    if not isinstance(mechanism, (Claims, SparseVector, SparseVectorBudget, Parameters)):
        raise InputTypeError("mechanism", f"a {type(mechanism).__name__}", names, _OBJECTS)
    return mechanism


def check_final(final_check: object) -> bool:
    """Return whether a guard reserves error budget for a final check."""
    if not isinstance(final_check, bool):
        raise InputTypeError("final_check", repr(final_check), "True or False")
    return final_check


def choose_parameters(model: DependenceModel, declared: Declaration, n_train: int | None = None) -> Parameters:
    """Take the parameters given by hand, or choose them."""
    from graphs.models.out_of_fold import OutOfFold

    model, needed = within_limits(model, declared.confidence)
    declared = dataclasses.replace(declared, confidence=needed)
    information_released = 0.0 if declared.prior_queries is None else declared.prior_queries.nats(model.n)
    chosen, queries = declared.mechanism, declared.queries
    final, makes_claims = declared.final_check, chosen in (None, "claims") or isinstance(chosen, Claims)
    if final and not makes_claims:
        advice = "Parameters by hand have their own: ClaimsParameters(final_check=True)."
        raise InputError("final_check", True, "False for other mechanisms than 'claims'", advice)
    if isinstance(chosen, Parameters):
        return _suited(chosen, model, declared)
    if chosen == "ladder":
        return _suited(LadderParameters(queries=queries), model, declared)
    if isinstance(chosen, SparseVectorBudget):
        needed = confidence_after(declared.prior_queries, model.n, needed)
        return for_budget(model, chosen, queries=queries, confidence=needed)
    if isinstance(chosen, SparseVector):
        confidence_after(declared.prior_queries, model.n, needed)
        return chosen.parameters(queries)
    if chosen == "leaderboard":
        guesses = ClaimsParameters(
            queries=queries, noise=0.0, n_train=n_train, information_released=information_released, allowance=ALLOWANCE
        )
        return _suited(guesses, model, declared)
    claims = chosen if isinstance(chosen, Claims) else Claims()
    if claims.epsilon is not None and (final or declared.fixed_features):
        expected = "None beside final_check=True or sampling='fixed_features'"
        raise InputError("epsilon", f"{claims.epsilon:g}", expected)
    if isinstance(model, OutOfFold):
        return _about_folds(model, declared, claims)
    if is_unlimited(model):
        if claims.limits == "normal":
            seen = f"'normal' for {model.describe()}, of which no deviation of a mean can be bounded"
            raise InputError("limits", seen, "'exact' for such records", "Normal limits are for groups of records.")
        if final:
            seen = f"True for {model.describe()}, of which no deviation of a mean can be bounded"
            raise InputError("final_check", seen, "False", "All answers have the same width here.")
        if claims.epsilon is not None:
            seen = f"{claims.epsilon:g} for {model.describe()}, of which no deviation of a mean can be bounded"
            advice = "mechanism=SparseVector.for_budget(epsilon=...) answers for them."
            raise InputError("epsilon", seen, "None in Claims for such records", advice)
        return _by_posterior(model, declared, claims)
    plain = ClaimsParameters(
        queries=queries,
        budget=claims.holdout_answers,
        max_half_width=claims.max_half_width,
        noise=claims.noise,
        n_train=n_train,
        final_check=final,
        epsilon=None if claims.epsilon is None else record_budget(model, claims.epsilon),
        information_released=information_released,
        normal_limits=claims.limits == "normal",
    )
    found = plain.for_records(model, declared.confidence)
    if claims.epsilon is not None and not found.independent:
        check_hidden(found, model, claims.epsilon)
    return found


def _about_folds(model: OutOfFold, declared: Declaration, claims: Claims) -> FoldClaimsParameters:
    """Return the parameters of claims about out-of-fold averages."""
    if claims != Claims(max_half_width=claims.max_half_width, holdout_answers=claims.holdout_answers):
        expected = "Claims(max_half_width=..., holdout_answers=...) alone for out-of-fold averages"
        raise InputError("mechanism", repr(claims), expected)
    return FoldClaimsParameters(
        effective=model.claim_records(),
        inflation=model.variance_inflation(),
        confidence=declared.confidence,
        queries=declared.queries,
        budget=claims.holdout_answers,
        max_half_width=claims.max_half_width,
        information_released=0.0 if declared.prior_queries is None else declared.prior_queries.nats(model.n),
    )


def _by_posterior(model: DependenceModel, declared: Declaration, claims: Claims) -> SparseVectorParameters:
    """Plan Algorithm 1: where nothing bounds the deviation of a fixed query, privacy can still bound answers."""
    unbounded = f"no deviation of a mean can be bounded for {model.describe()}"
    if claims.max_half_width is not None:
        seen = f"{claims.max_half_width:g}, but {unbounded}"
        raise InputError("max_half_width", seen, "None", "All answers have the same width here.")
    if declared.queries is None or claims.holdout_answers is None:
        advice = (
            f"{_begun(unbounded)}, so Algorithm 1 answers by its privacy: it needs queries= and "
            "mechanism=Claims(holdout_answers=...). plan(model, queries=100, budget=1) computes its half-width."
        )
        if declared.queries is None:
            raise InputError("queries", "nothing", "a number of queries", advice)
        raise InputError("mechanism", "nothing", "Claims(holdout_answers=...)", advice)
    needed = confidence_after(declared.prior_queries, model.n, declared.confidence)
    warnings.warn(
        f"{_begun(unbounded)}, so the guard uses Algorithm 1, whose guarantee comes from its privacy. It answers "
        f"{declared.queries:,} queries, up to {claims.holdout_answers:,} of them from the holdout. thresholdout.plan "
        "computes its half-width. Pass mechanism=plan(...).parameters to choose it without this warning.",
        MechanismWarning,
        stacklevel=outside(),
    )
    return algorithm_1(model, queries=declared.queries, budget=claims.holdout_answers, confidence=needed)


def _begun(clause: str) -> str:
    return clause[0].upper() + clause[1:]


def _suited(parameters: Parameters, model: DependenceModel, declared: Declaration) -> Parameters:
    """Fill in a mechanism's numbers of the dependence, or refuse a mechanism that does not suit it."""
    confidence = declared.confidence
    _check_agreement(parameters, confidence)
    if parameters.pays_prior_queries:
        parameters = _paying(parameters, declared.prior_queries, model.n)
    else:
        confidence = confidence_after(declared.prior_queries, model.n, confidence)
    return cast(Parameters, kind_of(parameters).suited(parameters, Theorems(model, parameters, confidence)))


def _paying(parameters: Any, prior: PriorQueries | None, n: int) -> Any:
    """Return parameters with the information released before; refuse those that were planned for another amount."""
    information_released = 0.0 if prior is None else prior.nats(n)
    if parameters.information_released not in (0.0, information_released):
        seen = f"{prior!r}, beside parameters that were planned after {parameters.information_released:.4g} nats"
        raise InputError("prior_queries", seen, "the same as in the plan of the parameters")
    return dataclasses.replace(parameters, information_released=information_released)


def _check_agreement(parameters: Parameters, confidence: float) -> None:
    """Refuse a guard whose confidence differs from that of its mechanism's plan."""
    stated: float | None = getattr(parameters, "confidence", None)
    if stated not in (None, _PLAIN_CONFIDENCE, confidence):
        seen = f"{confidence!r} beside parameters for {stated!r}"
        advice = f"Or plan the parameters for {confidence!r}."
        raise InputError("confidence", seen, f"{stated!r}, as in the plan of the parameters", advice)
