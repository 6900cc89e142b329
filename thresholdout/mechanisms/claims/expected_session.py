"""A guard's session as it is expected to go: how wide its answers will be at the likely score.

The guard's own first claims are followed, question by question, for training values that are what the guard takes them
for: as far from the holdout's as sampling makes them. A claim is then not confirmed with the probability that its
forecast says; what such an answer and the risk after it are is taken on the average. Searches over models whose
training values flatter them, or whose order says nothing, differ from this by some ten per cent; nothing that is
certified depends on it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from thresholdout.mechanisms.base import Known
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters, ClaimsState
from thresholdout.mechanisms.claims.lists import list_level
from thresholdout.mechanisms.claims.predictor import Memory, learn
from thresholdout.mechanisms.claims.question_claims import FirstClaim
from thresholdout.noise.sources import SeededNoise

__all__ = ["guard_width", "list_width"]

_BINARY: Final = Known(binary=True)
_AGAIN: Final = 0.15  # share of the error budget that a retry sets aside, as `score.search` does
_STEP: Final = 1.5  # deviations by which it reaches beyond the first: half of the step there, for the width after cuts
_BLOCK: Final = 16  # a block has at most this part of the queries before and after it: widths change little within


def guard_width(parameters: ClaimsParameters, n: int, questions: int, score: float) -> float:
    """Return half the length of a guard's interval, on the average over the questions.

    Parameters
    ----------
    parameters : ClaimsParameters
        Of the guard.
    n : int
        Records in the holdout.
    questions : int
        How many are asked, one after another.
    score : float
        The likely score, in [0, 1], of values that are 0 or 1.

    Examples
    --------
    >>> round(guard_width(ClaimsParameters(queries=100), 1000, 100, 0.95), 3)
    0.039
    """
    mechanism = ClaimsMechanism(parameters, n)
    state, total, asked = _start(mechanism), 0.0, 0
    while asked < questions:
        block = max(1, min(asked, questions - asked) // _BLOCK)
        first = mechanism.first_claim(state, score, _BINARY)
        width, log_risk = _expected(first, state.log_risk)
        total += block * width
        asked += block
        state = dataclasses.replace(
            state,
            log_risk=state.log_risk + block * (log_risk - state.log_risk),
            asked=asked,
            exponent=first.exponent,
            memory=_learned(state.memory, first, block),
        )
    return total / questions


def list_width(parameters: ClaimsParameters, n: int, questions: int, score: float) -> float:
    """Return half the length of an interval when all questions are asked together, and nothing after them.

    Parameters
    ----------
    parameters, n, questions, score
        As for `guard_width`.

    Examples
    --------
    >>> round(list_width(ClaimsParameters(), 1000, 100, 0.95), 4)
    0.0246
    """
    mechanism = ClaimsMechanism(parameters, n)
    state = _start(mechanism)
    claim = mechanism.first_claim(state, score, _BINARY).claim
    value = round(score * claim.steps)
    low, high = claim.interval(value, value, list_level(state.log_risk, questions, 0.0), ())
    return 0.5 * (high - low)


def _start(mechanism: ClaimsMechanism) -> ClaimsState:
    return mechanism.start(SeededNoise(0))


def _expected(first: FirstClaim, log_risk: float) -> tuple[float, float]:
    """Return half the length of an answer's interval, and the logarithm of the risk after it, both on the average."""
    window, steps = first.window, first.claim.steps
    reach = max(1, math.floor(_STEP * window.deviation))
    pad = math.ceil(3.0 * sum(first.scales) * steps) + 1 if first.scales else 0
    after = log_risk + math.log(0.5 * window.share) + math.log1p(-_AGAIN)
    below, above = _beyond(first)
    low, high = first.interval
    width = (1.0 - below - above) * 0.5 * (high - low)
    top, bottom = window.lo - 1 + pad, window.hi + 1 - pad
    for probability, lo, hi in ((below, max(0, top - reach), top), (above, bottom, min(steps, bottom + reach))):
        if probability > 0.0:
            low, high = first.claim.interval(lo, hi, after, first.scales)
            width += probability * 0.5 * (high - low)
    return width, (1.0 - below - above) * first.log_level + (below + above) * after


def _beyond(first: FirstClaim) -> tuple[float, float]:
    """Return the probabilities with which the holdout's value is below and above the first claim."""
    window, steps = first.window, first.claim.steps
    mean, deviation = first.made.mean * steps, first.made.deviation * steps * math.sqrt(2.0)
    below = 0.5 * math.erfc((mean - window.lo + 0.5) / deviation) if window.lo > 0 else 0.0
    above = 0.5 * math.erfc((window.hi + 0.5 - mean) / deviation) if window.hi < steps else 0.0
    return below, above


def _learned(memory: Memory, first: FirstClaim, times: int) -> Memory:
    """Remember that a number of claims like this one were confirmed."""
    steps, window = first.claim.steps, first.window
    after = learn(memory, first.made, (window.lo - 0.5) / steps, (window.hi + 0.5) / steps)
    if times == 1:
        return after
    more = {name: getattr(after, name) - getattr(memory, name) for name in ("xx", "xy", "yy", "x", "y")}
    return dataclasses.replace(after, **{name: getattr(memory, name) + times * gain for name, gain in more.items()})
