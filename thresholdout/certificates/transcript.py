"""The transcript certificate of Algorithm 1: few histories are possible, and fixed queries deviate little at each.

A training answer adds no branch to a history, since its value was known before. An answer from the holdout adds as many
as the answer grid has points within the half-width of the estimand. PROOFS.md, "Transcript certificate".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.route import Route, larger_side
from thresholdout.limits.entropy import entropy_lower, entropy_upper

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["FixedLimits", "TranscriptWidths", "fixed_limits", "log_histories", "transcript"]

NAME = "transcript"
SOURCE = "PROOFS.md, 'Transcript certificate'; after [D15]"
ASSUMES = "limits for fixed queries by the dependence; queries are means of per-record values; answers on a grid"

_SHARE: Final = 0.125
"""Share of beta for deviations: they pay its logarithm under a root, noise pays that of its own share in full."""

_ROUNDS: Final = 20
"""Each round is valid and none is wider than the one before; the count of live answers settles after a few."""

_NEARLY: Final = 0.9
"""Share of n over the inflation from which effective records win: entropy is narrower near 0 and 1."""

_MOST_EXACT: Final = 500
"""Answers up to which histories are counted exactly, in integers, whose length grows with the number."""

_MORE: Final = 1.0 + 1e-9  # covers the rounding of sums of logarithms and of quotients


@dataclass(frozen=True, slots=True)
class FixedLimits:
    """Bounds on the deviation of means that are fixed in advance.

    `records` is N of ``P(abs(q(X) - q(P)) >= r) <= 2 exp(-2 N r^2)``. With `entropy`, ``P(N kl(q(X), q(P)) >= a)`` is
    at most ``2 exp(-a)``.
    """

    records: float
    entropy: bool


def fixed_limits(model: DependenceModel) -> FixedLimits:
    """Return the limits of a dependence model; only one inequality is used, since each would have to be paid."""
    effective = model.effective_records()
    inflated = model.n / model.variance_inflation() * (1.0 - 1e-12)
    if effective is None or effective < _NEARLY * inflated:
        return FixedLimits(inflated, False)
    return FixedLimits(effective, True)


def transcript(setting: Setting, limits: FixedLimits | None = None) -> Route:
    """Certify by the number of histories.

    The tolerance is ``VaR(M) + r``: M the largest error of an answer about the holdout, r the deviation that no fixed
    query of any possible history exceeds, both together except with probability beta.

    Noise of any scale serves, so the route is narrower than the posterior one where the dependence bounds deviations
    and few answers come from the holdout. After [D15]: C. Dwork et al., "Generalization in adaptive data analysis and
    holdout reuse", NeurIPS 2015 (description length).
    """
    from graphs.models.out_of_fold import OutOfFold

    def missing(why: str) -> Route:
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)

    if why := setting.undeclared():
        return missing(why)
    if isinstance(setting.model, OutOfFold):
        return missing("truths of out-of-fold averages are functions of the records, and no query about them is fixed")
    grid = setting.parameters.grid
    if grid is None:
        return missing("answers from the holdout have no grid (grid=)")
    assert setting.queries is not None
    assert setting.budget is not None
    limits = limits or fixed_limits(setting.model)
    if limits.records <= 1.0 < setting.n:
        return missing("the dependence bounds no deviation of a fixed mean")
    scale = setting.parameters.noise_scale
    share = _SHARE * setting.beta
    noise = scale * setting.law.quantile(setting.beta - share, setting.parameters.threshold / scale, grid / scale)
    error = formula_up(noise + setting.slack)
    width, nats = 1.0, math.inf
    for _ in range(_ROUNDS):
        live = min(setting.levels, math.floor(2.0 * width / grid * _MORE) + 1)
        histories = log_histories(setting.queries, setting.budget, live)
        nats = (math.log(2.0) + histories - math.log(share)) * _MORE
        narrower = formula_up(error + math.sqrt(nats / (2.0 * limits.records)) * _MORE)
        if narrower >= width:
            break
        width = narrower
    if width >= 1.0:
        return missing("histories are too many for these records: the half-width would be the whole range")
    widths = TranscriptWidths(error, width, nats, limits.records if limits.entropy else 0.0)
    return Route(NAME, width, True, ASSUMES, SOURCE, widths=widths)


def log_histories(queries: int, budget: int, live: int) -> float:
    """Return the logarithm of ``sum over j < B of C(m, j+1) L^j``, the number of histories with an answered query."""
    last = min(budget, queries)
    if last > _MOST_EXACT:  # the sum is at most L^-1 times that of C(m, j) L^j over 0 <= j <= B, at most (e m L/B)^B
        bound = last * (1.0 + math.log(queries / last) + math.log(live)) - math.log(live)
        return bound * _MORE
    total, ways, answers = 0, queries, 1
    for j in range(last):
        total += ways * answers
        ways, answers = ways * (queries - j - 1) // (j + 2), answers * live
    return math.log(total)


@dataclass(frozen=True, slots=True)
class TranscriptWidths:
    """Half-widths and intervals by the transcript certificate.

    `error` bounds the error of an answer about the holdout, and `width` is the half-width of every answer. `nats`
    bounds ``N kl(q(X), q(P))`` for every query, N = `effective`, which is 0 where only the variance inflation is known.
    """

    error: float
    width: float
    nats: float
    effective: float

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the width."""
        return self.width

    def interval(self, value: float) -> tuple[float, float]:
        """Return the possible estimands given an answer."""
        low, high = value - self.width, value + self.width
        if self.effective:
            low = max(low, entropy_lower(max(0.0, value - self.error), self.effective, -self.nats))
            high = min(high, entropy_upper(min(1.0, value + self.error), self.effective, -self.nats))
        return low, high

    def expected(self, value: float) -> float:
        """Return the larger side of the interval of an answer with this value."""
        return larger_side(value, self.interval(value))
