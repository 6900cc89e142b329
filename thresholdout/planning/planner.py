"""`plan`: solve, certify, compare, recommend.

A plan minimises the tolerance of its certificate, but for two things that a smaller tolerance would buy too dearly: a
*quiet margin*, so that honest questions do not spend the budget, and some noise, even where the certificate could do
without.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thresholdout.certificates import Certificate, certify
from thresholdout.certificates.published import theorem_2_tolerance
from thresholdout.errors import PlanError
from thresholdout.planning.candidates import by_posterior, by_transcript, guard_of, splitting, transcript_tolerance
from thresholdout.planning.search import fewest_records, largest_budget
from thresholdout.planning.use import Alternative, MechanismName, Target, Use, independent

if TYPE_CHECKING:
    import pandas as pd

    from graphs import DependenceModel

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan:
    """Parameters of a guard for a declared use, what it will be worth, and what else was compared.

    Attributes
    ----------
    mechanism : {"thresholdout", "splitting"}
        What is recommended.
    tolerance : float
        Largest half-width of any answer by the recommended mechanism, for values in [0, 1].
    threshold, noise_scale, grid : float, float, float or None
        Of the best guard, in units of the range, also when splitting is recommended.
    queries, budget, records : int
        m, B and n, as declared or solved for.
    confidence : float
        1 - beta.
    quiet_margin : float
        Except with probability beta, no question whose train value and holdout mean differ by at most this spends
        budget.
    certificate : Certificate
        What the guard's answers are worth.
    compared : tuple of Alternative
        Everything that was compared; `alternatives` shows it as a table.
    recommendation : str
        In words.
    """

    mechanism: MechanismName
    tolerance: float
    threshold: float
    noise_scale: float
    grid: float | None
    queries: int
    budget: int
    records: int
    confidence: float
    quiet_margin: float
    certificate: Certificate
    compared: tuple[Alternative, ...]
    recommendation: str

    @property
    def alternatives(self) -> pd.DataFrame:
        """Everything that was compared, one row each, the smallest tolerance first."""
        import pandas as pd

        columns = ["mechanism", "route", "tolerance", "threshold", "noise_scale", "grid", "offered", "note"]
        rows = [[getattr(option, column) for column in columns] for option in self.compared]
        return pd.DataFrame(rows, columns=columns).sort_values("tolerance", ignore_index=True)

    def __repr__(self) -> str:
        return (
            f"<Plan: {self.mechanism}, ± {self.tolerance:.4g} at confidence {self.confidence:g} for {self.queries} "
            f"questions, {self.budget} from the holdout, {self.records} records>"
        )


def plan(
    model: DependenceModel | None = None,
    *,
    n: int | None = None,
    queries: int,
    budget: int | None = None,
    confidence: float = 0.95,
    tolerance: float | None = None,
    quiet_margin: float | None = None,
    noise_share: float = 0.1,
) -> Plan:
    """Choose a guard's parameters, the number of records, or the budget.

    Parameters
    ----------
    model : graphs.DependenceModel, optional
        How the records depend on each other; independent records by default.
    n : int, optional
        Number of independent records, instead of a model. Without either, ``tolerance`` is needed, and the smallest
        number of independent records that reaches it is found.
    queries : int
        m, how many questions will be asked.
    budget : int, optional
        B, how many may be answered from the holdout. Without it, ``tolerance`` is needed, and the largest budget that
        it allows is found.
    confidence : float, default=0.95
        Probability with which all half-widths hold at once, in (0, 1).
    tolerance : float, optional
        Target for the largest half-width, in units of the range, in (0, 1).
    quiet_margin : float, optional
        c, in units of the range. By default ``sqrt(Lambda ln(2m/beta)/(2n))``, at which a question that was not fitted
        to the holdout and has the right train value does not spend budget; 0 where no useful Lambda is known.
    noise_share : float, default=0.1
        Share of the tolerance that the noise takes where the certificate could do without, in (0, 1).

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        When an argument is out of range, or it is not clear what to solve for.
    PlanError
        When no parameters reach the target, or nothing at all can be certified; the error says what stands in the way.

    Notes
    -----
    The threshold is ``c + VaR_beta(max gamma + max (-delta))``. For the posterior route the noise scale balances the
    two terms of the tolerance. For the transcript route the answer grid balances rounding against the number of
    possible transcripts, and the noise takes its share.

    Examples
    --------
    >>> p = plan(n=10_000, queries=1000, budget=1)
    >>> p.mechanism, p.certificate.route, round(p.tolerance, 3)
    ('thresholdout', 'transcript', 0.051)
    >>> plan(queries=1000, budget=10, tolerance=0.05).records
    43350
    >>> plan(n=100_000, queries=1000, tolerance=0.05).budget
    31
    >>> plan(n=1000, queries=2, budget=2).recommendation[:54]
    'Split the holdout: with a fresh part of 500 records fo'
    """
    target = Target.checked(model, n, queries, budget, confidence, tolerance, quiet_margin, noise_share)
    if target.model is None:
        use = target.use(model=independent(fewest_records(target)))
    else:
        use = target.use(budget=target.budget or largest_budget(target))
    options = [option for option in (by_transcript(use), by_posterior(use)) if option.noise_scale is not None]
    guards = [(option, _certify(use, option)) for option in options]
    best, certificate = min(guards, key=lambda pair: pair[1].tolerance)
    split = splitting(use)
    _check_reached(use, min(split.tolerance, certificate.tolerance))
    mechanism: MechanismName = "splitting" if split.tolerance < certificate.tolerance else "thresholdout"
    assert best.threshold is not None
    assert best.noise_scale is not None
    assert use.target.budget is not None
    return Plan(
        mechanism=mechanism,
        tolerance=min(split.tolerance, certificate.tolerance),
        threshold=best.threshold,
        noise_scale=best.noise_scale,
        grid=best.grid,
        queries=use.queries,
        budget=use.target.budget,
        records=use.n,
        confidence=use.confidence,
        quiet_margin=use.margin,
        certificate=certificate,
        compared=(*options, *_for_comparison(use), split, splitting(use, binary=True)),
        recommendation=_recommendation(use, mechanism, certificate, split.tolerance),
    )


def _certify(use: Use, guard: Alternative) -> Certificate:
    assert guard.threshold is not None
    assert guard.noise_scale is not None
    return certify(
        use.model,
        threshold=guard.threshold,
        noise_scale=guard.noise_scale,
        budget=use.target.budget,
        queries=use.queries,
        confidence=use.confidence,
        grid=guard.grid,
    )


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


def _check_reached(use: Use, tolerance: float) -> None:
    """Refuse a plan that misses its target, or that promises nothing."""
    target = use.target
    if target.tolerance is not None and tolerance > target.tolerance:
        raise PlanError(
            f"{use.n} records, {use.queries} questions and a budget of {target.budget} reach a tolerance of "
            f"{tolerance:.3g}, not {target.tolerance:g}. Leave out budget= or n= to solve for it, ask fewer questions, "
            f"or lower the confidence or the quiet margin ({use.margin:.3g})"
        )
    if tolerance >= 1.0:
        raise PlanError(
            f"nothing can be certified about {use.queries} questions with a budget of {target.budget} on "
            f"{use.model.describe()}: the best tolerance is {tolerance:.3g} of the range. Take more records, ask fewer "
            f"questions, or lower the budget, the confidence or the quiet margin ({use.margin:.3g})"
        )


def _recommendation(use: Use, mechanism: MechanismName, certificate: Certificate, split: float) -> str:
    """Say what to do, and why, in words."""
    if mechanism == "splitting":
        return (
            f"Split the holdout: with a fresh part of {use.n // use.queries} records for each of the {use.queries} "
            f"questions every answer is within {split:.3g}, and no noise is needed; a guard's tolerance would be "
            f"{certificate.tolerance:.3g} ({certificate.route} route)."
        )
    words = [
        f"Guard the holdout: all {use.queries} answers, up to {use.target.budget} of them from the holdout, are within "
        f"{certificate.tolerance:.3g} at confidence {use.confidence:g} ({certificate.route} route)."
    ]
    if split < math.inf:
        words.append(f"Splitting it into {use.queries} parts would reach {split:.3g}.")
    if certificate.route == "transcript":
        bare = transcript_tolerance(use, 0.0)
        share = use.target.noise_share
        words.append(f"The noise takes {share:.0%} of the tolerance; with next to none it would be {bare:.3g}.")
    words.append(_margin_in_words(use))
    return " ".join(words)


def _margin_in_words(use: Use) -> str:
    if use.target.quiet_margin is not None or use.margin > 0.0:
        return f"Questions whose train value is within {use.margin:.3g} of the holdout mean spend no budget."
    if use.concentrates:
        why = "the records fluctuate together by more than the range"
    else:
        why = "under this dependence the holdout mean of every question can be far from the truth"
    return f"There is no quiet margin, because {why}: even honest questions may spend budget."
