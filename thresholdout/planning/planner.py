"""`plan`: solve, certify, compare, recommend.

A plan minimises the tolerance of its certificate, but for two things that a smaller tolerance would buy too dearly: a
*quiet margin*, so that honest questions do not spend the budget, and some noise, even where the certificate could do
without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from thresholdout.certificates import Certificate
from thresholdout.certificates.any_mechanism import certify_parameters
from thresholdout.certificates.published import theorem_2_tolerance
from thresholdout.errors import PlanError
from thresholdout.mechanisms import ThresholdoutParameters
from thresholdout.planning.candidates import by_posterior, by_transcript, guard_of
from thresholdout.planning.everything import answering_all, gaussian, plan_all, splitting, unless_declared
from thresholdout.planning.result import Plan
from thresholdout.planning.search import fewest_records, largest_budget
from thresholdout.planning.use import Alternative, MechanismName, Target, Use, independent
from thresholdout.planning.words import recommend

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["plan"]


def plan(
    model: DependenceModel | None = None,
    *,
    n: int | None = None,
    queries: int | None = None,
    budget: int | Literal["all"] | None = None,
    confidence: float = 0.95,
    tolerance: float | None = None,
    quiet_margin: float | None = None,
    noise_share: float = 0.1,
    identically_distributed: bool = False,
) -> Plan:
    """Choose a mechanism and its parameters, the number of records, of questions, or the budget.

    Parameters
    ----------
    model : graphs.DependenceModel, optional
        How the records depend on each other; independent records by default.
    n : int, optional
        Number of independent records, instead of a model. Without either, ``tolerance`` is needed, and the smallest
        number of independent records that reaches it is found.
    queries : int, optional
        m, how many questions will be asked. Without it, ``budget="all"`` and ``tolerance`` are needed, and the largest
        number that the tolerance allows is found.
    budget : int or "all", optional
        B, how many may disagree with the training part; ``"all"`` when every question is to be answered from the
        holdout. Without it, ``tolerance`` is needed, and the largest budget that it allows is found.
    confidence : float, default=0.95
        Probability with which all half-widths hold at once, in (0, 1).
    tolerance : float, optional
        Target for the largest half-width, in units of the range, in (0, 1).
    quiet_margin : float, optional
        c, in units of the range. By default ``sqrt(Lambda ln(2m/beta)/(2n))``, at which a question that was not fitted
        to the holdout and has the right train value does not spend budget; 0 where no useful Lambda is known.
    noise_share : float, default=0.1
        Share of the tolerance that the noise takes where the certificate could do without, in (0, 1).
    identically_distributed : bool, default=False
        Whether all records have one law, and each question is the same function of every record, whatever its number,
        id or place. Splitting is offered only then: its answers are about a part of the records.

    Returns
    -------
    Plan
        For the mechanism with the smallest tolerance among those that serve the declared use.

    Raises
    ------
    InputError
        When an argument is out of range, or it is not clear what to solve for.
    PlanError
        When no parameters reach the target, or nothing at all can be certified; the error says what stands in the way.

    Notes
    -----
    *Thresholdout.* The threshold is ``c + VaR_beta(max gamma + max (-delta))``. For the posterior route the noise scale
    balances the two terms of the tolerance. For the transcript route the answer grid balances rounding against the
    number of possible transcripts, and the noise takes its share. *Gaussian.* Every answer comes from the holdout,
    early ones with more noise; the schedule gives all answers the same half-width. *Splitting.* A fresh part of the
    holdout answers each question; offered for declared records only.

    Examples
    --------
    >>> p = plan(n=10_000, queries=1000, budget=1)
    >>> p.mechanism, p.certificate.route, round(p.tolerance, 3)
    ('thresholdout', 'transcript', 0.051)
    >>> plan(n=10_000, queries=1000, budget=100).mechanism
    'gaussian'
    >>> plan(queries=1000, budget=10, tolerance=0.05).records
    43350
    >>> plan(n=100_000, tolerance=0.1, budget="all").queries > 73_964
    True
    >>> plan(n=1000, queries=2, budget=2, identically_distributed=True).recommendation[:54]
    'Split the holdout: with a fresh part of 500 records fo'
    """
    if budget == "all":
        return plan_all(model, n, queries, confidence, tolerance, identically_distributed)
    target = Target.checked(
        model, n, queries, budget, confidence, tolerance, quiet_margin, noise_share, identically_distributed
    )
    if target.model is None:
        use = target.use(model=independent(fewest_records(target)))
    else:
        use = target.use(budget=target.budget or largest_budget(target))
    options = [option for option in (by_transcript(use), by_posterior(use)) if option.noise_scale is not None]
    guards = [_certified(use, option) for option in options]
    parameters, certificate = best = min(guards, key=lambda pair: pair[1].tolerance)
    noisy = gaussian(use.model, use.queries, use.beta)
    split = splitting(use.model, use.queries, use.beta, declared=use.identically_distributed)
    offered = {"thresholdout": certificate.tolerance} | {
        option.mechanism: option.tolerance for option in (noisy, split) if option.offered
    }
    mechanism = min(offered, key=lambda name: offered[name])
    _check_reached(use, offered[mechanism], split)
    name = cast(MechanismName, mechanism)
    chosen = parameters if name == "thresholdout" else answering_all(name, use.model, use.queries, use.confidence)
    if chosen is not parameters:
        certificate = certify_parameters(use.model, chosen, use.confidence)
    assert use.target.budget is not None
    return Plan(
        mechanism=name,
        tolerance=certificate.tolerance,
        parameters=chosen,
        thresholdout=parameters,
        queries=use.queries,
        budget=use.target.budget,
        records=use.n,
        confidence=use.confidence,
        quiet_margin=use.margin,
        certificate=certificate,
        compared=(
            *options,
            noisy,
            *_for_comparison(use),
            split,
            splitting(use.model, use.queries, use.beta, binary=True),
        ),
        recommendation=recommend(use, name, best[1], certificate, noisy.tolerance, split.tolerance),
    )


def _certified(use: Use, guard: Alternative) -> tuple[ThresholdoutParameters, Certificate]:
    """Return the parameters of an alternative, and what they are worth."""
    assert guard.threshold is not None
    assert guard.noise_scale is not None
    parameters = ThresholdoutParameters(guard.threshold, guard.noise_scale, use.target.budget, use.queries, guard.grid)
    return parameters, certify_parameters(use.model, parameters, use.confidence)


def _for_comparison(use: Use) -> list[Alternative]:
    """Return what is not offered: the transcript route with next to no noise, and the published formula."""
    found = []
    bare = by_transcript(use, 0.0)
    if bare.noise_scale is not None:
        note = "next to no noise: shows what the noise of the guard costs"
        setting = use.setting(bare.noise_scale, bare.grid)
        found.append(guard_of(setting, "transcript", bare.tolerance, offered=False, note=note))
    tolerance = theorem_2_tolerance(use.model, queries=use.queries, budget=use.hits, beta=use.beta)
    note = "as printed in [Z17, Theorem 2], without a quiet margin; its proof has a gap"
    found.append(Alternative("thresholdout", "published", tolerance, offered=False, note=note))
    return found


def _check_reached(use: Use, tolerance: float, split: Alternative) -> None:
    """Refuse a plan that misses its target, or that promises nothing."""
    target = use.target
    if target.tolerance is not None and tolerance > target.tolerance:
        raise PlanError(
            f"{use.n} records, {use.queries} questions and a budget of {target.budget} reach a tolerance of "
            f"{tolerance:.3g}, not {target.tolerance:g}. Leave out budget= or n= to solve for it, ask fewer questions, "
            f"or lower the confidence or the quiet margin ({use.margin:.3g}){unless_declared(split, target.tolerance)}"
        )
    if tolerance >= 1.0:
        raise PlanError(
            f"nothing can be certified about {use.queries} questions with a budget of {target.budget} on "
            f"{use.model.describe()}: the best tolerance is {tolerance:.3g} of the range. Take more records, ask fewer "
            f"questions, or lower the budget, the confidence or the quiet margin ({use.margin:.3g})"
            f"{unless_declared(split, target.tolerance)}"
        )
