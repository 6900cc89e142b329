"""Plans in which every question is answered from the holdout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thresholdout.certificates.any_mechanism import certify_parameters
from thresholdout.certificates.setting import check_confidence, check_model
from thresholdout.certificates.splitting import splitting_width
from thresholdout.errors import InputError, PlanError
from thresholdout.mechanisms import GaussianParameters, SplittingParameters
from thresholdout.mechanisms.precision import check_count
from thresholdout.planning.gaussian import gaussian_parameters, gaussian_tolerance, most_gaussian_answers
from thresholdout.planning.result import Plan
from thresholdout.planning.search import fewest_for_gaussian, smallest_at_which
from thresholdout.planning.use import Alternative, MechanismName, check_declaration, check_fraction, independent
from thresholdout.planning.words import parts_would_do, recommend_all

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["answering_all", "gaussian", "plan_all", "splitting", "unless_declared"]

_MOST_RECORDS = 10**12


@dataclass(frozen=True, slots=True)
class _Target:
    """The checked arguments of `plan_all`; exactly one of model, queries and tolerance may be ``None``."""

    model: DependenceModel | None
    queries: int | None
    confidence: float
    tolerance: float | None
    identically_distributed: bool

    @property
    def beta(self) -> float:
        """1 - confidence."""
        return 1.0 - self.confidence


def plan_all(
    model: DependenceModel | None,
    n: int | None,
    queries: int | None,
    confidence: float,
    tolerance: float | None,
    identically_distributed: bool = False,
) -> Plan:
    """Plan for answering every question from the holdout; arguments as for `plan`."""
    target = _checked(model, n, queries, confidence, tolerance, identically_distributed)
    records, asked = _solved(target)
    noisy = gaussian(records, asked, target.beta)
    split = splitting(records, asked, target.beta, declared=identically_distributed)
    offered = [option for option in (noisy, split) if option.offered]
    best = min(offered, key=lambda option: option.tolerance, default=noisy)
    if best.tolerance >= min(1.0, target.tolerance or 1.0) * (1.0 + 1e-6):
        raise PlanError(
            f"{asked} answers from {records.describe()} are within {best.tolerance:.3g} at best; ask fewer questions, "
            f"declare how few will disagree with the training part (budget=), or take more records"
            f"{unless_declared(split, target.tolerance)}"
        )
    parameters = answering_all(best.mechanism, records, asked, target.confidence)
    certificate = certify_parameters(records, parameters, target.confidence)
    return Plan(
        mechanism=best.mechanism,
        tolerance=certificate.tolerance,
        parameters=parameters,
        thresholdout=None,
        queries=asked,
        budget=asked,
        records=records.n,
        confidence=target.confidence,
        quiet_margin=0.0,
        certificate=certificate,
        compared=(noisy, split, splitting(records, asked, target.beta, binary=True)),
        recommendation=recommend_all(best, noisy, split, certificate, asked),
    )


def gaussian(model: DependenceModel, queries: int, beta: float) -> Alternative:
    """Return the Gaussian guard for all questions as an alternative; its tolerance may be infinite."""
    tolerance, last = gaussian_tolerance(model, queries, beta)
    if tolerance == math.inf:
        note = "for independent records, independent groups, and chains that forget their state"
        return Alternative("gaussian", "gaussian", math.inf, offered=False, note=note)
    note = "every question answered from the holdout"
    return Alternative("gaussian", "gaussian", tolerance, noise_scale=last, note=note)


def splitting(
    model: DependenceModel, queries: int, beta: float, *, declared: bool = False, binary: bool = False
) -> Alternative:
    """Return the tolerance with a fresh part of the holdout for each question; offered if one law is declared."""
    width = splitting_width(model, queries, beta, binary=binary)
    if binary:
        note = "for values 0 or 1 of independent records only"
        return Alternative("splitting", "splitting, values 0 or 1", width, offered=False, note=note)
    note = "a fresh part of the holdout for each question" + (
        "" if declared else "; needs identically_distributed=True"
    )
    return Alternative("splitting", "splitting", width, offered=declared, note=note)


def unless_declared(split: Alternative, tolerance: float | None) -> str:
    """Return what to add to a refusal where splitting would serve, if it were only offered; empty if it would not."""
    if split.offered or split.tolerance > (tolerance or 1.0) or split.tolerance >= 1.0:
        return ""
    return parts_would_do(split.tolerance)


def answering_all(
    mechanism: MechanismName, model: DependenceModel, queries: int, confidence: float
) -> GaussianParameters | SplittingParameters:
    """Return the parameters of a mechanism that answers all questions from the holdout."""
    if mechanism == "splitting":
        return SplittingParameters(queries)
    return gaussian_parameters(model, queries, confidence, schedule=True)


def _checked(
    model: DependenceModel | None,
    n: int | None,
    queries: int | None,
    confidence: float,
    tolerance: float | None,
    identically_distributed: bool,
) -> _Target:
    if model is not None and n is not None and check_model(model).n != n:
        raise InputError("n", n, f"{model.n}, as the model has; or leave it out")
    if model is None and n is not None:
        model = independent(check_count("n", n))
    missing = [name for name, value in (("n", model), ("queries", queries), ("tolerance", tolerance)) if value is None]
    if len(missing) > 1:
        raise InputError(missing[0], None, f"a value for {' or for '.join(missing)}; one of them is solved for")
    return _Target(
        model=None if model is None else check_model(model),
        queries=None if queries is None else check_count("queries", queries),
        confidence=check_confidence(confidence),
        tolerance=None if tolerance is None else check_fraction("tolerance", tolerance, "a number in (0, 1)"),
        identically_distributed=check_declaration(identically_distributed),
    )


def _solved(target: _Target) -> tuple[DependenceModel, int]:
    """Solve for the model's size or for the number of questions, where one is missing."""
    if target.model is None:
        return independent(_fewest_records(target)), target.queries or 1
    return target.model, target.queries or _most_queries(target.model, target)


def _most_queries(model: DependenceModel, target: _Target) -> int:
    """Return the largest number of questions within the tolerance."""
    tolerance = target.tolerance or 0.0
    noisy = most_gaussian_answers(model, tolerance, target.beta)

    def fails(queries: int) -> bool:
        return not target.identically_distributed or splitting_width(model, queries, target.beta) > tolerance

    first = smallest_at_which(fails, 1, model.n + 1)
    if max(noisy, first - 1) < 1:
        raise PlanError(f"{model.describe()} allow not even one answer within {tolerance:g}")
    return max(noisy, first - 1)


def _fewest_records(target: _Target) -> int:
    """Return the smallest number of independent records that reaches the tolerance."""
    queries, tolerance = target.queries or 1, target.tolerance or 0.0

    def split(records: int) -> bool:
        return splitting_width(independent(records), queries, target.beta) <= tolerance

    parted = target.identically_distributed and split(_MOST_RECORDS)
    most = smallest_at_which(split, 1, _MOST_RECORDS) if parted else _MOST_RECORDS
    found = fewest_for_gaussian(queries, tolerance, target.beta, most)
    if found is None and not parted:
        raise PlanError(f"no number of records up to {_MOST_RECORDS:.0e} reaches a tolerance of {tolerance:g}")
    return most if found is None else found
