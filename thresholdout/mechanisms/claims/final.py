"""The final check: the last query of a guard, which takes all of the remaining error budget.

Its interval is stated directly, for an estimand p and the holdout's value k, and no outcome leaves anything. So any
family of limits will do that misses every p with at most the probability w in all. Two-sided limits at w/2 do. The
prediction g, known beforehand, gives a preferred side of each p: estimands above g are refuted by small values of k,
and estimands below g by large ones. With a = `INNER` of w for that side, and the rest of w for the other,

    upper limit:  upper(k, a w), if that is at least g, and else the smaller of g and upper(k, (1 - a) w),

and the lower limit is its mirror. Where k is near g, as a rule, both sides have nearly w and not w/2.

With ``final=True`` the claims before it reserve so much: their shares sum to at most `TOTAL`, and their edges are so
distant that few of them fail. PROOFS.md, B10.
"""

from __future__ import annotations

import math
from typing import Final

from graphs.numerics.arguments import as_real
from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.interval import MeanTest, TwoEnds
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, Window, lowered

__all__ = ["CHOSEN", "INNER", "check_expected", "final_interval", "reserving_window", "share_of"]

TOTAL: Final = 0.3
"""Sum of the shares of all claims before a final check."""

_FAILING: Final = 0.1  # predicted probability of a direction, in shares
_SLOW: Final = 20  # queries after which half of the shares are used, where their number is not declared
INNER: Final = 0.9  # share of the error probability on the preferred side of each estimand; any share is valid
# A model that was chosen by the very records of its guess is worse than these suggest, often by more than the inner
# limit reaches: then 0.9 is 1.5 times as wide as no preference for a side.
CHOSEN: Final = 0.5


def final_interval(
    claim: MeanTest | TwoEnds, log_error_budget: float, guess: float, inner: float = INNER
) -> tuple[float, float]:
    """Return the interval of a final check; the guess is fixed before the holdout is evaluated."""
    level = log_error_budget + math.log1p(-2.0 * FAILURE_SHARE)

    def stated(log_level: float) -> tuple[float, float]:
        if not isinstance(claim, TwoEnds):
            return claim.stated(log_level)[2]
        lo, hi = claim.ends(log_level, min(max(guess, 0.0), 1.0))
        return lo / claim.steps, min(1.0, hi / claim.steps)

    low, high = stated(lowered(level + math.log(inner)))
    far_low, far_high = stated(lowered(level + math.log1p(-inner)))
    if low > guess:
        low = max(guess, far_low)
    if high < guess:
        high = min(guess, far_high)
    return low, high


def reserving_window(mean: float, deviation: float, steps: int, asked: int, queries: int | None) -> Window:
    """Return the first claim about a query that reserves most of the error budget for a final check."""
    from statistics import NormalDist

    share = share_of(asked, queries)
    reach = -NormalDist().inv_cdf(0.5 * _FAILING * share) * deviation
    middle = min(max(round(mean), 0), steps)
    lo, hi = min(math.ceil(mean - reach), middle), max(math.floor(mean + reach), middle)
    return Window(max(lo, 0), min(hi, steps), share, deviation)


def share_of(asked: int, queries: int | None) -> float:
    """Return the share of a claim after so many queries: they sum to `TOTAL`."""
    return TOTAL / queries if queries is not None else TOTAL * _SLOW / ((asked + _SLOW) * (asked + _SLOW + 1.0))


def check_expected(expected: object) -> float:
    """Return a likely score."""
    score = as_real(expected)
    if score is None or not 0.0 < score < 1.0:
        raise InputError("expected", repr(expected), "a score in (0, 1)")
    return score
