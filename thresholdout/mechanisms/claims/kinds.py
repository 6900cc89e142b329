"""Guards that make claims, as others see them: how they are made, certified and suited to records."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.competition import Competition
from thresholdout.mechanisms.claims.expected_session import guard_width
from thresholdout.mechanisms.claims.final_check import FinalCheck
from thresholdout.mechanisms.claims.fold_claims import FoldClaims, FoldClaimsParameters
from thresholdout.mechanisms.claims.mechanism import ClaimsMechanism
from thresholdout.mechanisms.claims.parameters import ClaimsParameters
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.mechanisms.kind import CertificateT, Certifier, Kind

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["CLAIMS", "FOLD_CLAIMS", "claims_of", "is_unlimited"]

_USUAL: Final = 100
"""Questions of which the half-width of claims is expected, when their number is not declared."""

_CLAIMED: Final = (
    "limits for fixed questions by the dependence; the analyst is a function of the answers and his own coins"
)

_FOLDED: Final = (
    "folds formed without looking at records, independent groups in one fold each; the analyst is a function of the "
    "answers and his own coins"
)


def claims_of(parameters: ClaimsParameters, n: int) -> ClaimsMechanism:
    """Return the mechanism of some parameters: a competition where clients have an allowance.

    Examples
    --------
    >>> claims_of(ClaimsParameters(noise=0.0, allowance=24.0), 1000).name
    'competition'
    """
    return ClaimsMechanism(parameters, n) if parameters.allowance is None else Competition(parameters, n)


def is_unlimited(model: DependenceModel) -> bool:
    """Whether nothing limits the deviation of a mean that is fixed in advance."""
    from graphs import Independent

    if isinstance(model, Independent):
        return False
    return model.effective_records() is None and model.variance_inflation() >= model.n > 1


def _claims_certified(parameters: ClaimsParameters, by: Certifier[CertificateT]) -> CertificateT:
    """Certify claims: every answer comes with its own interval, and all of them hold together."""
    why, n, final, epsilon = _claims_of_others(parameters, by.model), by.model.n, None, None
    likely: Callable[[float], float] = partial(guard_width, parameters, n, parameters.queries or _USUAL)
    if parameters.allowance is not None:
        likely = Competition(parameters, n).first_half_width
    if not why:
        final = FinalCheck(parameters, n) if parameters.final_check else None
        epsilon = None if parameters.private is None else ClaimsMechanism(parameters, n).epsilon(n)
    return by.stated(
        "claims",
        1.0,
        _CLAIMED,
        "PROOFS.md, 'The risk that is left'",
        confidence=min(by.confidence, parameters.confidence),
        likely=likely,
        why_not=why,
        final=final,
        epsilon=epsilon,
    )


def _claims_of_others(parameters: ClaimsParameters, model: DependenceModel) -> str:
    """Return why claims are made for another model; empty where they are not."""
    from graphs.models.out_of_fold import OutOfFold

    needed, effective = model.variance_inflation(), model.effective_records()
    if isinstance(model, OutOfFold):
        return "truths of out-of-fold averages are functions of the records, and every claim about them has to be paid"
    if parameters.effective is not None and (effective is None or effective < parameters.effective):
        has = "none" if effective is None else f"{effective:.3g}"
        return f"the mechanism was given {parameters.effective:.3g} effective records, and the model has {has}"
    if parameters.inflation < needed:
        return f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    return ""


def _claims_suited(parameters: ClaimsParameters, by: Certifier[CertificateT]) -> ClaimsParameters:
    """Say how the records depend on each other; refuse where nothing limits the deviation of a fixed mean."""
    from graphs.models.out_of_fold import OutOfFold

    if isinstance(by.model, OutOfFold) or is_unlimited(by.model):
        seen = f"ClaimsParameters for {by.model.describe()}, of which no deviation of a mean can be bounded"
        raise InputError(
            "mechanism", seen, "queries= and mechanism=Claims(holdout_answers=...), which plan Algorithm 1"
        )
    return parameters.for_records(by.model, by.confidence)


def _folds_certified(parameters: FoldClaimsParameters, by: Certifier[CertificateT]) -> CertificateT:
    """Certify claims about out-of-fold averages, by the numbers that the mechanism was given."""
    from graphs.models.out_of_fold import OutOfFold

    model, why = by.model, ""
    if not isinstance(model, OutOfFold):
        why = "it is for averages of out-of-fold values"
    elif model.claim_records() < parameters.effective:
        why = (
            f"the mechanism was given {parameters.effective:.3g} records, and the model has {model.claim_records():.3g}"
        )
    elif parameters.inflation < (needed := model.variance_inflation()):
        why = f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    return by.stated(
        "fold claims",
        1.0,
        _FOLDED,
        "PROOFS.md, 'K-fold cross-validation'",
        confidence=min(by.confidence, parameters.confidence),
        why_not=why,
    )


def _folds_suited(parameters: FoldClaimsParameters, by: Certifier[Any]) -> FoldClaimsParameters:
    """Refuse them: a guard of folds makes its own."""
    seen = f"FoldClaimsParameters for {by.model.describe()}"
    raise InputError("mechanism", seen, "mechanism='claims'; folds are those of KFoldGuard((X, y), cv=...)")


CLAIMS: Final = Kind(
    name="claims",
    parameters=ClaimsParameters,
    state=ClaimsState,
    build=lambda parameters, n: claims_of(parameters, n),
    certify=_claims_certified,
    suited=_claims_suited,
)
"""The default mechanism."""

FOLD_CLAIMS: Final = Kind(
    name="fold-claims",
    parameters=FoldClaimsParameters,
    state=ClaimsState,
    build=lambda parameters, n: FoldClaims(parameters, n),
    certify=_folds_certified,
    suited=_folds_suited,
)
"""The same for averages of a cross-validation."""
