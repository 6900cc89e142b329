"""Every way of asking that some records allow, and how wide its answers are at the likely score."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.errors import PlanError
from thresholdout.mechanisms import ClaimsMechanism
from thresholdout.mechanisms.claims.expected_session import guard_width, list_width
from thresholdout.mechanisms.claims.kinds import is_unlimited
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.plan import ALGORITHM_1, FINAL, GUARD, LIST, Way, WayName

if TYPE_CHECKING:
    from thresholdout.planning.request import Use

__all__ = ["all_ways", "claims_width", "named_way", "one_way"]


def named_way(use: Use) -> WayName:
    """Return the way that the arguments ask for: the default, a list, or a mechanism by its name."""
    if use.records is not None and is_unlimited(use.records):
        return ALGORITHM_1
    if use.fixed:
        return FINAL if use.queries == 1 else LIST
    return GUARD


def claims_width(use: Use, name: WayName, *, quick: bool = False) -> float:
    """Return the half-width of a guard's claims, of a list or of one look.

    Parameters
    ----------
    use : Use
        With records.
    name : str
        Which of them.
    quick : bool
        Leave out the noise in the edges of claims, which takes most of the time and widens them by one per cent.
    """
    problem = use, name, quick
    if problem not in use.widths:
        use.widths[problem] = _claims_width(use, name, quick)
    return use.widths[problem]


def _claims_width(use: Use, name: WayName, quick: bool) -> float:
    parameters = use.parameters()
    if quick:
        parameters = dataclasses.replace(parameters, noise=0.0)
    if name == GUARD:
        return guard_width(parameters, use.model.n, use.asked, use.expected)
    if name == FINAL:
        risk = math.log1p(-use.confidence) - use.told
        return ClaimsMechanism(parameters, use.model.n).final_half_width(risk, use.expected)
    return list_width(parameters, use.model.n, use.asked, use.expected)


def one_way(use: Use, name: WayName) -> Way | None:
    """Return one way of asking; ``None`` where the records do not allow it."""
    if name in (GUARD, LIST, FINAL):
        return None if is_unlimited(use.model) else _by_claims(use, name)
    return _by_algorithm_1(use)


def all_ways(use: Use) -> list[Way]:
    """Return every way of asking that the records allow, the narrowest first."""
    names: list[WayName] = [FINAL, GUARD]
    if use.asked > 1:
        names.append(LIST)
    if use.budget is not None or is_unlimited(use.model):
        names.append(ALGORITHM_1)
    found = [way for name in names if (way := one_way(use, name)) is not None]
    return sorted(found, key=lambda way: way.half_width)


def _by_claims(use: Use, name: WayName) -> Way:
    needs, call = {
        GUARD: ("nothing; any question at any time", "guard.score(model), guard.ask(...)"),
        LIST: ("all questions fixed before the first answer", "guard.score_all(models, keep=0)"),
        FINAL: ("a choice by cross-validation; one question", "guard.final_check(model)"),
    }[name]
    return Way(name, claims_width(use, name), needs, call, use.parameters())


def _by_algorithm_1(use: Use) -> Way | None:
    budget = 1 if use.budget is None else use.budget
    asked, score, needed = use.asked, use.expected, use.after_looks
    if needed is None:
        return None
    try:
        found = algorithm_1(use.model, queries=asked, budget=budget, confidence=needed, expected=score)
    except PlanError:
        return None
    needs = f"at most {asked:,} questions, of which at most {budget:,} may disagree with the training part"
    call = f"Thresholdout(..., queries={asked}, mechanism=Claims(holdout_answers={budget}))"
    if not is_unlimited(use.model):
        call = f"Thresholdout(..., mechanism=plan(..., budget={budget}).way({ALGORITHM_1!r}).parameters)"
    width = certify_parameters(use.model, found, needed).expected_half_width(score)
    return Way(ALGORITHM_1, width, needs, call, found) if width < 1.0 else None
